"""A disk that is full while something is saved: a real one where tests may mount it, else the kernel's size limit."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli.commands import Hedged, check_refused, snapshot

from hedged.training import Run, load_config


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Let the kernel refuse to write more bytes than this to any file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for one checkpoint of the tiny run, not for two."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=88k", "tmpfs", str(disk)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no file system can be mounted here: {error}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_training_on_a_full_disk_keeps_the_last_checkpoint(hedged: Hedged, tiny: Path, small_disk: Path) -> None:
    result = hedged("train", tiny, "--out", small_disk / "run")
    check_refused(result, "cannot write", "checkpoint.safetensors", "No space left on device", "free space")
    run = small_disk / "run"
    assert Run(run).checkpoint(load_config(tiny)).step == 10
    assert {path.name for path in run.iterdir()} == {"config.toml", "log.jsonl", "checkpoint.safetensors"}


def test_a_checkpoint_that_does_not_fit(hedged: Hedged, tiny: Path, tmp_path: Path) -> None:
    with files_of_at_most(20_000):
        result = hedged("train", tiny, "--out", tmp_path / "run")
    check_refused(result, "cannot write", "checkpoint.safetensors", "File too large", "free space")
    assert {path.name for path in (tmp_path / "run").iterdir()} == {"config.toml", "log.jsonl"}


def test_a_log_that_does_not_fit(hedged: Hedged, tiny: Path, tmp_path: Path) -> None:
    with files_of_at_most(1_000):
        result = hedged("train", tiny, "--out", tmp_path / "run", "--set", "train.log_every=1")
    check_refused(result, "cannot write", "log.jsonl", "File too large", "--resume")


def test_numbers_that_do_not_fit_leave_the_old_ones(hedged: Hedged, run: Path) -> None:
    (run / "metrics.json").write_text("{}")
    before = snapshot(run)
    with files_of_at_most(500):
        result = hedged("evaluate", run)
    check_refused(result, "cannot write", "metrics.json", "Nothing was overwritten")
    assert snapshot(run) == before


@pytest.mark.parametrize("ending", ["npz", "parquet"])
def test_embeddings_that_do_not_fit_leave_the_old_ones(
    hedged: Hedged, finished_run: Path, images: list[Path], tmp_path: Path, ending: str
) -> None:
    out = tmp_path / f"old.{ending}"
    out.write_text("precious")
    before = snapshot(tmp_path)
    with files_of_at_most(500):
        result = hedged("embed", finished_run, *images, "--out", out, "--force")
    check_refused(result, "cannot write", str(out), "Nothing was overwritten")
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("option", ["--out", "--preview"])
def test_data_files_that_do_not_fit(hedged: Hedged, tmp_path: Path, option: str) -> None:
    out = tmp_path / ("index.npz" if option == "--out" else "sheet.png")
    with files_of_at_most(500):
        result = hedged("data", "ndigit", "--offline", option, out)
    check_refused(result, "cannot write", str(out))
    assert not snapshot(tmp_path)
