"""Configs that cannot be: refused before a folder is made."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.commands import Hedged, check_refused, snapshot

pytestmark = pytest.mark.usefixtures("within_limits")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["train.learning_rat=1"], ["train.learning_rat: unknown key", "did you mean learning_rate?"]),
        (["trian.steps=1"], ["trian: unknown key", "did you mean train?"]),
        (["train.steps=many"], ["train.steps", "valid integer", "'many'"]),
        (["model.channels=8"], ["model.channels", "tuple", "8"]),
        (["model.head=mixture", "model.components=0"], ["model.components", "greater than or equal to 1", "got 0"]),
        (
            ["model.head=mixture", "model.components=3"],
            ["loss.samples = 8", "model.components = 3", "use a multiple of 3"],
        ),
        (["loss.beta=-1e-4"], ["loss.beta", "greater than or equal to 0", "got -0.0001"]),
        (["loss.beta=nan"], ["loss.beta", "finite"]),
        (["train.batch_size=8"], ["= 16", "more than train.batch_size = 8"]),
        (["train.seed=-1"], ["train.seed", "greater than or equal to 0", "got -1"]),
        (["data.seed=9223372036854775808"], ["data.seed", "less than"]),
        (["train.steps"], ["section.key=value", "'train.steps'"]),
        (["loss.beta=-1", "train.steps=0"], ["loss.beta", "train.steps"]),
    ],
)
def test_impossible_settings(hedged: Hedged, tiny: Path, tmp_path: Path, settings: list[str], words: list[str]) -> None:
    before = snapshot(tmp_path)
    check_refused(hedged("train", tiny, "--out", tmp_path / "run", *(f"--set={s}" for s in settings)), *words)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[train\nsteps = 1", "is not valid TOML"),
        (b"\xff\xfe", "is not valid TOML"),
        (b"train = 3", "train"),
    ],
)
def test_files_that_are_no_config(hedged: Hedged, tmp_path: Path, content: bytes, words: str) -> None:
    config = tmp_path / "config.toml"
    config.write_bytes(content)
    check_refused(hedged("train", config, "--out", tmp_path / "run"), str(config), words)
    assert not (tmp_path / "run").exists()


def test_a_missing_config_names_those_that_ship(hedged: Hedged, tmp_path: Path) -> None:
    check_refused(hedged("train", "nowhere.toml", "--out", tmp_path / "run"), "nowhere.toml", "demo, demo-offline")


def test_a_config_that_is_a_folder(hedged: Hedged, tmp_path: Path) -> None:
    check_refused(hedged("train", tmp_path, "--out", tmp_path / "run"), str(tmp_path), "cannot be read")


def test_sizes_that_no_data_can_have(hedged: Hedged, tiny: Path, tmp_path: Path) -> None:
    result = hedged("train", tiny, "--out", tmp_path / "run", "--set", "data.per_class=500")
    check_refused(result, "per_class")
