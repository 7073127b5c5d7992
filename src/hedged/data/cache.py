"""Where fetched and decoded data are cached."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from hedged._home import user_cache
from hedged.errors import DataError


def cache_folder(kind: str) -> Path:
    """$HEDGED_CACHE/kind, else hedged/kind in $XDG_CACHE_HOME, else in ~/.cache, else in a temporary folder.

    Args:
        kind: of data, the name of its folder: "mnist", "photos".
    """
    if own := os.environ.get("HEDGED_CACHE"):
        return Path(own) / kind
    return (user_cache() or _temporary_folder()) / kind


def _temporary_folder() -> Path:
    """A folder of this user's alone, for users without a home; it is there until the machine is cleaned up."""
    folder = Path(tempfile.gettempdir()) / f"hedged-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise DataError(f"there is no home and no {folder} ({error}): set HEDGED_CACHE to a folder of yours") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise DataError(f"{folder} can be written by others: set HEDGED_CACHE to a folder of yours")
    return folder
