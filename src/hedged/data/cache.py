"""Where fetched and decoded data are cached."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder(kind: str) -> Path:
    """$HEDGED_CACHE/kind, else hedged/kind in $XDG_CACHE_HOME, else in ~/.cache.

    Args:
        kind: of data, the name of its folder: "mnist", "photos".
    """
    if own := os.environ.get("HEDGED_CACHE"):
        return Path(own) / kind
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hedged" / kind
