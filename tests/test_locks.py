"""Locks end with their holder, however it ends; files half written are removed once their writer is gone."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hedged import _locks
from hedged._files import remove_parts, write_atomically, write_text
from hedged._locks import owning
from hedged.errors import RunError

HOLD = """
import sys, time
from pathlib import Path
from hedged._locks import owning
from hedged._files import write_atomically
def write(part):
    part.write_text("half")
    print("half", flush=True)
    time.sleep(60)
with owning(Path(sys.argv[1]) / "lock", RuntimeError):
    write_atomically(Path(sys.argv[1]) / "file", write)
"""


def refusal(holder: str) -> RunError:
    return RunError(f"taken by {holder}")


@contextmanager
def another_holder(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds a lock and is in the middle of writing a file."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "half\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_the_holder_is_named_and_a_kill_leaves_no_lock(tmp_path: Path) -> None:
    with another_holder(tmp_path) as process:
        with pytest.raises(RunError, match=rf"taken by process {process.pid} on host {socket.gethostname()}"):
            owning(tmp_path / "lock", refusal).__enter__()
        remove_parts(tmp_path)  # not what is being written
        assert len(names(tmp_path)) == 2
        process.send_signal(signal.SIGKILL)
        process.wait()
    with owning(tmp_path / "lock", refusal):
        assert (tmp_path / "lock").read_text() == f"process {os.getpid()} on host {socket.gethostname()}"
        write_text(tmp_path / "file", "whole")
        assert names(tmp_path) == {"lock", "file"}
    assert names(tmp_path) == {"file"}


def test_only_what_was_half_written_is_removed(tmp_path: Path) -> None:
    other = tmp_path / f".other.{uuid.uuid4().hex}.part"
    for name in (other.name, f".file.{uuid.uuid4().hex}.part", f".file.{uuid.uuid4().hex}.part-wal", ".file.x.part"):
        (tmp_path / name).touch()
    write_text(tmp_path / "file", "whole")
    assert names(tmp_path) == {"file", other.name, ".file.x.part"}
    remove_parts(tmp_path)
    assert names(tmp_path) == {"file", ".file.x.part"}


def test_two_threads_are_two_holders_and_one_may_ask_twice(tmp_path: Path) -> None:
    refused: list[str] = []

    def ask() -> None:
        try:
            with owning(tmp_path / "lock", refusal):
                pass
        except RunError as error:
            refused.append(str(error))

    with owning(tmp_path / "lock", refusal), owning(tmp_path / "lock", refusal):
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
    assert refused == [f"taken by process {os.getpid()} on host {socket.gethostname()}"]
    ask()
    assert len(refused) == 1
    assert names(tmp_path) == set()


def test_one_who_waits_has_it_when_the_other_lets_go(tmp_path: Path) -> None:
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with owning(tmp_path / "lock", refusal):
            held.set()
            done.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    with pytest.raises(RunError, match="taken by process"), owning(tmp_path / "lock", refusal, wait=0.1):
        pass
    threading.Timer(0.2, done.set).start()
    with owning(tmp_path / "lock", refusal, wait=10):
        thread.join()
    assert names(tmp_path) == set()


def test_a_lock_does_not_live_on_in_a_forked_process(tmp_path: Path) -> None:
    code = (
        "import os, sys, time; from pathlib import Path; from hedged._locks import owning\n"
        "owning(Path(sys.argv[1]), RuntimeError).__enter__()\n"
        "child = os.fork()\n"
        "if child == 0: time.sleep(60)\n"
        "print(child, flush=True); os.kill(os.getpid(), 9)"
    )
    arguments = [sys.executable, "-c", code, str(tmp_path / "lock")]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.wait()
    try:
        with owning(tmp_path / "lock", refusal):
            os.kill(child, 0)  # it lives, and holds nothing
    finally:
        os.kill(child, signal.SIGKILL)


def test_where_there_are_no_locks_it_is_said_and_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(_locks, "fcntl", None)
    left = tmp_path / f".file.{uuid.uuid4().hex}.part"
    left.touch()
    with owning(tmp_path / "lock", refusal):
        write_text(tmp_path / "file", "whole")
    assert "cannot be locked" in caplog.text
    assert names(tmp_path) == {"file", left.name}  # nobody can tell whether it is being written


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"cannot write in the folder .*nowhere: No such file"):
        owning(tmp_path / "nowhere" / "lock", refusal).__enter__()


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    """In a folder that others may write to, it could lead to any file of ours."""
    (tmp_path / "precious").write_text("kept")
    (tmp_path / "lock").symlink_to(tmp_path / "precious")
    with pytest.raises(RunError, match=r"cannot write in the folder .*Choose another"):
        owning(tmp_path / "lock", refusal).__enter__()
    assert (tmp_path / "precious").read_text() == "kept"


def test_many_write_one_file_and_none_is_in_anothers_way(tmp_path: Path) -> None:
    """Each removes what the others seem to have left, while they write."""
    failures: list[BaseException] = []

    def write(text: str) -> None:
        try:
            for _ in range(50):
                write_atomically(tmp_path / "file", lambda part: part.write_text(text * 1000))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(text,)) for text in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(set((tmp_path / "file").read_text())) == 1
    assert names(tmp_path) == {"file"}
