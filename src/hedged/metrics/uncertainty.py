"""Known unknowns: does performance fall where the embedding says that it is uncertain?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from hedged.errors import DataError, ShapeError
from hedged.metrics._arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    check_at_least,
    check_same_length,
    flags,
    numbers,
)
from hedged.metrics.pairs import Pairs
from hedged.metrics.verification import average_precision, balanced_accuracy


@final
@dataclass(frozen=True, eq=False)
class UncertaintyCurve:
    """Performance by uncertainty, in bins, the least uncertain first.

    Args:
        performance: Of each bin, `(bins,)`.
        uncertainty: Mean of each bin, `(bins,)`.
        counts: Items in each bin, `(bins,)`.
    """

    performance: FloatArray
    uncertainty: FloatArray
    counts: IntArray

    @property
    def kendall(self) -> float:
        """−τ(bin index, performance), Kendall's τ-b: 1 when performance falls from each bin to the next."""
        if np.ptp(self.performance) == 0:
            return 0.0  # τ is 0/0 here, and an uncertainty that tells nothing apart earns nothing
        return kendall_tau(-np.arange(len(self.performance)), self.performance)

    @property
    def pearson(self) -> float:
        """−r(mean uncertainty, performance): 1 when performance falls on a line."""
        if np.ptp(self.performance) == 0 or np.ptp(self.uncertainty) == 0:
            return 0.0  # 0/0, as above
        return float(np.corrcoef(-self.uncertainty, self.performance)[0, 1])


ROUNDING = 1e-5  # relative: what values of single precision that should be equal may differ by


def is_constant(uncertainty: ArrayLike) -> bool:
    """Whether all items have the same η but for rounding, as points of a match curve have: then η cannot sort them.

    Args:
        uncertainty: η of each item, `(n,)`.

    >>> is_constant([0.1, 0.1 + 1e-9]), is_constant([0.1, 0.2]), is_constant([1e-9, 2e-9])
    (True, False, False)
    """
    values = numbers("uncertainty", uncertainty)
    return bool(np.ptp(values) <= ROUNDING * np.abs(values).max())


def kendall_tau(x: ArrayLike, y: ArrayLike) -> float:
    """τ-b = (concordant − discordant) / √((pairs − ties in x) (pairs − ties in y)), over all pairs of items.

    Written out, since to import SciPy's statistics takes longer than all that is measured here; for tens of items, not
    for thousands.

    Args:
        x: `(n,)`, not all equal.
        y: `(n,)`, not all equal.

    >>> round(kendall_tau([1, 2, 3, 4], [1, 3, 2, 4]), 6)
    0.666667
    """
    first, second = np.triu_indices(np.size(x), 1)
    ordered = [np.sign(v[first] - v[second]) for v in (numbers("x", x), numbers("y", y))]
    agreement = float((ordered[0] * ordered[1]).sum())
    tau = agreement / np.sqrt(np.abs(ordered[0]).sum()) / np.sqrt(np.abs(ordered[1]).sum())
    return min(1.0, max(-1.0, float(tau)))


def equal_count_bins(values: ArrayLike, bins: int = 20) -> IntArray:
    """The bin of each value, 0 … bins − 1, lowest values first: (n,). Bin sizes differ by at most one.

    Equal values keep the order of the input, even across the border of two bins.

    Args:
        values: What to bin, `(n,)`.
        bins: How many bins.

    >>> equal_count_bins([0.3, 0.1, 0.9, 0.2, 0.5], bins=2)
    array([0, 0, 1, 0, 1])
    """
    index = np.empty(np.size(values), dtype=np.intp)
    for bin_index, members in enumerate(_members(numbers("values", values), bins)):
        index[members] = bin_index
    return index


def knn_curve(uncertainty: ArrayLike, correct: ArrayLike, bins: int = 20) -> UncertaintyCurve:
    """KNN accuracy in each bin of probes, binned by η(x).

    Args:
        uncertainty: η of each probe, `(n,)`.
        correct: Whether each probe is identified, `(n,)`: see `knn_correct`.
        bins: How many bins.

    >>> curve = knn_curve([0.1, 0.2, 0.5, 0.6, 0.8, 0.9], [True, True, True, False, False, False], bins=3)
    >>> curve.performance, curve.kendall
    (array([1. , 0.5, 0. ]), 1.0)
    """
    eta, hits = numbers("uncertainty", uncertainty), flags("correct", correct)
    check_same_length(uncertainty=eta, correct=hits)
    return _curve(eta, bins, lambda members: float(hits[members].mean()))


def ap_curve(
    uncertainty: ArrayLike, pairs: Pairs, scores: ArrayLike, bins: int = 20, min_matches: int = 20
) -> UncertaintyCurve:
    """Average precision in each bin of pairs, binned by η(x₁, x₂) = ½ (η(x₁) + η(x₂)).

    Args:
        uncertainty: η of each item, `(n,)`.
        pairs: Pairs of these items; random (`random_pairs`), and enough of them for `min_matches`.
        scores: Score of each pair.
        bins: How many bins.
        min_matches: Matches that each bin must hold: the AP of a few is noise.

    >>> from hedged.metrics import random_pairs
    >>> pairs = random_pairs([0, 1] * 50, count=2000)
    >>> ap_curve(np.linspace(0, 1, 100), pairs, scores=pairs.matches, bins=2).performance
    array([1., 1.])
    """
    return _pair_curve(uncertainty, pairs, scores, bins, min_matches, average_precision)


def balanced_accuracy_curve(
    uncertainty: ArrayLike,
    pairs: Pairs,
    scores: ArrayLike,
    threshold: float,
    bins: int = 20,
    min_matches: int = 20,
) -> UncertaintyCurve:
    """Balanced accuracy at one threshold in each bin of pairs, binned as in `ap_curve`: the paper's pets.

    Args:
        uncertainty: η of each item, `(n,)`.
        pairs: Pairs of these items.
        scores: Score of each pair.
        threshold: Pairs with at least this score are accepted.
        bins: How many bins.
        min_matches: Matches that each bin must hold.

    >>> from hedged.metrics import all_pairs
    >>> pairs = all_pairs([0, 1] * 50)
    >>> balanced_accuracy_curve([0.1] * 100, pairs, pairs.matches, threshold=0.5, bins=2).performance
    array([1., 1.])
    """
    measure = partial(balanced_accuracy, threshold=threshold)
    return _pair_curve(uncertainty, pairs, scores, bins, min_matches, measure)


def _members(values: FloatArray, bins: int) -> list[IntArray]:
    """The items of each bin: `array_split` cuts them, sorted, into parts of equal size, give or take one."""
    check_at_least("bins", bins, 1)
    if len(values) < bins:
        reason = f"{len(values)} values cannot fill {bins} bins"
        raise DataError(f"{reason}; expected more values or bins={len(values)}", reason)
    return np.array_split(np.argsort(values, kind="stable"), bins)


def _curve(values: FloatArray, bins: int, perform: Callable[[IntArray], float]) -> UncertaintyCurve:
    members = _members(values, bins)
    return UncertaintyCurve(
        performance=np.array([perform(m) for m in members]),
        uncertainty=np.array([values[m].mean() for m in members]),
        counts=np.array([len(m) for m in members]),
    )


def _pair_curve(
    uncertainty: ArrayLike,
    pairs: Pairs,
    scores: ArrayLike,
    bins: int,
    min_matches: int,
    measure: Callable[[FloatArray, BoolArray], float],
) -> UncertaintyCurve:
    eta, s = numbers("uncertainty", uncertainty), numbers("scores", scores)
    check_same_length(pairs=pairs.first, scores=s)
    last = max(pairs.first.max(), pairs.second.max())
    if last >= len(eta):
        raise ShapeError(f"pairs name item {last}, uncertainty has {len(eta)} items; expected one value an item")

    def perform(members: IntArray) -> float:
        matches = pairs.matches[members]
        if matches.sum() < min_matches:
            reason = f"a bin of {len(members)} pairs holds {matches.sum()} matches"
            raise DataError(
                f"{reason}; expected {min_matches} or more: draw more, as "
                f"random_pairs(labels, count={10 * len(pairs)}), or ask for fewer bins",
                reason,
            )
        return measure(s[members], matches)

    return _curve((eta[pairs.first] + eta[pairs.second]) / 2, bins, perform)
