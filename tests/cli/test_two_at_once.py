"""`hedged train` and `hedged index build` where another process is at work: refused, with who that is."""

from __future__ import annotations

import os
import socket
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Timer

import numpy as np
import pytest
from cli.commands import Hedged, Result, check_refused, snapshot
from vectors import write_vectors

from hedged._locks import owning
from hedged.cli import _output
from hedged.errors import RunError
from hedged.search import open_store

HERE = f"process {os.getpid()} on host {socket.gethostname()}"


def test_a_folder_that_another_trains_into(installed: Hedged, tiny: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    with owning(run / ".lock", RunError):
        before = snapshot(run)
        check_refused(installed("train", tiny, "--out", run), f"{run} is being trained into by {HERE}", "--out")
        assert snapshot(run) == before


def test_a_folder_that_another_fits_a_head_into(hedged: Hedged, tmp_path: Path) -> None:
    run, vectors = tmp_path / "run", write_vectors(tmp_path)
    run.mkdir()

    def fit() -> Result:
        return hedged("retrofit", vectors, "--out", run, "--validation-share", 0.4)

    with ThreadPoolExecutor(1) as another, owning(run / ".lock", RunError):
        before = snapshot(run)
        refused = another.submit(fit).result()
        check_refused(refused, f"{run} is being trained into by {HERE}", "--out")
        assert snapshot(run) == before
    np.savez(vectors_of_one := tmp_path / "one.npz", features=np.eye(4), labels=["a"] * 4)
    check_refused(hedged("retrofit", vectors_of_one, "--out", tmp_path / "new"), "identit")
    assert not (tmp_path / "new").exists()  # nothing is left of what failed


def test_a_store_that_another_builds(installed: Hedged, finished_run: Path, images: list[Path], tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with owning(tmp_path / ".a.db.lock", RunError):
        refused = installed("index", "build", finished_run, path, *images)
        check_refused(refused, f"{path} is being built by {HERE}", "choose another file")
    assert not path.exists()


def test_a_file_that_another_writes(hedged: Hedged, finished_run: Path, images: list[Path], tmp_path: Path) -> None:
    store = tmp_path / "a.db"
    assert hedged("index", "build", finished_run, store, *images).code == 0
    verbs: dict[str, list[object]] = {
        "a.npz": ["embed", finished_run, *images, "--out"],
        "a.csv": ["cluster", store, "--out"],
        "a.onnx": ["export", finished_run, "--onnx"],
        "b.npz": ["data", "ndigit", "--offline", "--out"],
        "a.png": ["data", "ndigit", "--offline", "--preview"],
        "a.html": ["index", "audit", store, "--page"],
    }
    for name, verb in verbs.items():
        path = tmp_path / name
        for force in ([], ["--force"]):
            with ThreadPoolExecutor(1) as another, owning(tmp_path / f".{name}.lock", RunError):
                refused = another.submit(hedged, *verb, path, *force).result()
            check_refused(refused, f"{path} is being written by {HERE}: wait until it is done")
            assert not path.exists()


def test_of_two_that_write_one_file_the_second_is_refused(
    hedged: Hedged, finished_run: Path, images: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first is done when the second has looked and gets the lock."""
    out, refuse = tmp_path / "a.npz", _output.refuse_overwriting
    looks = []

    def look(path: Path | None, force: bool) -> None:
        refuse(path, force)
        looks.append(path)
        out.write_text("of the first")

    monkeypatch.setattr(_output, "refuse_overwriting", look)
    check_refused(hedged("embed", finished_run, *images, "--out", out), "exists already")
    assert (looks, out.read_text()) == ([out], "of the first")


@pytest.mark.parametrize("is_done", [False, True])
def test_a_store_that_another_writes_to_is_waited_for_with_a_limit(
    hedged: Hedged,
    finished_run: Path,
    images: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_done: bool,
) -> None:
    path = tmp_path / "a.db"
    assert hedged("index", "build", finished_run, path, images[0]).code == 0
    monkeypatch.setattr("hedged.search.engines._sqlite_file.TIMEOUT_SECONDS", 30 if is_done else 0.2)
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as another:
        for verb in (["index", "add", finished_run, path, images[1]], ["index", "remove", path, images[0]]):
            another.execute("BEGIN IMMEDIATE")
            if is_done:
                Timer(0.3, another.rollback).start()
                assert hedged(*verb).code == 0
            else:
                check_refused(hedged(*verb), "is being written by another process", "try again when that is done")
                another.rollback()
    with open_store(path) as store:
        assert {row.id for batch in store.batches() for row in batch.described} == {str(images[1 if is_done else 0])}


def test_a_folder_for_the_store_that_is_not_there(hedged: Hedged, finished_run: Path, images: list[Path]) -> None:
    check_refused(hedged("index", "build", finished_run, images[0].parent / "no" / "a.db", *images), "cannot write in")
