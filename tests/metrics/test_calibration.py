"""Calibration metrics against explicit loops, and whatever the order and the weights."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from hedged.errors import DataError, ShapeError, ValueRangeError
from hedged.metrics import brier_score, negative_log_likelihood, reliability

levels = st.sampled_from([0.1, 0.25, 0.5, 0.9])
predictions = st.lists(st.tuples(levels, st.booleans(), st.integers(1, 3)), min_size=4, max_size=12)


def slow_ece(probabilities: list[float], matches: list[bool], bins: int) -> float:
    """Sort, cut into equal parts, compare means; only for as many pairs as fill the bins, all different."""
    order = sorted(range(len(probabilities)), key=lambda k: probabilities[k])
    size, total = len(order) // bins, 0.0
    for start in range(0, len(order), size):
        part = order[start : start + size]
        gap = abs(sum(matches[k] for k in part) - sum(probabilities[k] for k in part)) / size
        total += gap / bins
    return total


@given(st.sets(st.floats(0, 1), min_size=12, max_size=12), st.lists(st.booleans(), min_size=12, max_size=12))
def test_ece_of_different_predictions_is_the_obvious_one(values: set[float], matches: list[bool]) -> None:
    probabilities = list(values)
    for bins in (1, 3, 4, 12):
        got = reliability(probabilities, matches, bins).ece
        assert got == pytest.approx(slow_ece(probabilities, matches, bins), abs=1e-9)


def ece_of_three_bins(p: ArrayLike, matches: ArrayLike, weights: ArrayLike | None = None) -> float:
    return reliability(p, matches, 3, weights).ece


@given(predictions)
def test_neither_order_nor_the_way_of_counting_matters(rows: list[tuple[float, bool, int]]) -> None:
    p, matches, times = zip(*rows, strict=True)
    order = np.random.default_rng(0).permutation(len(rows))
    repeated = np.repeat(np.arange(len(rows)), times)
    for metric in (ece_of_three_bins, brier_score, negative_log_likelihood):
        weighted = metric(p, matches, weights=times)
        assert metric(np.take(p, order), np.take(matches, order), weights=np.take(times, order)) == (
            pytest.approx(weighted)
        )
        assert metric(np.take(p, repeated), np.take(matches, repeated)) == pytest.approx(weighted)


@given(predictions)
def test_brier_and_nll_are_means(rows: list[tuple[float, bool, int]]) -> None:
    p, matches, _ = zip(*rows, strict=True)
    assert brier_score(p, matches) == pytest.approx(np.mean([(a - b) ** 2 for a, b, _ in rows]))
    logs = [-math.log(a if b else 1 - a) for a, b, _ in rows]
    assert negative_log_likelihood(p, matches) == pytest.approx(np.mean(logs))


def test_a_wrong_certainty_is_infinitely_unlikely() -> None:
    assert negative_log_likelihood([0.0, 0.5], [True, True]) == math.inf
    assert negative_log_likelihood([1.0, 0.0], [True, False]) == 0


def test_calibrated_probabilities_have_no_error() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(200_000)
    found = reliability(p, rng.random(200_000) < p)
    assert found.ece < 0.005
    assert found.mass.sum() == pytest.approx(1)
    assert (np.diff(found.predicted) > 0).all()
    assert reliability(p**3, rng.random(200_000) < p).ece == pytest.approx(1 / 4, abs=0.01)


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueRangeError, match=r"0 to 1\.5"):
        brier_score([0.0, 1.5], [True, False])
    with pytest.raises(ShapeError, match="probabilities 2, matches 1"):
        brier_score([0.1, 0.2], [True])
    with pytest.raises(DataError, match="2 pairs cannot fill 15 bins"):
        reliability([0.1, 0.2], [True, False])
    with pytest.raises(ValueRangeError, match="weights"):
        brier_score([0.1, 0.2], [True, False], weights=[0, 0])
