"""Verification: do two items match? Scores are match probabilities or anything that rises with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import (  # type: ignore[import-untyped]
    average_precision_score,
    roc_auc_score,
    roc_curve,
)

from hedged.errors import DataError, ValueRangeError
from hedged.metrics._arrays import BoolArray, FloatArray, check_same_length, flags, numbers


@final
@dataclass(frozen=True)
class Threshold:
    """Accept a pair as a match when its score ≥ `value`; doing so had this `balanced_accuracy`."""

    value: float
    balanced_accuracy: float


def average_precision(scores: ArrayLike, matches: ArrayLike) -> float:
    """AP = Σ_t (R_t − R_{t−1}) P_t.

    P_t and R_t are precision and recall when the pairs with one of the t highest distinct scores are taken;
    equal scores are taken together, so the order of the input does not matter. `scores`, `matches`: (n,).

    >>> average_precision([0.9, 0.8, 0.3, 0.1], [True, False, True, False])
    0.8333333333333333
    """
    return float(average_precision_score(*_truth_and_scores(scores, matches)))


def roc_auc(scores: ArrayLike, matches: ArrayLike) -> float:
    """AUC = P(s⁺ > s⁻) + ½ P(s⁺ = s⁻), s⁺ the score of a random match and s⁻ that of a random non-match.

    >>> roc_auc([0.9, 0.8, 0.3, 0.1], [True, False, True, False])
    0.75
    """
    return float(roc_auc_score(*_truth_and_scores(scores, matches)))


def balanced_accuracy(scores: ArrayLike, matches: ArrayLike, threshold: float) -> float:
    """½ P(s ≥ threshold | match) + ½ P(s < threshold | no match): chance is ½, however rare matches are.

    >>> balanced_accuracy([0.9, 0.8, 0.3, 0.1, 0.1], [True, False, True, True, False], threshold=0.2)
    0.5833333333333333
    """
    if np.isnan(threshold):
        raise ValueRangeError("threshold is NaN; expected a score, such as best_threshold(scores, matches).value")
    s, truth = _scored(scores, matches)
    accepted = s >= threshold
    return float(accepted[truth].mean() + (~accepted)[~truth].mean()) / 2


def best_threshold(scores: ArrayLike, matches: ArrayLike) -> Threshold:
    """argmax_t ½ P(s ≥ t | match) + ½ P(s < t | no match), t over the observed scores and ∞ (accept nothing).

    Choose it on validation pairs: on the pairs that chose it, its accuracy flatters.

    >>> best_threshold([0.9, 0.8, 0.3, 0.1], [True, True, False, True])
    Threshold(value=0.8, balanced_accuracy=0.8333333333333333)
    """
    fall_out, recall, thresholds = roc_curve(*_truth_and_scores(scores, matches), drop_intermediate=False)
    value = float(thresholds[np.argmax(recall - fall_out)])
    return Threshold(value, balanced_accuracy(scores, matches, value))


def _scored(scores: ArrayLike, matches: ArrayLike) -> tuple[FloatArray, BoolArray]:
    s, truth = numbers("scores", scores), flags("matches", matches)
    check_same_length(scores=s, matches=truth)
    if truth.all() or not truth.any():
        kind = "match" if truth.all() else "non-match"
        raise DataError(f"each of the {len(s)} pairs is a {kind}; expected some of both: see balanced_pairs(labels)")
    return s, truth


def _truth_and_scores(scores: ArrayLike, matches: ArrayLike) -> tuple[BoolArray, FloatArray]:
    """The arguments in scikit-learn's order. It refuses −∞, the honest log of a match probability of zero."""
    s, truth = _scored(scores, matches)
    beyond = np.finfo(np.float64).max / 4  # finite, and so are the differences
    return truth, np.clip(s, -beyond, beyond)
