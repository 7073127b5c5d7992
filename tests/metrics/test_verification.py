"""Verification metrics against loops over thresholds and over pairs of pairs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from sklearn.metrics import (  # type: ignore[import-untyped]
    average_precision_score,
    precision_recall_curve,
    roc_auc_score,
)

from hedged.errors import DataError, ShapeError, ValueRangeError
from hedged.metrics import average_precision, balanced_accuracy, best_threshold, precision_recall, roc_auc

few = settings(max_examples=40)  # scikit-learn spends milliseconds on its own checks of each call
Scored = list[tuple[int, bool]]
# Few distinct scores, so that ties are the rule.
scored = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=30).filter(
    lambda pairs: len({match for _, match in pairs}) == 2
)


def slow_average_precision(pairs: Scored) -> float:
    total, recall = 0.0, 0.0
    for threshold in sorted({score for score, _ in pairs}, reverse=True):
        accepted = [match for score, match in pairs if score >= threshold]
        reached = sum(accepted) / sum(match for _, match in pairs)
        total += (reached - recall) * sum(accepted) / len(accepted)
        recall = reached
    return total


def slow_roc_auc(pairs: Scored) -> float:
    wins = [(p > n) + 0.5 * (p == n) for p, match in pairs if match for n, other in pairs if not other]
    return sum(wins) / len(wins)


def slow_balanced_accuracy(pairs: Scored, threshold: float) -> float:
    recall = [score >= threshold for score, match in pairs if match]
    refusal = [score < threshold for score, match in pairs if not match]
    return (sum(recall) / len(recall) + sum(refusal) / len(refusal)) / 2


@few
@given(scored)
def test_metrics_equal_their_oracles(pairs: Scored) -> None:
    scores, matches = zip(*pairs, strict=True)
    assert average_precision(scores, matches) == pytest.approx(slow_average_precision(pairs))
    assert roc_auc(scores, matches) == pytest.approx(slow_roc_auc(pairs))
    for threshold in (-4, -0.5, 0, 1, np.inf):
        expected = slow_balanced_accuracy(pairs, threshold)
        assert balanced_accuracy(scores, matches, threshold) == pytest.approx(expected)


@few
@given(scored)
def test_no_threshold_beats_the_best(pairs: Scored) -> None:
    scores, matches = zip(*pairs, strict=True)
    best = best_threshold(scores, matches)
    assert best.balanced_accuracy == balanced_accuracy(scores, matches, best.value)
    candidates = [*(s + shift for s in scores for shift in (-0.5, 0, 0.5)), np.inf]
    assert best.balanced_accuracy == pytest.approx(max(slow_balanced_accuracy(pairs, t) for t in candidates))


@few
@given(scored)
def test_order_of_pairs_and_monotone_maps_of_scores_do_not_matter(pairs: Scored) -> None:
    scores, matches = (np.array(column) for column in zip(*pairs, strict=True))
    shuffled = np.random.default_rng(len(pairs)).permutation(len(pairs))
    for metric in (average_precision, roc_auc):
        value = metric(scores, matches)
        assert 0 <= value <= 1
        assert metric(scores[shuffled], matches[shuffled]) == pytest.approx(value)
        assert metric(np.exp(scores / 2), matches) == pytest.approx(value)


def test_a_log_probability_of_minus_infinity_is_a_score() -> None:
    scores, matches = [-np.inf, -1e300, 0.0, np.inf], [False, True, False, True]
    assert average_precision(scores, matches) == average_precision([0, 1, 2, 3], matches)
    assert best_threshold([-np.inf, -1.0], [False, True]).value == -1.0
    reversed_scores = best_threshold([-np.inf, -1.0], [True, False])
    assert (reversed_scores.value, reversed_scores.balanced_accuracy) == (np.inf, 0.5)


def test_zeros_and_ones_are_booleans() -> None:
    assert average_precision([0.1, 0.9], [0, 1]) == 1.0


@pytest.mark.parametrize("metric", [average_precision, roc_auc, best_threshold])
@pytest.mark.parametrize(
    ("scores", "matches", "error", "message"),
    [
        ([0.1, 0.2], [True], ShapeError, "lengths differ: scores 2, matches 1"),
        ([0.1, np.nan], [True, False], ValueRangeError, "scores holds 1 NaN of 2"),
        ([0.1, 0.2], [True, True], DataError, "each of the 2 pairs is a match"),
        ([0.1, 0.2], [False, False], DataError, "each of the 2 pairs is a non-match"),
        ([0.1, 0.2], [2, 0], ValueRangeError, "matches must be True or False"),
        ([[0.1, 0.2]], [True, False], ShapeError, r"scores has shape \(1, 2\)"),
        ([], [], DataError, "scores is empty"),
    ],
)
def test_bad_input_is_named(
    metric: Callable[..., object], scores: ArrayLike, matches: ArrayLike, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        metric(scores, matches)


def test_a_threshold_of_nan_is_refused() -> None:
    with pytest.raises(ValueRangeError, match="threshold is NaN"):
        balanced_accuracy([0.1, 0.9], [False, True], np.nan)


@few
@given(seed=st.integers(0, 2**31), size=st.integers(4, 3000), levels=st.integers(2, 5000))
def test_areas_are_those_of_scikit_learn_to_the_last_digit(seed: int, size: int, levels: int) -> None:
    random = np.random.default_rng(seed)
    scores = random.integers(0, levels, size) / levels
    matches = random.random(size) < 0.1 + 0.5 * scores
    matches[:2] = True, False
    assert average_precision(scores, matches) == average_precision_score(matches, scores)
    assert roc_auc(scores, matches) == pytest.approx(roc_auc_score(matches, scores), rel=1e-14)
    precision, recall = precision_recall(scores, matches)
    expected = precision_recall_curve(matches, scores)
    np.testing.assert_array_equal(precision, expected[0])
    np.testing.assert_array_equal(recall, expected[1])
