"""Streams that are closed or full, Ctrl-C before anything began, names that are no text; and bugs, which are shown."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cli.commands import Hedged, Result, check_refused
from PIL import Image

from hedged.cli.drift import _is_store as is_store
from hedged.data.photos.listing import list_photos
from hedged.errors import ConfigError
from hedged.search import parse_where

PROGRAM = "from hedged.cli import main; main()"
INTERRUPT_IMPORTS = f"""
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == interrupted:
            os.kill(os.getpid(), signal.SIGINT)
interrupted = sys.argv.pop(1)
sys.modules.pop(interrupted, None)  # gc is there from the start
sys.meta_path.insert(0, Finder())
signal.signal(signal.SIGINT, signal.default_int_handler)
{PROGRAM}
"""
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}


def test_streams_that_are_closed_or_full(tmp_path: Path) -> None:
    full = "hedged: cannot write to standard output: No space left on device; send it elsewhere"
    closed = "hedged: cannot write to standard output: Bad file descriptor; send it elsewhere"
    for command, code, err in (
        ("--version >&-", 2, closed),
        ("--version >/dev/full", 2, full),
        ("--version 2>&-", 0, ""),
        ("index info nothing.db 2>/dev/full", 2, ""),
        ("index info nothing.db >&- 2>&-", 2, ""),
        ("index info nothing.db <&- >&-", 2, "hedged: there is no store nothing.db"),
    ):
        words = [sys.executable, "-c", PROGRAM]
        line = " ".join(f"'{word}'" for word in words) + f" {command}"
        done = subprocess.run(
            line, shell=True, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False
        )
        assert (command, done.returncode, done.stderr[: len(err)]) == (command, code, err)
        assert "Traceback" not in done.stderr
        assert not list(tmp_path.iterdir())


def test_nobody_has_to_be_told_of_progress(tmp_path: Path) -> None:
    Image.fromarray(np.zeros((28, 56), np.uint8)).save(tmp_path / "a.png")
    words = f"'{sys.executable}' -c '{PROGRAM}' embed hedged:ndigit-2d a.png --out a.npz 2>/dev/full"
    done = subprocess.run(
        words, shell=True, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (0, "embedded 1 image into a.npz\n")


def test_a_name_that_is_no_text_is_told(hedged: Hedged, tmp_path: Path) -> None:
    vectors = tmp_path / "v\udcff.npz"
    np.savez(tmp_path / "v.npz", features=np.eye(4), labels=["a", "a", "b", "b"])
    (tmp_path / "v.npz").rename(vectors)
    check_refused(
        hedged("retrofit", vectors, "--out", tmp_path / "head"), "v\\xff.npz is no text in UTF-8", "rename it"
    )


def test_a_pipe_is_not_waited_for_to_see_whether_it_is_a_store(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert not is_store(str(tmp_path / "pipe"))


def test_a_folder_that_was_deleted_under_ones_feet(tmp_path: Path) -> None:
    command = f"mkdir gone && cd gone && rmdir ../gone && '{sys.executable}' -c '{PROGRAM}' match run a.png b.png"
    done = subprocess.run(
        command, shell=True, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False
    )
    check_refused(Result(done.returncode, done.stdout, done.stderr), "the current folder was deleted")


@pytest.mark.parametrize(
    "name", ["gc", "typer", "hedged.cli.match", "numpy", "torch", "torch.nn", "hedged.models.embedder"]
)
def test_ctrl_c_while_it_starts(name: str) -> None:
    command = [sys.executable, "-c", INTERRUPT_IMPORTS, name, "match", "hedged:ndigit-2d", "a.png", "b.png"]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "hedged: interrupted before it began\n")


def test_names_that_are_no_text(hedged: Hedged, finished_run: Path, images: list[Path], tmp_path: Path) -> None:
    odd = tmp_path / "photos"
    for i, name in enumerate((b"b\xffb", b"b\xfeb")):
        folder = Path(os.fsdecode(os.path.join(os.fsencode(odd), name)))
        folder.mkdir(parents=True)
        shutil.copy(images[i], folder / "a.png")
    assert sorted(list_photos(odd).identities) == ["b\\xfeb", "b\\xffb"]
    store = tmp_path / "a.db"
    assert hedged("index", "build", finished_run, store, odd, "--folder-labels").code == 0
    found = hedged("search", finished_run, store, images[0], "--json")
    assert found.code == 0
    assert '"b\\\\xffb"' in found.out
    bad = os.fsdecode(b"\xff")
    check_refused(hedged("search", finished_run, store, images[0], "--where", f"label={bad}"), "text in UTF-8")
    check_refused(hedged("match", finished_run, images[0], tmp_path / bad), "there is no image")
    check_refused(hedged("index", "info", tmp_path / bad), "there is no store")
    assert hedged("index", "remove", store, bad).code == 0
    with pytest.raises(ConfigError, match="text in UTF-8"):
        parse_where(f"{bad}=1")
