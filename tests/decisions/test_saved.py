"""A calibration is found again as it was, and only beside the model that it was made for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hedged.decisions import Calibrator, Decider, Isotonic, Policy, ScoredPairs, Temperature, load_decider
from hedged.errors import RunError

DECIDERS = [
    Decider("model", Temperature(2.0, -1.0), 0.1, Policy(-1.25, 3.5)),
    Decider("model", Isotonic((-1.0, 2.0), (-4.0, 5.0)), 0.5, Policy(0.5, 0.5)),
]


@pytest.mark.parametrize("decider", DECIDERS, ids=["temperature", "isotonic"])
def test_what_is_saved_is_found(decider: Decider, tmp_path: Path) -> None:
    path = decider.save(tmp_path, {"note": "for readers"})
    assert load_decider(tmp_path, "model") == decider
    assert json.loads(path.read_text())["report"] == {"note": "for readers"}


@pytest.mark.parametrize("policy", [Policy(-np.inf, np.inf), Policy(np.inf, np.inf), Policy(-np.inf, -np.inf)])
def test_thresholds_out_of_reach_stay_so(policy: Policy, tmp_path: Path) -> None:
    Decider("model", DECIDERS[0].calibrator, 0.5, policy).save(tmp_path)
    found = load_decider(tmp_path, "model")
    assert found is not None
    assert [found.policy.verdict(x) for x in (-1e9, 0.0, 1e9)] == [policy.verdict(x) for x in (-1e9, 0.0, 1e9)]


def test_no_calibration_is_none(tmp_path: Path) -> None:
    assert load_decider(tmp_path, "model") is None
    assert load_decider("hedged:ndigit-2d", "model") is None
    (tmp_path / "file").write_text("")
    assert load_decider(tmp_path / "file", "model") is None


def change(path: Path, key: str, value: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("model", "other", "made for another model"),
        ("format", 99, "format 99, this version of hedged reads formats 1 to 3"),
        ("base_rate", 2.0, "base_rate"),
        ("calibrator", {"kind": "magic"}, "calibrator"),
        ("calibrator", {"kind": "isotonic", "scores": [1.0, 0.0], "values": [0.0, 1.0]}, "both rising"),
        ("accept_from", -9.0, "must not be above"),
        ("accept_from", None, "accept_from"),
    ],
)
def test_files_that_cannot_be_trusted(key: str, value: Any, words: str, tmp_path: Path) -> None:
    change(DECIDERS[0].save(tmp_path), key, value)
    with pytest.raises(RunError, match=words) as caught:
        load_decider(tmp_path, "model")
    assert "hedged calibrate" in str(caught.value)


@pytest.mark.parametrize("content", ["", "[]", '{"format": 1', '{"format": 1}', "\x00"])
def test_damaged_files(content: str, tmp_path: Path) -> None:
    DECIDERS[0].save(tmp_path).write_text(content)
    with pytest.raises(RunError, match="hedged calibrate"):
        load_decider(tmp_path, "model")


@dataclass(frozen=True)
class Halved(Calibrator, kind="halved"):
    """A calibrator that this file alone knows."""

    by: float = 2.0

    @classmethod
    def fit(cls, pairs: ScoredPairs) -> Halved:
        return cls()

    def log_odds(self, scores: Any) -> Any:
        return scores / self.by

    def inverse(self, log_odds: float) -> float:
        return log_odds * self.by


def test_a_calibrator_of_your_own_is_saved_and_found(tmp_path: Path) -> None:
    decider = Decider("model", Halved(4.0), 0.5, Policy(0.0, 0.0))
    decider.save(tmp_path)
    assert load_decider(tmp_path, "model") == decider


@pytest.mark.parametrize(
    "bad", [{"by": "x"}, {"by": 1.0, "more": 2}, {"kind": "none"}, {"kind": 3}, {"by": float("inf")}]
)
def test_a_calibrator_that_is_damaged_is_refused(bad: dict[str, Any], tmp_path: Path) -> None:
    path = Decider("model", Halved(4.0), 0.5, Policy(0.0, 0.0)).save(tmp_path)
    content = json.loads(path.read_text())
    content["calibrator"] |= bad
    path.write_text(json.dumps(content))
    with pytest.raises(RunError, match="is no calibration"):
        load_decider(tmp_path, "model")
