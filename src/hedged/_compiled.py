"""Inner loops compiled by numba on first use and kept on disk: no compiler is needed.

Import the modules with loops late: numba is slow to import. Every loop takes a range of its work first, so that threads
can share it, and never lets them share a sum: results do not depend on the number of threads.

numba checks only the file of a loop for changes, and loops here call each other across files. So compiled code is kept
in a folder named by a hash of all of them and numba's version, so an upgrade of either starts a new one, and two
environments that share the package do not overwrite each other's.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, final

from numba import __version__ as NUMBA_VERSION
from numba import config as numba_config
from numba import njit
from numba.core import event

from hedged._home import user_cache
from hedged._loop_cache import keep_checked

Loop = TypeVar("Loop", bound=Callable[..., Any])
Liberties = set[str] | bool  # that the compiler may take with arithmetic, by the names that LLVM has for them

LOGGER = logging.getLogger("hedged")
PACKAGE = Path(__file__).parent
LOOPS = (
    "match/_closed_form/loops/*.py",
    "match/_evidence/*loops.py",
    "search/engines/_coded_loops.py",
    "data/photos/_colour.py",
)


def compiled(liberties: Liberties = False) -> Callable[[Loop], Loop]:
    """A decorator for loops that run without Python's lock and are kept on disk, where there is a place for them."""
    options: dict[str, Any] = {"fastmath": liberties, "error_model": "numpy", "nogil": True}

    def decorate(loop: Loop) -> Any:
        before = numba_config.CACHE_DIR  # type: ignore[attr-defined]
        numba_config.CACHE_DIR = _cache_folder()  # type: ignore[attr-defined]
        try:
            if not _cache_folder():
                return njit(**options)(loop)
            kept = njit(cache=True, **options)(loop)
            keep_checked(kept)
            return kept
        except RuntimeError:  # numba finds no place that it can write to
            return njit(**options)(loop)
        finally:
            numba_config.CACHE_DIR = before  # type: ignore[attr-defined]

    return decorate


def inlined(liberties: Liberties = False) -> Callable[[Loop], Loop]:
    """A decorator for parts of loops: they become part of each loop that calls them."""
    decorate: Any = njit(fastmath=liberties, error_model="numpy", inline="always")
    return decorate  # type: ignore[no-any-return]


@cache
def _cache_folder() -> str:
    """Where loops are kept: in $NUMBA_CACHE_DIR, else beside the package or in the user's cache; "" if not at all."""
    sources = b"".join(path.read_bytes() for pattern in LOOPS for path in sorted(PACKAGE.glob(pattern)))
    name = f"compiled-{hashlib.sha256(sources + NUMBA_VERSION.encode()).hexdigest()[:16]}"
    asked, home = os.environ.get("NUMBA_CACHE_DIR"), user_cache()
    for folder in [Path(asked)] if asked else [PACKAGE / "__pycache__", *([home] if home else [])]:
        folder = folder / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return str(folder)
    return ""


@final
class _Notice(event.Listener):
    """Says, once, that loops are being compiled: whoever waits the first time should know what for."""

    said = False

    def on_start(self, event: Any) -> None:
        """A function is about to be compiled, because it was not found on disk.

        Args:
            event: numba's own.
        """
        if not self.said and event.data["dispatcher"].py_func.__module__.startswith("hedged"):
            self.said = True
            kept = "once" if _cache_folder() else "each time, for there is no place to keep them: set NUMBA_CACHE_DIR"
            LOGGER.warning("compiling inner loops on first use; this takes seconds, %s", kept)

    def on_end(self, event: Any) -> None:
        """Nothing to say.

        Args:
            event: numba's own.
        """


event.register("numba:compile", _Notice())  # type: ignore[no-untyped-call]
