"""The loop of the fuzzer: damaged inputs one after the other, each refused in words or used, in time and in memory.

A target runs in a process of its own, so that what kills that process is seen too. Input number i of a target follows
from the seed and i alone: what fails can be made again.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import gc
import json
import mmap
import os
import resource
import shutil
import signal
import struct
import tempfile
import time
import traceback
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from types import FrameType
from typing import ClassVar, final

from hedged.errors import HedgedError

SECONDS = 5.0  # of computing that an input may take
PATIENCE = 600  # looks, 0.1 seconds apart, at a process that goes on with one input though alarms were given
MEMORY = 3 * 2**29  # bytes that an input may take: 1.5 GB
GROWTH = 64 * 2**20  # bytes that a process may have grown by in the end
WARM_UP = 100  # inputs before memory is first measured
STATE = struct.Struct("<qqqd")  # the number of the input; inputs, refusals and seconds before it
QUICK_FILES = Path("/dev/shm")


class Target(ABC):
    """A reader of the library, and inputs for it."""

    name: ClassVar[str]

    @abstractmethod
    def prepare(self) -> None:
        """Make valid inputs to start from, and use each once: loops are compiled, and what is valid is accepted."""

    @abstractmethod
    def damage(self, random: Random, folder: Path) -> None:
        """Write a damaged input into an empty folder.

        Args:
            random: What to follow.
            folder: Where to.
        """

    @abstractmethod
    def use(self, folder: Path) -> None:
        """Read the input as a user would: a HedgedError refuses it, anything else is a finding.

        Args:
            folder: Where it is.
        """


@final
@dataclass
class Report:
    """What became of the inputs of a target.

    Args:
        target: Its name.
        inputs: How many there were.
        refused: How many of them were refused by a HedgedError.
        seconds: Of computing that all of them took.
        slowest: Seconds of computing that the slowest took.
        grown: Bytes that the process grew by after the first inputs.
        findings: What went wrong, by number of the input.
    """

    target: str
    inputs: int = 0
    refused: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    grown: int = 0
    findings: dict[int, str] = field(default_factory=dict)


class TooLong(BaseException):
    """An input that takes too long; no reader catches it."""


def fuzz(target: Target, seed: int, inputs: int, budget: float, first: int = 0) -> Report:
    """Try inputs of a target until there were so many, or the time is over.

    Args:
        target: The target, prepared.
        seed: Of all inputs.
        inputs: How many at most.
        budget: Seconds at most.
        first: The number of the first input.
    """
    state, total = mmap.mmap(-1, STATE.size), Report(target.name)
    end, number = time.monotonic() + budget, first
    with _folder() as folder:
        while number < first + inputs and time.monotonic() < end:
            told = folder / "report.json"
            told.unlink(missing_ok=True)
            process = os.fork()
            if process == 0:
                _child(target, seed, range(number, first + inputs), end, state, folder)
            status = _wait(process, state)
            number, before, refused, seconds = STATE.unpack(state[:])
            if status == 0:
                part = Report(**json.loads(told.read_text(encoding="utf-8")))
                part.findings = {int(key): words for key, words in part.findings.items()}
            else:
                part = Report(target.name, before + 1, refused, seconds)
                part.findings[number] = f"the process ended with code {status}"
            total = _added(total, part)
            number += 1
    return total


def one(target: Target, seed: int, number: int, folder: Path) -> None:
    """Make an input and use it in this process: for a debugger, or to look at the input.

    Args:
        target: The target, prepared.
        seed: Of all inputs.
        number: Of the input.
        folder: Where the input is left.
    """
    target.damage(_random(target, seed, number), folder)
    target.use(folder)


def _random(target: Target, seed: int, number: int) -> Random:
    return Random(f"{seed} {target.name} {number}")


def _added(total: Report, part: Report) -> Report:
    return Report(
        total.target,
        total.inputs + part.inputs,
        total.refused + part.refused,
        total.seconds + part.seconds,
        max(total.slowest, part.slowest),
        max(total.grown, part.grown),
        total.findings | part.findings,
    )


def _wait(process: int, state: mmap.mmap) -> int:
    """The exit code of the process, which is killed when it hangs where no alarm reaches it."""
    pause, looks, last = 0.001, 0, state[:]
    while True:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        looks, last = looks + 1 if state[:] == last else 0, state[:]
        if looks > PATIENCE:
            os.kill(process, signal.SIGKILL)
        time.sleep(pause)
        pause = min(2 * pause, 0.1)


def _child(target: Target, seed: int, numbers: range, end: float, state: mmap.mmap, folder: Path) -> None:
    """Use inputs, and leave a report; never returns."""
    try:
        warnings.simplefilter("ignore")
        signal.signal(signal.SIGPROF, _too_long)
        report, before, begun = Report(target.name), 0, time.process_time()
        for number in numbers:
            state[:] = STATE.pack(number, report.inputs, report.refused, report.seconds)
            _try(target, _random(target, seed, number), number, folder / "input", report)
            report.inputs += 1
            report.seconds = time.process_time() - begun
            if report.inputs == WARM_UP:
                before = _resident()
            if report.findings or time.monotonic() > end:
                break  # after a finding, a new process goes on
        if before:
            report.grown = _resident() - before
            if report.grown > GROWTH:
                report.findings[number] = f"the process grew by {report.grown / 2**20:.0f} MB"
        (folder / "report.json").write_text(json.dumps(asdict(report)), encoding="utf-8")
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(70)


def _try(target: Target, random: Random, number: int, folder: Path, report: Report) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    target.damage(random, folder)
    began = time.process_time()
    try:
        with _limits():
            target.use(folder)
    except HedgedError:
        report.refused += 1
    except TooLong:
        report.findings[number] = f"it takes over {SECONDS:g} seconds"
    except Exception:  # whatever it is, it is what the fuzzer looks for
        report.findings[number] = traceback.format_exc(limit=-6)[-3000:]
    report.slowest = max(report.slowest, time.process_time() - began)


@contextmanager
def _limits() -> Iterator[None]:
    """Time and memory that one input may take."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, hard))
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def _too_long(_number: int, _frame: FrameType | None) -> None:
    raise TooLong


def _resident() -> int:
    """Bytes of memory that are in use, without what was freed."""
    gc.collect()
    ctypes.CDLL(ctypes.util.find_library("c")).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@contextmanager
def _folder() -> Iterator[Path]:
    place = QUICK_FILES if os.access(QUICK_FILES, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="hedged-fuzz-", dir=place) as folder:
        yield Path(folder)
