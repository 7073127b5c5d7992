"""Run folders, models and checkpoints that cannot be used: refused, and left as they are."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.commands import Hedged, check_refused, snapshot
from safetensors.torch import load_file, save_file

from hedged.training import Run
from hedged.training.checkpoint import read_checkpoint

pytestmark = pytest.mark.usefixtures("within_limits")


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def of_another_version(path: Path) -> None:
    if path.suffix == ".json":
        path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 99}))
        return
    checkpoint = read_checkpoint(path)
    metadata = {"format": "99", "step": str(checkpoint.step), "digest": checkpoint.digest}
    save_file(checkpoint.tensors, path, metadata)


def of_another_model(path: Path) -> None:
    """The weights or the state of a wider network, saved under the same name."""
    if path == Run(path.parent).checkpoint_file:
        checkpoint = read_checkpoint(path)
        wider = {
            name: tensor.repeat(2, *[1] * (tensor.ndim - 1)) if tensor.ndim else tensor
            for name, tensor in checkpoint.tensors.items()
        }
        save_file(wider, path, {"format": "1", "step": "10", "fingerprint": checkpoint.digest})
    else:
        save_file({name: t.repeat(2) if t.ndim == 1 else t for name, t in load_file(path).items()}, path)


@pytest.mark.parametrize(
    ("damage", "file", "words"),
    [
        (truncated, "model.safetensors", ["damaged or truncated", "train the model again"]),
        (truncated, "model.json", ["cannot be read", "train the model again"]),
        (of_another_version, "model.json", ["format 99", "reads formats 1 to 2", "train the model again"]),
        (of_another_model, "model.safetensors", ["another model", "model.json", "train the model again"]),
    ],
)
def test_models_that_cannot_be_used(
    hedged: Hedged, run: Path, images: list[Path], damage: Callable[[Path], None], file: str, words: list[str]
) -> None:
    damage(run / file)
    before = snapshot(run)
    check_refused(hedged("evaluate", run), file, *words)
    check_refused(hedged("match", run, *images[:2]), file, *words)
    check_refused(hedged("embed", run, *images, "--out", run / "out.npz"), file, *words)
    assert snapshot(run) == before


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (truncated, ["damaged or truncated", "new folder"]),
        (of_another_version, ["format 99", "reads format 1", "new folder"]),
        (of_another_model, ["another model", "new folder"]),
    ],
)
def test_checkpoints_that_cannot_be_resumed(
    hedged: Hedged, run: Path, damage: Callable[[Path], None], words: list[str]
) -> None:
    damage(run / "checkpoint.safetensors")
    before = snapshot(run)
    check_refused(hedged("train", run / "config.toml", "--out", run, "--resume"), str(run), *words)
    assert snapshot(run) == before


def test_resuming_with_another_config(hedged: Hedged, run: Path) -> None:
    before = snapshot(run)
    result = hedged("train", run / "config.toml", "--out", run, "--resume", "--set", "model.dim=5")
    check_refused(result, "another config", str(run / "config.toml"))
    assert snapshot(run) == before


def test_resuming_what_is_not_there_leaves_nothing_behind(hedged: Hedged, tiny: Path, tmp_path: Path) -> None:
    check_refused(hedged("train", tiny, "--out", tmp_path / "run", "--resume"), "no checkpoint", "without --resume")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("missing", [None, "checkpoint.safetensors", "model.json"])
def test_a_folder_that_holds_a_run_already(hedged: Hedged, tiny: Path, run: Path, missing: str | None) -> None:
    if missing:
        (run / missing).unlink()
    before = snapshot(run)
    check_refused(hedged("train", tiny, "--out", run), str(run), "already holds a run", "--resume", "--out")
    assert snapshot(run) == before


@pytest.mark.parametrize("kind", ["below a file", "read-only"])
def test_a_folder_that_cannot_be_written(hedged: Hedged, tiny: Path, tmp_path: Path, kind: str) -> None:
    locked = tmp_path / "locked"
    if kind == "below a file":
        locked.write_text("a file")
    elif os.geteuid() == 0:
        pytest.skip("nothing is read-only for root")
    else:
        locked.mkdir(mode=0o500)
    before = snapshot(tmp_path)
    for verb in (["train", tiny], ["demo", "--offline"]):
        check_refused(hedged(*verb, "--out", locked / "run"), str(locked / "run"), "cannot write", "choose another")
    assert snapshot(tmp_path) == before


def test_a_run_that_is_missing_or_not_finished(hedged: Hedged, run: Path, tmp_path: Path) -> None:
    check_refused(hedged("evaluate", tmp_path / "nowhere"), "nowhere", "holds no model", "hedged train")
    file = run / "config.toml"
    check_refused(hedged("match", file, file, file), f"{file} is a file, not a model", "give the folder")
    (run / "model.json").unlink()
    check_refused(hedged("evaluate", run), "not finished", f"--out {run} --resume")


def test_a_run_whose_config_is_of_another_model(hedged: Hedged, run: Path) -> None:
    config = run / "config.toml"
    config.write_text(config.read_text().replace("dim = 2", "dim = 3"))
    before = snapshot(run)
    check_refused(hedged("evaluate", run), "another config", "restore")
    config.unlink()
    check_refused(hedged("evaluate", run), "without its config.toml", "`hedged train` or `hedged retrofit` has filled")
    assert snapshot(run).items() <= before.items()


def test_a_test_set_that_the_split_does_not_have(hedged: Hedged, run: Path) -> None:
    check_refused(hedged("evaluate", run, "--split", "unseen"), "test sets are instance", "--split")
