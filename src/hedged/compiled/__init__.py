"""Inner loops compiled by numba on first use and kept on disk: no compiler is needed.

Import the modules late: numba is slow to import. Every loop takes a range of its work first, so that threads can share
it, and never lets them share a sum: results do not depend on the number of threads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from numba import njit

Loop = TypeVar("Loop", bound=Callable[..., Any])
Liberties = set[str] | bool  # that the compiler may take with arithmetic, by the names that LLVM has for them

HERE = Path(__file__).parent


def compiled(liberties: Liberties = False) -> Callable[[Loop], Loop]:
    """A decorator for loops that run without Python's lock and are kept on disk, where there is a place for them."""
    options: dict[str, Any] = {"fastmath": liberties, "error_model": "numpy", "nogil": True}

    def decorate(loop: Loop) -> Any:
        try:
            return njit(cache=True, **options)(loop)
        except RuntimeError:  # neither the package's folder nor the user's own can be written
            return njit(**options)(loop)

    return decorate


def inlined(liberties: Liberties = False) -> Callable[[Loop], Loop]:
    """A decorator for parts of loops: they become part of each loop that calls them."""
    decorate: Any = njit(fastmath=liberties, error_model="numpy", inline="always")
    return decorate  # type: ignore[no-any-return]


def _forget_if_changed() -> None:
    """Drop compiled code when any of these files has changed: numba looks only at the file of the loop itself."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(HERE.glob("*.py")))).hexdigest()
    stamp = HERE / "__pycache__" / "compiled.stamp"
    try:
        if stamp.exists() and stamp.read_text() == digest:
            return
        for path in stamp.parent.glob("*.nb?"):
            path.unlink(missing_ok=True)
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(digest)
    except OSError:
        pass  # a place that cannot be written is not changed either


_forget_if_changed()
