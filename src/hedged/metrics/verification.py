"""Verification: do two items match? Scores are match probabilities or anything that rises with them.

The areas are scikit-learn's, sum by sum, without its import, which takes longer than most of what is measured here; the
tests hold them against it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike

from hedged.errors import DataError, ValueRangeError
from hedged.metrics._arrays import BoolArray, FloatArray, check_same_length, flags, numbers


@final
@dataclass(frozen=True)
class Threshold:
    """A threshold on the score of a pair.

    Args:
        value: Pairs with at least this score are accepted as matches.
        balanced_accuracy: Of doing so, on the pairs that the threshold was chosen on.
    """

    value: float
    balanced_accuracy: float


def average_precision(scores: ArrayLike, matches: ArrayLike) -> float:
    """AP = Σ_t (R_t − R_{t−1}) P_t.

    P_t and R_t are precision and recall when the pairs with one of the t highest distinct scores are taken;
    equal scores are taken together, so the order of the input does not matter.

    Args:
        scores: Of the pairs, `(n,)`.
        matches: Whether each pair matches, `(n,)`.

    >>> average_precision([0.9, 0.8, 0.3, 0.1], [True, False, True, False])
    0.8333333333333333
    """
    precision, recall = precision_recall(scores, matches)
    return float(-np.sum(np.diff(recall) * precision[:-1]))


def roc_auc(scores: ArrayLike, matches: ArrayLike) -> float:
    """AUC = P(s⁺ > s⁻) + ½ P(s⁺ = s⁻), s⁺ the score of a random match and s⁻ that of a random non-match.

    Args:
        scores: Of the pairs, `(n,)`.
        matches: Whether each pair matches, `(n,)`.

    >>> roc_auc([0.9, 0.8, 0.3, 0.1], [True, False, True, False])
    0.75
    """
    counts = accepted_counts(scores, matches)
    false, true = counts.false, counts.true
    bends = np.r_[True, (np.diff(false, 2) != 0) | (np.diff(true, 2) != 0), True] if len(false) > 2 else slice(None)
    false, true = np.r_[0, false[bends]], np.r_[0, true[bends]]
    return float(np.trapezoid(true / true[-1], false / false[-1]))


class Accepted(NamedTuple):
    """How many pairs a threshold at each distinct score accepts.

    Args:
        scores: The distinct scores, highest first, `(t,)`.
        true: How many matches are accepted, `(t,)`.
        false: How many others are accepted, `(t,)`.
    """

    scores: FloatArray
    true: FloatArray
    false: FloatArray


def accepted_counts(scores: ArrayLike, matches: ArrayLike) -> Accepted:
    """What a threshold at each distinct score lets through: all that the areas and the best threshold are made of.

    Args:
        scores: Of the pairs, `(n,)`; −∞ and ∞ are scores too.
        matches: Whether each pair matches, `(n,)`.

    >>> accepted_counts([0.9, 0.1, 0.9, 0.5], [True, False, False, True])
    Accepted(scores=array([0.9, 0.5, 0.1]), true=array([1., 2., 2.]), false=array([1., 1., 2.]))
    """
    s, truth = _scored(scores, matches)
    order = np.argsort(s, kind="stable")[::-1]
    s, truth = s[order], truth[order]
    last = np.r_[np.flatnonzero(s[1:] != s[:-1]), len(s) - 1]
    true = np.cumsum(truth, dtype=np.float64)[last]
    return Accepted(s[last], true, 1 + last - true)


def precision_recall(scores: ArrayLike, matches: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Precision and recall from the lowest threshold to the highest, `(t + 1,)` each; at the end nothing is accepted.

    Args:
        scores: Of the pairs, `(n,)`.
        matches: Whether each pair matches, `(n,)`.
    """
    counts = accepted_counts(scores, matches)
    precision, recall = counts.true / (counts.true + counts.false), counts.true / counts.true[-1]
    return np.r_[precision[::-1], 1], np.r_[recall[::-1], 0]


def balanced_accuracy(scores: ArrayLike, matches: ArrayLike, threshold: float) -> float:
    """½ P(s ≥ threshold | match) + ½ P(s < threshold | no match): chance is ½, however rare matches are.

    Args:
        scores: Of the pairs, `(n,)`.
        matches: Whether each pair matches, `(n,)`.
        threshold: Pairs with at least this score are accepted.

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

    Choose it on validation pairs: on the pairs that chose it, its accuracy is optimistic.

    Args:
        scores: Of the pairs, `(n,)`.
        matches: Whether each pair matches, `(n,)`.

    >>> best_threshold([0.9, 0.8, 0.3, 0.1], [True, True, False, True])
    Threshold(value=0.8, balanced_accuracy=0.8333333333333333)
    """
    counts = accepted_counts(scores, matches)
    gain = np.r_[0, counts.true / counts.true[-1] - counts.false / counts.false[-1]]
    value = float(np.r_[np.inf, counts.scores][np.argmax(gain)])
    return Threshold(value, balanced_accuracy(scores, matches, value))


def _scored(scores: ArrayLike, matches: ArrayLike) -> tuple[FloatArray, BoolArray]:
    s, truth = numbers("scores", scores), flags("matches", matches)
    check_same_length(scores=s, matches=truth)
    if truth.all() or not truth.any():
        kind = "match" if truth.all() else "non-match"
        raise DataError(f"each of the {len(s)} pairs is a {kind}; expected some of both: see balanced_pairs(labels)")
    return s, truth
