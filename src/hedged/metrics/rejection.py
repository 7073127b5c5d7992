"""Is uncertainty a reason to reject? It should be higher for errors than hits, for damaged than clean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from hedged.metrics._arrays import FloatArray, check_same_length, flags, numbers
from hedged.metrics.pairs import Pairs
from hedged.metrics.verification import balanced_accuracy, roc_auc

DEFAULT_SHARES = tuple(np.arange(0, 51, 2) / 100)


@final
@dataclass(frozen=True, eq=False)
class RejectCurve:
    """The error of what is kept when the most uncertain items are rejected.

    Args:
        rejected: Share of items rejected, `(n,)`, from 0 up.
        error: Error among the others, `(n,)`.
    """

    rejected: FloatArray
    error: FloatArray

    @property
    def aurc(self) -> float:
        """(1/n) Σ_m error of the m least uncertain: area under the risk–coverage curve; lower is better."""
        return float(self.error.mean())


def reject_curve(uncertainty: ArrayLike, correct: ArrayLike) -> RejectCurve:
    """error(m) = (1/m) Σ_{i ≤ m} wrong_i over the m least uncertain of n items, at rejected share 1 − m/n.

    Equally uncertain items are rejected in random order: `error` is the expectation, whatever the input order.

    Args:
        uncertainty: η of each item, `(n,)`.
        correct: Whether each item was answered correctly, `(n,)`.

    >>> curve = reject_curve(uncertainty=[0.1, 0.9, 0.2, 0.5], correct=[True, False, True, True])
    >>> curve.rejected, curve.error, curve.aurc
    (array([0.  , 0.25, 0.5 , 0.75]), array([0.25, 0.  , 0.  , 0.  ]), 0.0625)
    """
    eta, hits = numbers("uncertainty", uncertainty), flags("correct", correct)
    check_same_length(uncertainty=eta, correct=hits)
    _, level, tied = np.unique(eta, return_inverse=True, return_counts=True)
    expected_wrong = (np.bincount(level, weights=~hits) / tied)[np.sort(level)]
    kept = np.arange(1, len(eta) + 1)
    return RejectCurve((1 - kept / len(eta))[::-1], (np.cumsum(expected_wrong) / kept)[::-1])


def pair_reject_curve(
    uncertainty: ArrayLike,
    pairs: Pairs,
    scores: ArrayLike,
    threshold: float,
    rejected: ArrayLike = DEFAULT_SHARES,
) -> RejectCurve:
    """1 − balanced accuracy of the pairs that are left when a share of the items, the most uncertain, is rejected.

    A pair is left if both its items are. The curve ends where no matching pair, or no other, is left.

    Args:
        uncertainty: η of each item, `(n,)`.
        pairs: Pairs of these items.
        scores: Score of each pair.
        threshold: Pairs with at least this score are accepted.
        rejected: Shares of items to reject, from 0 up.

    >>> pairs = Pairs(np.array([0, 0, 2]), np.array([1, 2, 3]), np.array([True, False, True]))
    >>> pair_reject_curve([0.1, 0.2, 0.3, 0.9], pairs, [0.9, 0.2, 0.4], threshold=0.5, rejected=[0.0, 0.25]).error
    array([0.25, 0.  ])
    """
    eta, s, shares = numbers("uncertainty", uncertainty), numbers("scores", scores), numbers("rejected", rejected)
    check_same_length(pairs=pairs.first, scores=s)
    rank = np.argsort(np.argsort(eta, kind="stable"), kind="stable")
    last = np.maximum(rank[pairs.first], rank[pairs.second])
    errors = []
    for share in shares:
        left = last < len(eta) - round(share * len(eta))
        matches = pairs.matches[left]
        if matches.all() or not matches.any():
            break
        errors.append(1 - balanced_accuracy(s[left], matches, threshold))
    return RejectCurve(shares[: len(errors)], np.array(errors))


def uncertainty_auroc(clean: ArrayLike, corrupt: ArrayLike) -> float:
    """P(η_corrupt > η_clean) + ½ P(η_corrupt = η_clean), over a random corrupt and a random clean image.

    Args:
        clean: Uncertainty of clean images, `(n,)`.
        corrupt: Uncertainty of corrupt images, of the same images or of others, `(m,)`.

    >>> uncertainty_auroc(clean=[0.1, 0.2], corrupt=[0.2, 0.7, 0.9])
    0.9166666666666666
    """
    low, high = numbers("clean", clean), numbers("corrupt", corrupt)
    is_corrupt = np.repeat([False, True], [len(low), len(high)])
    return roc_auc(np.concatenate([low, high]), is_corrupt)


def twin_order(clean: ArrayLike, corrupt: ArrayLike) -> float:
    """(1/n) Σ_i [η_corrupt,i > η_clean,i] + ½ [=]: how often the damaged twin is the more uncertain one.

    Entry i of both is one image, before and after damage. A tie counts half, so a constant η scores ½.

    Args:
        clean: Uncertainty of clean images, `(n,)`.
        corrupt: Uncertainty of corrupt images, `(n,)`.

    >>> twin_order(clean=[0.1, 0.2, 0.3, 0.4], corrupt=[0.5, 0.1, 0.9, 0.4])
    0.625
    """
    low, high = numbers("clean", clean), numbers("corrupt", corrupt)
    check_same_length(clean=low, corrupt=high)
    return float(np.mean((high > low) + 0.5 * (high == low)))
