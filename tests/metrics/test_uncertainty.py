"""Uncertainty–performance curves against bins filled by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from hedged.errors import DataError, ShapeError, ValueRangeError
from hedged.metrics import (
    UncertaintyCurve,
    ap_curve,
    average_precision,
    balanced_accuracy,
    balanced_accuracy_curve,
    equal_count_bins,
    kendall_tau,
    knn_curve,
    random_pairs,
    repeat,
)

RNG_SEED = 3


def slow_bins(values: list[float], bins: int) -> list[list[int]]:
    """Deal the sorted items out; the first bins take what is left over."""
    order = sorted(range(len(values)), key=lambda i: (values[i], i))
    filled: list[list[int]] = []
    for b in range(bins):
        size = len(values) // bins + (b < len(values) % bins)
        filled.append(order[:size])
        order = order[size:]
    return filled


def slow_kendall(performance: list[float]) -> float:
    """τ-b by counting pairs of bins; bins have no ties, performance may."""
    pairs = [(i, j) for j in range(len(performance)) for i in range(j)]
    falls = sum(np.sign(performance[i] - performance[j]) for i, j in pairs)
    untied = sum(performance[i] != performance[j] for i, j in pairs)
    return float(falls / np.sqrt(untied * len(pairs))) if untied else 0.0


def curve_of(performance: list[float]) -> UncertaintyCurve:
    bins = len(performance)
    return UncertaintyCurve(np.array(performance), np.linspace(0, 1, bins), np.full(bins, 5))


@given(values=st.lists(st.sampled_from([0.0, 0.1, 0.5, 0.7]), min_size=5, max_size=60), bins=st.integers(1, 5))
def test_bins_are_filled_as_by_hand(values: list[float], bins: int) -> None:
    index = equal_count_bins(values, bins)
    assert [np.flatnonzero(index == b).tolist() for b in range(bins)] == [sorted(b) for b in slow_bins(values, bins)]
    assert np.ptp(np.bincount(index, minlength=bins)) <= 1
    assert (np.diff(index[np.argsort(values, kind="stable")]) >= 0).all()


@given(st.lists(st.sampled_from([0.2, 0.5, 0.6, 0.9]), min_size=2, max_size=20))
def test_kendall_counts_pairs_of_bins(performance: list[float]) -> None:
    assert curve_of(performance).kendall == pytest.approx(slow_kendall(performance))


def test_correlation_is_positive_when_performance_falls() -> None:
    falling, rising, flat = curve_of([0.9, 0.8, 0.1]), curve_of([0.1, 0.2, 0.9]), curve_of([0.5] * 3)
    assert (falling.kendall, rising.kendall, flat.kendall) == (1.0, -1.0, 0.0)
    assert falling.pearson > 0.9
    assert rising.pearson < -0.9
    assert flat.pearson == curve_of([0.5]).kendall == curve_of([0.5]).pearson == 0.0


def test_knn_curve_is_the_accuracy_of_each_bin() -> None:
    rng = np.random.default_rng(RNG_SEED)
    eta = rng.random(103)
    correct = rng.random(103) > eta
    curve = knn_curve(eta, correct)
    bins = slow_bins(eta.tolist(), 20)
    assert curve.performance.tolist() == [correct[b].mean() for b in bins]
    assert curve.uncertainty == pytest.approx(np.array([eta[b].mean() for b in bins]))
    assert curve.counts.tolist() == [len(b) for b in bins]
    assert curve.kendall > 0.3


def test_pair_curves_measure_each_bin_of_mean_uncertainty() -> None:
    rng = np.random.default_rng(RNG_SEED)
    labels, eta = rng.integers(0, 5, 60), rng.random(60)
    pairs = random_pairs(labels, count=8_000)
    mean = [(eta[i] + eta[j]) / 2 for i, j in zip(pairs.first, pairs.second, strict=True)]
    scores = pairs.matches + rng.normal(size=8_000) * 2 * np.array(mean)
    bins = slow_bins(mean, 20)
    ap = ap_curve(eta, pairs, scores)
    assert ap.performance.tolist() == [average_precision(scores[b], pairs.matches[b]) for b in bins]
    assert ap.kendall > 0.5
    balanced = balanced_accuracy_curve(eta, pairs, scores, threshold=0.5)
    assert balanced.performance.tolist() == [balanced_accuracy(scores[b], pairs.matches[b], 0.5) for b in bins]
    assert balanced.kendall > 0.5


def test_repeat_passes_the_seeds() -> None:
    result = repeat(lambda seed: 2.0 * seed, times=3)
    assert (result.values, result.mean) == ((0.0, 2.0, 4.0), 2.0)
    assert result.std == pytest.approx(np.sqrt(8 / 3))
    assert repeat(lambda seed: 0.5, times=1).std == 0.0
    assert len(repeat(float).values) == 10


def test_too_few_matches_or_values_are_refused() -> None:
    pairs = random_pairs(np.arange(50) // 2, count=1_000)
    with pytest.raises(DataError, match=r"expected 20 or more: draw more, .* count=10000"):
        ap_curve(np.linspace(0, 1, 50), pairs, np.zeros(1_000))
    with pytest.raises(ShapeError, match=r"pairs name item 49, uncertainty has 10 items"):
        ap_curve(np.linspace(0, 1, 10), pairs, np.zeros(1_000))
    with pytest.raises(ShapeError, match="pairs 1000, scores 10"):
        ap_curve(np.linspace(0, 1, 50), pairs, np.zeros(10))
    with pytest.raises(DataError, match="3 values cannot fill 20 bins"):
        equal_count_bins([1, 2, 3])
    with pytest.raises(ValueRangeError, match="bins is 0"):
        equal_count_bins([1, 2, 3], bins=0)
    with pytest.raises(ShapeError, match="uncertainty 3, correct 2"):
        knn_curve([1, 2, 3], [True, False], bins=1)
    with pytest.raises(ValueRangeError, match="times is 0"):
        repeat(float, times=0)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=40))
def test_kendalls_tau_is_scipys_to_the_last_digit(pairs: list[tuple[int, int]]) -> None:
    x, y = zip(*pairs, strict=True)
    if len(set(x)) > 1 and len(set(y)) > 1:
        assert kendall_tau(x, y) == kendalltau(x, y).statistic
