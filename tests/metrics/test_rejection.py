"""Rejection against every order of ties, and against every pair of images."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedged.errors import ShapeError, ValueRangeError
from hedged.metrics import (
    all_pairs,
    balanced_accuracy,
    pair_reject_curve,
    reject_curve,
    twin_order,
    uncertainty_auroc,
)

levels = st.sampled_from([0.1, 0.2, 0.4])


def slow_errors(items: list[tuple[float, bool]]) -> list[float]:
    """Error after 0, 1, … rejections, averaged over all orders of the items that sort by uncertainty."""
    orders = [o for o in permutations(items) if [eta for eta, _ in o] == sorted(eta for eta, _ in items)]
    kept = range(len(items), 0, -1)
    return [float(np.mean([np.mean([not hit for _, hit in order[:m]]) for order in orders])) for m in kept]


@given(st.lists(st.tuples(levels, st.booleans()), min_size=1, max_size=5))
def test_error_is_the_expectation_over_the_orders_of_ties(items: list[tuple[float, bool]]) -> None:
    eta, correct = zip(*items, strict=True)
    curve = reject_curve(eta, correct)
    assert curve.error.tolist() == pytest.approx(slow_errors(items))
    assert curve.rejected.tolist() == pytest.approx([r / len(items) for r in range(len(items))])
    assert curve.aurc == pytest.approx(np.mean(slow_errors(items)))


def test_no_order_has_a_lower_aurc_than_errors_last() -> None:
    correct = np.array([True, False, True, True, False])
    best = reject_curve(~correct, correct).aurc
    assert all(best <= reject_curve(order, correct).aurc + 1e-12 for order in permutations(range(5)))


@given(clean=st.lists(levels, min_size=1, max_size=8), corrupt=st.lists(levels, min_size=1, max_size=8))
def test_auroc_counts_pairs_of_images(clean: list[float], corrupt: list[float]) -> None:
    wins = [(high > low) + 0.5 * (high == low) for low, high in product(clean, corrupt)]
    assert uncertainty_auroc(clean, corrupt) == pytest.approx(np.mean(wins))


@given(st.lists(st.tuples(levels, levels), min_size=1, max_size=8))
def test_twin_order_counts_twins(twins: list[tuple[float, float]]) -> None:
    clean, corrupt = zip(*twins, strict=True)
    wins = [(high > low) + 0.5 * (high == low) for low, high in twins]
    assert twin_order(clean, corrupt) == pytest.approx(np.mean(wins))
    assert twin_order(corrupt, clean) == pytest.approx(1 - np.mean(wins))


def test_bad_input_is_named() -> None:
    with pytest.raises(ShapeError, match="clean 2, corrupt 1"):
        twin_order([0.1, 0.2], [0.3])
    with pytest.raises(ValueRangeError, match="corrupt holds 1 NaN"):
        uncertainty_auroc([0.1], [np.nan])
    with pytest.raises(ShapeError, match="uncertainty 2, correct 1"):
        reject_curve([0.1, 0.2], [True])


def test_rejecting_items_against_counting_again() -> None:
    generator = np.random.default_rng(0)
    labels, eta = generator.integers(0, 6, 40), generator.random(40)
    pairs = all_pairs(labels)
    scores = pairs.matches + 2 * generator.random(len(pairs)) * (eta[pairs.first] + eta[pairs.second])
    curve = pair_reject_curve(eta, pairs, scores, threshold=1.0, rejected=[0, 0.25, 0.5])
    for share, error in zip(curve.rejected, curve.error, strict=True):
        kept = set(np.argsort(eta)[: 40 - round(40 * share)].tolist())
        left = np.array([i in kept and j in kept for i, j in zip(pairs.first, pairs.second, strict=True)])
        assert error == pytest.approx(1 - balanced_accuracy(scores[left], pairs.matches[left], 1.0))
    assert curve.error[-1] < curve.error[0]
