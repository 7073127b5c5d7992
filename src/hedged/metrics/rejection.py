"""Is uncertainty a reason to reject? It should be higher for errors than hits, for damaged than clean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from hedged.metrics._arrays import FloatArray, check_same_length, flags, numbers
from hedged.metrics.verification import roc_auc


@final
@dataclass(frozen=True, eq=False)
class RejectCurve:
    """The `error` among the kept when the most uncertain share `rejected` is refused: (n,), from 0 up."""

    rejected: FloatArray
    error: FloatArray

    @property
    def aurc(self) -> float:
        """(1/n) Σ_m error of the m least uncertain: area under the risk–coverage curve; lower is better."""
        return float(self.error.mean())


def reject_curve(uncertainty: ArrayLike, correct: ArrayLike) -> RejectCurve:
    """error(m) = (1/m) Σ_{i ≤ m} wrong_i over the m least uncertain of n items, at rejected share 1 − m/n.

    Equally uncertain items are refused in random order: `error` is the expectation, whatever the input order.

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


def uncertainty_auroc(clean: ArrayLike, corrupt: ArrayLike) -> float:
    """P(η_corrupt > η_clean) + ½ P(η_corrupt = η_clean), over a random corrupt and a random clean image.

    `clean` (n,) and `corrupt` (m,) are uncertainties, of the same images or of others.

    >>> uncertainty_auroc(clean=[0.1, 0.2], corrupt=[0.2, 0.7, 0.9])
    0.9166666666666666
    """
    low, high = numbers("clean", clean), numbers("corrupt", corrupt)
    is_corrupt = np.repeat([False, True], [len(low), len(high)])
    return roc_auc(np.concatenate([low, high]), is_corrupt)


def twin_order(clean: ArrayLike, corrupt: ArrayLike) -> float:
    """(1/n) Σ_i [η_corrupt,i > η_clean,i] + ½ [=]: how often the damaged twin is the more uncertain one.

    Entry i of both is one image, before and after damage. A tie counts half, so a constant η scores ½.

    >>> twin_order(clean=[0.1, 0.2, 0.3, 0.4], corrupt=[0.5, 0.1, 0.9, 0.4])
    0.625
    """
    low, high = numbers("clean", clean), numbers("corrupt", corrupt)
    check_same_length(clean=low, corrupt=high)
    return float(np.mean((high > low) + 0.5 * (high == low)))
