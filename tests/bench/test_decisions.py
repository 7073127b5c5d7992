"""Decisions measured on other identities: the trial against loops, the page, and the committed numbers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from hedged import Gaussian, MatchCurve
from hedged.bench.decisions import BASELINES, CHOICES, SHARES, Items, as_json, curves, halves, measure, summary
from hedged.bench.decisions_page import write_page, write_sets
from hedged.bench.decisions_sets import lines

RESULTS = Path(__file__).parents[2] / "results" / "decisions"
COMMITTED = sorted(RESULTS.glob("*.json"))


@pytest.fixture(scope="module")
def items() -> Items:
    """Gaussians about random centres, the wider the farther off."""
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(40, 1, 3, generator=generator)
    spread = 0.02 + 0.5 * torch.rand(40, 6, 1, generator=generator) ** 2
    means = centres + spread.sqrt() * torch.randn(40, 6, 3, generator=generator)
    z = Gaussian(means.reshape(-1, 3), spread.expand(40, 6, 3).reshape(-1, 3))
    return Items(z, np.repeat(np.arange(40), 6), MatchCurve(scale=4.0, bias=3.0))


def test_halves_share_nobody(items: Items) -> None:
    splits = list(halves(items.labels))
    assert len(splits) == 20
    for known, new in splits:
        assert not set(known) & set(new)
        assert set(known) | set(new) == set(range(40))
    assert len({tuple(sorted(known)) for known, _ in splits}) == 20
    assert set(items.of(splits[0][0]).labels) == set(splits[0][0])


def test_a_trial_and_its_page(items: Items, tmp_path: Path) -> None:
    known, new = next(halves(items.labels))
    trials = [measure(items.of(known), items.of(new), seed, count=3_000) for seed in (0, 1)]
    trial = trials[0]
    assert trial == measure(items.of(known), items.of(new), 0, count=3_000)
    assert trial.ece < trial.ece_before
    assert trial.low < 0.01 < trial.high
    for name in CHOICES:
        assert len(trial.left[name]) == len(SHARES)
        assert trial.left[name][0] == pytest.approx(trial.error)  # nothing left out yet
    assert trial.at("expected error") < trial.at("trace of Σ") < trial.at("random") + 0.01
    assert trial.at("random") == pytest.approx(trial.error, abs=0.02)
    told = summary(trials)
    assert told["false_match_rate_inside"] == sum(t.inside for t in trials)
    content = told | {"command": "c", "model": "m", "data": "d", "curves": curves(trials)}
    content |= {"trials": [as_json(t) for t in trials], "validation": as_json(trial)}
    written = write_sets({"dogs": content}, tmp_path)
    assert {path.name for path in written} == {path.name for path in tmp_path.iterdir()}
    assert json.loads((tmp_path / "dogs.json").read_text())["ece"] == round(told["ece"], 5)
    page = (tmp_path / "README.md").read_text()
    assert f"| Calibration error after (at most 0.02 asked) | **{told['ece']:.4f}** |" in page
    assert (tmp_path / "decisions.png").stat().st_size > 10_000


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.stem)
def test_committed_numbers_keep_what_was_asked(path: Path) -> None:
    content = json.loads(path.read_text())
    assert content["splits"] == len(content["trials"]) == 20
    assert content["ece"] == pytest.approx(np.mean([trial["ece"] for trial in content["trials"]]), abs=1e-4)
    assert content["ece"] <= 0.02
    inside = [trial["low"] <= trial["false_match_rate"] <= trial["high"] for trial in content["trials"]]
    assert sum(inside) == content["false_match_rate_inside"] >= 17
    left = content["error_after_abstaining"]
    assert left["expected error"] <= min(left[name] for name in BASELINES)
    assert [line.name for line in lines(path.stem, content) if not line.holds] == []


def test_the_committed_page_is_that_of_the_numbers(tmp_path: Path) -> None:
    for path in COMMITTED:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    write_page(tmp_path)
    assert (tmp_path / "README.md").read_text() == (RESULTS / "README.md").read_text()
