"""The failing disk of disk.c: built, loaded and told when to fail."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import subprocess
import sys
import tempfile
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).with_name("disk.c")
LOADED = "HEDGED_FAILING_DISK"  # in the environment of a process that has it


class Way(IntEnum):
    """How a disk fails."""

    ONCE = 0  # one call fails
    FULL = 1  # a call does half its work, and all after it fail
    KILL = 2  # a call does half its work, and the process is killed


class Fault(NamedTuple):
    """A call that fails, by its number from 1; 0: none."""

    number: int
    way: Way = Way.ONCE
    error: int = errno.EIO


def compiler() -> str | None:
    """A C compiler, if there is one."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def load_into_this_process(module: str) -> None:
    """Start this process anew with the failing disk between it and the kernel, unless it is there.

    Args:
        module: That was started, as `python -m` names it.
    """
    if library := os.environ.pop(LOADED, None):
        del os.environ["LD_PRELOAD"]  # the programs that this one starts have a disk that works
        Path(library).unlink()
        return
    command = compiler()
    if command is None:
        sys.exit("a failing disk needs a C compiler: install gcc or clang")
    descriptor, library = tempfile.mkstemp(prefix="hedged-faults-", suffix=".so")
    os.close(descriptor)
    subprocess.run([command, "-O1", "-shared", "-fPIC", "-o", library, str(SOURCE), "-ldl"], check=True)
    settings = {LOADED: library, "LD_PRELOAD": library, "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    os.execve(sys.executable, [sys.executable, "-m", module, *sys.argv[1:]], os.environ | settings)


class Disk:
    """The disk of this process and of those that it forks."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)
        self._library.disk_count.restype = ctypes.c_long

    def arm(self, folder: Path, fault: Fault) -> None:
        """Count the calls that change something in a folder from now on, and let one fail.

        Args:
            folder: The folder.
            fault: Which call.
        """
        place = ctypes.c_char_p(str(folder).encode())
        self._library.disk_arm(place, ctypes.c_long(fault.number), int(fault.way), fault.error)

    def count(self) -> int:
        """How many calls there were since then."""
        return int(self._library.disk_count())

    def disarm(self) -> None:
        """Work as any disk."""
        self._library.disk_arm(ctypes.c_char_p(b""), ctypes.c_long(0), 0, 0)
