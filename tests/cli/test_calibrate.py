"""`hedged calibrate`, and `hedged match` afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli.commands import Hedged, check_refused, snapshot
from PIL import Image

from hedged import Embedder
from hedged.decisions import load_decider


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    """A list of pairs: twelve images of noise, three shots of each."""
    folder = tmp_path / "listed"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for k in range(12):
        shot = rng.integers(0, 200, (28, 56))
        for n in range(3):
            noisy = (shot + rng.integers(0, 50, (28, 56))).astype(np.uint8)
            Image.fromarray(noisy).save(folder / f"{k}-{n}.png")
    rows = [f"{k}-{n}.png,{k}-{(n + 1) % 3}.png,1" for k in range(12) for n in range(3)]
    rows += [f"{k}-{n}.png,{j}-{n}.png,0" for k in range(12) for j in range(k) for n in range(3)]
    (folder / "pairs.csv").write_text("pathA,pathB,same\n" + "\n".join(rows) + "\n")
    return folder / "pairs.csv"


def test_calibrate_on_images_of_the_run_then_match(hedged: Hedged, run: Path, images: list[Path]) -> None:
    before = hedged("match", run, *images[:2])
    result = hedged("calibrate", run, "--false-match-rate", "0.05", "--abstain-rate", "0.2")
    assert result.code == 0, result.err
    assert "200,000 pairs of 100 identities, drawn, with repetition, from 400 clean instance images of" in result.out
    assert "kept no images for validation" in result.err
    assert "(chosen)" in result.out
    saved = json.loads((run / "calibration.json").read_text())
    assert saved["report"]["threshold"]["target"] == 0.05
    assert saved["report"]["outcome"]["abstained"] == pytest.approx(0.2, abs=0.01)
    assert saved["report"]["after"][saved["report"]["chosen"]]["ece"] < saved["report"]["before"]["ece"]
    with Image.open(run / "reliability.png") as picture:
        assert picture.width > 800
    after = hedged("match", run, *images[:2])
    assert "calibrated, where 0.5 of the pairs match" not in before.out
    assert "calibrated, where 0.5 of the pairs match" in after.out
    told = json.loads(hedged("match", run, *images[:2], "--json").out)
    assert told["decision"] in ("accept", "reject", "abstain")
    embedder = Embedder.load(run)
    decider = load_decider(run, embedder.fingerprint())
    assert decider is not None
    p = told["match_probability"]
    assert told["calibrated"]["probability"] == pytest.approx(decider.answer(np.log(p / (1 - p))).probability, abs=1e-3)


def test_calibrate_on_a_list_of_pairs(hedged: Hedged, run: Path, listed: Path) -> None:
    options = ("--pairs", listed, "--costs", "10,1,0.2", "--base-rate", "0.1", "--json")
    told = json.loads(hedged("calibrate", run, *options).out)
    assert told == json.loads((run / "calibration.json").read_text())
    assert told["report"]["pairs"] == {"matching": 36, "other": 198, "identities": 12}
    assert told["report"]["threshold"] is None
    assert told["base_rate"] == 0.1
    assert told["model"] == Embedder.load(run).fingerprint()


def test_evaluate_decides_by_the_calibration(hedged: Hedged, run: Path, listed: Path) -> None:
    without = json.loads(hedged("evaluate", run, "--json").out)
    assert "decisions" not in without
    assert hedged("calibrate", run, "--abstain-rate", "0.2").code == 0
    saved = json.loads((run / "calibration.json").read_text())
    result = hedged("evaluate", run, "--report")
    assert result.code == 0, result.err
    assert "chosen on the pairs that calibration.json was made from" in result.out
    assert "pairs left undecided" in result.out
    metrics = json.loads((run / "metrics.json").read_text())
    threshold = {"log_odds": saved["accept_from"], "chosen_on": "the pairs that calibration.json was made from"}
    assert metrics["decisions"]["threshold"] == threshold
    assert metrics["decisions"]["calibrated"]["abstained"] == pytest.approx(0.2, abs=0.05)
    assert metrics["decisions"]["calibrated"]["base_rate"] == 0.5
    assert "calibration.json was made from" in (run / "report.html").read_text()
    pairs = json.loads(hedged("evaluate", run, "--pairs", listed, "--json").out)
    assert pairs["decisions"]["threshold"] == threshold
    (run / "calibration.json").write_text(json.dumps(saved | {"model": "0" * 16}))
    check_refused(hedged("evaluate", run), "made for another model", "hedged calibrate")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--abstain-rate", "0.1", "--costs", "1,1,1"], ["--abstain-rate and --costs", "give one"]),
        (["--costs", "1,2"], ["three numbers", "'1,2'"]),
        (["--costs", "1,0,1"], ["positive numbers"]),
        (["--abstain-rate", "1"], ["[0, 1), got 1"]),
        (["--base-rate", "0"], ["between 0 and 1, got 0"]),
        (["--pairs", "nowhere.csv"], ["no list of pairs nowhere.csv"]),
        (["--pairs", "nowhere.csv", "--corrupt"], ["--corrupt", "--pairs"]),
    ],
)
def test_wrong_options(hedged: Hedged, run: Path, options: list[str], words: list[str]) -> None:
    before = snapshot(run)
    check_refused(hedged("calibrate", run, *options), *words)
    assert snapshot(run) == before


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ["lists no pair"]),
        ("0-0.png,nowhere.png,1\n", ["nowhere.png"]),
        ("0-0.png,0-1.png,maybe\n", ["row 1", "maybe"]),
        ("0-0.png,0-1.png,1\n0-0.png,1-1.png,0\n", ["1 matching and 1 other pairs", "too few"]),
        ("0-0.png,0-1.png,1\n0-1.png,0-2.png,1\n0-0.png,0-2.png,0\n", ["pair 3", "said not to match"]),
    ],
)
def test_lists_that_cannot_be_used(hedged: Hedged, run: Path, listed: Path, content: str, words: list[str]) -> None:
    listed.write_text("pathA,pathB,same\n" + content)
    before = snapshot(run)
    check_refused(hedged("calibrate", run, "--pairs", listed), *words)
    assert snapshot(run) == before


def test_a_rate_too_low_to_be_seen(hedged: Hedged, run: Path, listed: Path) -> None:
    check_refused(hedged("calibrate", run, "--pairs", listed, "--false-match-rate", "0.0001"), "at least 10000")
    check_refused(hedged("calibrate", "hedged:ndigit-2d", "--pairs", listed), "ships with hedged", "a copy")
    assert not (run / "calibration.json").exists()


def test_a_calibration_of_another_model(hedged: Hedged, run: Path, images: list[Path]) -> None:
    content = {"format": 1, "model": "another", "calibrator": {"kind": "temperature", "temperature": 1.0, "shift": 0.0}}
    content |= {"base_rate": 0.5, "reject_below": 0.0, "accept_from": 0.0, "report": {}}
    (run / "calibration.json").write_text(json.dumps(content))
    check_refused(hedged("match", run, *images[:2]), "made for another model", "hedged calibrate")
