"""`hedged train` and `hedged index build` where another process is at work: refused, with who that is."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from cli.commands import Hedged, check_refused, snapshot

from hedged._locks import owning
from hedged.errors import RunError

HERE = f"process {os.getpid()} on host {socket.gethostname()}"


def test_a_folder_that_another_trains_into(installed: Hedged, tiny: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    with owning(run / ".lock", RunError):
        before = snapshot(run)
        check_refused(installed("train", tiny, "--out", run), f"{run} is being trained into by {HERE}", "--out")
        assert snapshot(run) == before


def test_a_store_that_another_builds(installed: Hedged, finished_run: Path, images: list[Path], tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with owning(tmp_path / ".a.db.lock", RunError):
        refused = installed("index", "build", finished_run, path, *images)
        check_refused(refused, f"{path} is being built by {HERE}", "choose another file")
    assert not path.exists()


def test_a_folder_for_the_store_that_is_not_there(hedged: Hedged, finished_run: Path, images: list[Path]) -> None:
    check_refused(hedged("index", "build", finished_run, images[0].parent / "no" / "a.db", *images), "cannot write in")
