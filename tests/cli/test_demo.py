"""The demo, on a config that takes a second."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.commands import TINY, Hedged, check_refused, snapshot

from hedged.training import config as training_config
from hedged.training import load_config, shipped_config


@pytest.fixture
def tiny_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Configs of the same names, and a folder to work in."""
    configs = tmp_path / "configs"
    configs.mkdir()
    (configs / "demo-offline.toml").write_text(TINY)
    (configs / "demo.toml").write_text(TINY.replace("steps = 20", "steps = 21"))
    monkeypatch.setattr(training_config, "CONFIGS", configs)
    return tmp_path / "demo"


def test_demo_writes_numbers_and_a_report_and_names_the_stand_in(hedged: Hedged, tiny_demo: Path) -> None:
    result = hedged("demo", "--offline", "--out", tiny_demo)
    assert result.code == 0, result.err
    assert "measured" in result.out
    assert "0.989" in result.out  # the paper's verification AP of clean images
    assert "NOT MNIST" in result.out
    assert "NOT MNIST" in result.err
    assert "stand-in" in (tiny_demo / "report.html").read_text()
    metrics = json.loads((tiny_demo / "metrics.json").read_text())
    assert set(metrics["verification_ap"]) == {"clean", "corrupt"}
    assert set(metrics["seconds"]) == {"training", "evaluation"}


def test_demo_twice_measures_the_same_model_again(hedged: Hedged, tiny_demo: Path, run: Path) -> None:
    before = snapshot(run)
    result = hedged("demo", "--offline", "--out", run, "--json")
    assert "holds the trained demo already" in result.err
    assert json.loads(result.out)["settings"]["data"]["source"] == "offline"
    assert snapshot(run).items() >= before.items()


def test_demo_goes_on_with_an_unfinished_run(hedged: Hedged, tiny_demo: Path, run: Path) -> None:
    before = snapshot(run)
    (run / "model.json").unlink()
    (run / "model.safetensors").unlink()
    result = hedged("demo", "--offline", "--out", run)
    assert result.code == 0, result.err
    assert "unfinished" in result.err
    assert snapshot(run).items() >= before.items()


@pytest.mark.parametrize("unfinished", [False, True])
def test_demo_refuses_a_folder_with_another_run(hedged: Hedged, tiny_demo: Path, run: Path, unfinished: bool) -> None:
    if unfinished:
        (run / "model.json").unlink()
    before = snapshot(run)
    check_refused(hedged("demo", "--out", run), str(run), "folder")
    assert snapshot(run) == before


@pytest.mark.parametrize("name", ["demo", "demo-offline"])
def test_configs_that_ship_are_valid_and_say_what_to_expect(name: str) -> None:
    path = shipped_config(name)
    config = load_config(path)
    assert (config.ndigit.digits, config.model.dim, config.model.head) == (2, 2, "gaussian")
    for words in ("# ", "command", "run time", "expected"):
        assert words in path.read_text()
    assert "TODO" not in path.read_text()
