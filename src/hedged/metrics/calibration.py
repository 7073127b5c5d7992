"""Calibration: is a match probability of 0.8 right eight times in ten? Predicted against observed matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from hedged.errors import DataError, ValueRangeError
from hedged.metrics._arrays import BoolArray, FloatArray, check_at_least, check_same_length, flags, numbers


@final
@dataclass(frozen=True, eq=False)
class Reliability:
    """Bins of equal mass, least probable first.

    Args:
        predicted: Mean predicted probability of each bin, `(bins,)`.
        observed: Share of matches in each bin, `(bins,)`.
        mass: Share of all pairs in each bin, `(bins,)`.
    """

    predicted: FloatArray
    observed: FloatArray
    mass: FloatArray

    @property
    def ece(self) -> float:
        """ECE = Σ_b mass_b |observed_b − predicted_b|: the expected calibration error."""
        return float((self.mass * np.abs(self.observed - self.predicted)).sum())


def reliability(
    probabilities: ArrayLike, matches: ArrayLike, bins: int = 15, weights: ArrayLike | None = None
) -> Reliability:
    """Predicted and observed share of matches in `bins` bins that hold the same mass of pairs.

    A pair across the border of two bins counts in both, in part. Pairs of equal prediction share their outcomes, so
    that the order of the input does not matter.

    Args:
        probabilities: Predicted probabilities of a match, `(n,)`.
        matches: Whether each pair matches, `(n,)`.
        bins: How many bins.
        weights: How much each pair counts, `(n,)`; None: all the same.

    >>> found = reliability([0.1, 0.1, 0.9, 0.7], [False, False, True, True], bins=2)
    >>> found.predicted, found.observed, round(found.ece, 2)
    (array([0.1, 0.8]), array([0., 1.]), 0.15)
    """
    p, truth, w = _predictions(probabilities, matches, weights)
    check_at_least("bins", bins, 1)
    if len(p) < bins:
        raise DataError(f"{len(p)} pairs cannot fill {bins} bins; expected more pairs or bins={len(p)}")
    level, where = np.unique(p, return_inverse=True)
    mass, matched = (np.bincount(where, weights=amount).astype(np.float64) for amount in (w, w * truth))
    edges = np.linspace(0, 1, bins + 1)
    predicted = _binned(mass, mass * level, edges)
    observed = _binned(mass, matched, edges)
    return Reliability(predicted * bins, observed * bins, np.full(bins, 1 / bins))


def brier_score(probabilities: ArrayLike, matches: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Σ_k w_k (p_k − m_k)², the mean squared error of a probability; ¼ for a constant ½.

    Args:
        probabilities: Predicted probabilities of a match, `(n,)`.
        matches: Whether each pair matches, `(n,)`.
        weights: How much each pair counts, `(n,)`; None: all the same.

    >>> brier_score([0.5, 1.0], [True, True])
    0.125
    """
    p, truth, w = _predictions(probabilities, matches, weights)
    return float((w * (p - truth) ** 2).sum())


def negative_log_likelihood(probabilities: ArrayLike, matches: ArrayLike, weights: ArrayLike | None = None) -> float:
    """−Σ_k w_k log p(m_k): log 2 for a constant ½, infinite where a certainty was wrong.

    Args:
        probabilities: Predicted probabilities of a match, `(n,)`.
        matches: Whether each pair matches, `(n,)`.
        weights: How much each pair counts, `(n,)`; None: all the same.

    >>> round(negative_log_likelihood([0.5, 0.5], [True, False]), 4)
    0.6931
    """
    p, truth, w = _predictions(probabilities, matches, weights)
    with np.errstate(divide="ignore"):
        return float(-(w * np.log(np.where(truth, p, 1 - p))).sum())


def _predictions(
    probabilities: ArrayLike, matches: ArrayLike, weights: ArrayLike | None
) -> tuple[FloatArray, BoolArray, FloatArray]:
    p, truth = numbers("probabilities", probabilities), flags("matches", matches)
    w = np.ones(len(p)) if weights is None else numbers("weights", weights)
    check_same_length(probabilities=p, matches=truth, weights=w)
    if p.min() < 0 or p.max() > 1:
        raise ValueRangeError(f"probabilities lie in [0, 1], got {p.min():g} to {p.max():g}: pass σ(x) of log-odds x")
    if w.min() < 0 or not 0 < w.sum() < np.inf:
        raise ValueRangeError("weights must not be negative, and some of them positive")
    return p, truth, w / w.sum()


def _binned(mass: FloatArray, amount: FloatArray, edges: FloatArray) -> FloatArray:
    """How much of `amount` lies between edges of cumulated `mass`, (bins,)."""
    reached = np.concatenate([[0.0], np.cumsum(mass)])
    reached[-1] = 1.0
    return np.diff(np.interp(edges, reached, np.concatenate([[0.0], np.cumsum(amount)])))
