"""The user's home, which need not be there: a container may have neither HOME nor a name for its user."""

from __future__ import annotations

import os
from pathlib import Path

from hedged.errors import ConfigError


def user_cache() -> Path | None:
    """hedged in $XDG_CACHE_HOME, else in ~/.cache; None where there is no home."""
    for folder in (os.environ.get("XDG_CACHE_HOME", ""), os.path.expanduser("~/.cache")):
        if os.path.isabs(folder):
            return Path(folder) / "hedged"
    return None


def expanded(path: str) -> Path:
    """A path of a config, with the home of the user in the place of ~.

    Args:
        path: The path as it was written.

    >>> expanded("photos/dogs").as_posix()
    'photos/dogs'
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise ConfigError(f"{path} begins in a home folder that is not known here: write the path in full") from error
