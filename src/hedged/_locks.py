"""Locks on what one process owns while it works: a run folder, a store that is being built, a file half written.

A lock is the kernel's (flock): it ends with the process that holds it, however that ends. A small file says who holds
it, on which machine; left behind by a kill it locks nothing.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hedged.errors import HedgedError, RunError

try:
    import fcntl
except ImportError:  # a system without such locks
    fcntl = None  # type: ignore[assignment]

MAX_TEXT = 400  # bytes of a lock file that are read
WRITING_SECONDS = 0.05  # that a new holder has to say who it is
BUSY = (errno.EWOULDBLOCK, errno.EACCES)

logger = logging.getLogger("hedged")
_owned: dict[str, tuple[int, int]] = {}  # lock files that this process holds: the thread and the descriptor


@contextmanager
def owning(path: Path, refusal: Callable[[str], HedgedError], wait: float = 0.0) -> Iterator[None]:
    """Hold a lock file; the thread that holds it may do so again.

    Where the file system has no locks, a warning says so and the work goes on.

    Args:
        path: The lock file, which is removed in the end.
        refusal: The error to raise if another holds it, given who that is, such as "process 7 on host a".
        wait: Seconds that another has to let go of it.
    """
    name = os.path.abspath(path)
    if _owned.get(name, (None,))[0] == threading.get_ident():
        yield
        return
    descriptor = _acquire(path, refusal, time.monotonic() + wait)
    _owned[name] = threading.get_ident(), descriptor
    try:
        yield
    finally:
        _owned.pop(name, None)
        with suppress(OSError):
            path.unlink(missing_ok=True)  # before the lock ends: nobody else's file is removed
        os.close(descriptor)


def try_lock(descriptor: int) -> bool:
    """Lock an open file, if nobody else has; an OSError where there are no locks.

    Args:
        descriptor: The file, open for writing.
    """
    if fcntl is None:
        raise OSError(errno.ENOSYS, "this system has no locks")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in BUSY:
            return False
        raise
    return True


def is_at(descriptor: int, path: Path) -> bool:
    """Whether an open file is the one at a path: it may have been removed, or replaced.

    Args:
        descriptor: The open file.
        path: The path.
    """
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _acquire(path: Path, refusal: Callable[[str], HedgedError], until: float) -> int:
    """The descriptor of the lock file, locked and at its path."""
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        except OSError as error:
            reason = error.strerror or error
            raise RunError(f"cannot write in the folder {path.parent}: {reason}. Choose another") from error
        try:
            locked = try_lock(descriptor)
        except OSError as error:
            logger.warning("%s cannot be locked (%s): see that no other process writes there", path.parent, error)
            return descriptor
        if not locked:
            holder = _holder(descriptor)
            os.close(descriptor)
            if time.monotonic() < until:
                continue  # to find out took a moment
            raise refusal(holder)
        if is_at(descriptor, path):  # else the last holder has just removed it
            with suppress(OSError):  # a full disk: the lock holds without it
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, f"process {os.getpid()} on host {socket.gethostname()}".encode(), 0)
            return descriptor
        os.close(descriptor)


def _holder(descriptor: int) -> str:
    """Who holds a lock file, as it says itself, even if it has just been removed."""
    time.sleep(WRITING_SECONDS)
    text = os.pread(descriptor, MAX_TEXT, 0).decode(errors="replace")
    return text if text.startswith("process ") and text.isprintable() else "another process"


def _let_go() -> None:
    """A forked process holds no locks of its parent's: else they would outlive it."""
    for _, descriptor in _owned.values():
        with suppress(OSError):
            os.close(descriptor)
    _owned.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
