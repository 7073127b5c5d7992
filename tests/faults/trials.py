"""One trial: a verb in a process of its own, something goes wrong, and then all must be well again."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from faults.disk import Disk, Fault, Way
from faults.verb import Verb, hedged

POLL = 0.002  # seconds between two looks at a process
PATIENCE = 60_000  # looks at a verb until it is taken to hang
KILLED = -signal.SIGKILL


@final
@dataclass
class Tally:
    """What became of the trials of a verb.

    Args:
        verb: Its name.
        calls: That it makes to the disk, undisturbed.
        trials: How many there were.
        refused: That ended with a message and exit code 2.
        unharmed: That ended as if nothing had happened.
        killed: That were killed.
        failures: What did not hold, in words.
    """

    verb: str
    calls: int = 0
    trials: int = 0
    refused: int = 0
    unharmed: int = 0
    killed: int = 0
    failures: list[str] = field(default_factory=list)


class Bench:
    """A verb with a folder that was made ready, and what it makes undisturbed.

    Args:
        verb: The verb.
        folder: Where all its folders are.
        disk: Of this process.
    """

    def __init__(self, verb: Verb, folder: Path, disk: Disk) -> None:
        self.verb, self.disk = verb, disk
        self._ready, self._place, self._log = folder / "ready", folder / "place", folder / "words"
        self._ready.mkdir(parents=True)
        self._place.mkdir()
        with _quiet(self._log):
            verb.make_ready(self._place)  # where it will be: stores and logs know paths
        shutil.rmtree(self._ready)
        shutil.copytree(self._place, self._ready)
        with _quiet(self._log):
            assert hedged(*verb.command(self._place)) == 0, self._log.read_text(encoding="utf-8")
        self.expected = verb.result(self._place)
        self.tally = Tally(verb.name)
        self._undisturbed()

    def _undisturbed(self) -> None:
        self._start_over()
        began = time.monotonic()
        code = self._run(lambda: self.disk.arm(self._place, Fault(0)))
        self.seconds = time.monotonic() - began
        self.tally.calls = self.disk.count()
        self.disk.disarm()
        assert code == 0, self._log.read_text(encoding="utf-8")
        assert self.verb.result(self._place) == self.expected, "the verb does not make the same twice"

    def fail(self, fault: Fault) -> None:
        """Let a call to the disk fail.

        Args:
            fault: Which, and how.
        """
        self._try(f"call {fault.number}, {fault.way.name} {os.strerror(fault.error)}", fault=fault)

    def kill(self, after: float) -> None:
        """Kill the verb.

        Args:
            after: So many seconds.
        """
        self._try(f"killed after {after:.3f} s", after=after)

    def limit(self, memory: int) -> None:
        """Let the verb have so much memory.

        Args:
            memory: Bytes beyond those that it begins with.
        """
        self._try(f"{memory / 2**20:.0f} MB", memory=memory)

    def _try(
        self, what: str, fault: Fault | None = None, after: float | None = None, memory: int | None = None
    ) -> None:
        self._start_over()

        def begin() -> None:
            if fault is not None:
                self.disk.arm(self._place, fault)
            if memory is not None:
                used = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0]) * resource.getpagesize()
                resource.setrlimit(resource.RLIMIT_AS, (used + memory, used + memory))

        code = self._run(begin, after)
        self.disk.disarm()
        self.tally.trials += 1
        is_kill = after is not None or (fault is not None and fault.way is Way.KILL)
        try:
            self._judge(code, is_kill)
        except Exception as error:  # assertions, and whatever reading the files raises
            words = self._log.read_text(encoding="utf-8", errors="replace")[-1500:]
            where = "".join(traceback.format_exception(error)[-3:])
            self.tally.failures.append(f"{self.verb.name}, {what}, code {code}:\n{where}\n{words}")

    def _judge(self, code: int, is_kill: bool) -> None:
        words = self._log.read_text(encoding="utf-8", errors="replace")
        assert "Traceback" not in words
        if code == KILLED and is_kill:
            self.tally.killed += 1
        elif code == 2:
            self.tally.refused += 1
            assert sum(line.startswith("hedged: ") for line in words.splitlines()) == 1
        else:
            self.tally.unharmed += 1
            assert code == 0
            assert self.verb.result(self._place) == self.expected
        self.verb.check_nothing_lost(self._ready, self._place)
        if code != 0:
            again = self._run(lambda: None, command=self.verb.command_again(self._place))
            assert again == 0, "the verb cannot be run again"
        assert self.verb.result(self._place) == self.expected, "the verb, run again, makes something else"
        left = [path.name for path in self._place.rglob(".*") if path.name.endswith(".part")]
        assert not left, f"left: {left}"

    def _start_over(self) -> None:
        shutil.rmtree(self._place, ignore_errors=True)
        shutil.copytree(self._ready, self._place)

    def _run(self, begin: Callable[[], Any], after: float | None = None, command: list[str] | None = None) -> int:
        """The exit code of the command in a fork of this process, which may be killed after a while."""
        words = self.verb.command(self._place) if command is None else command
        process = os.fork()
        if process == 0:
            code = 70
            try:
                with _quiet(self._log):
                    begin()
                    code = hedged(*words)
                    sys.stdout.flush()
                    sys.stderr.flush()
            finally:
                os._exit(code)
        for _ in range(PATIENCE if after is None else int(after / POLL)):
            done, status = os.waitpid(process, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            time.sleep(POLL)
        os.kill(process, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        return code if after is not None else 71


class _quiet:
    """Standard output and error into a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        self._kept = os.dup(1), os.dup(2)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for stream in (1, 2):
            os.dup2(descriptor, stream)
        os.close(descriptor)

    def __exit__(self, *_: object) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        for kept, stream in zip(self._kept, (1, 2), strict=True):
            os.dup2(kept, stream)
            os.close(kept)
