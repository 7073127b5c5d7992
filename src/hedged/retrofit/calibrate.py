"""A straight line through log-odds: the c and κ of c + κx that held-out pairs make likeliest."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Floats = NDArray[np.floating[Any]]
Flags = NDArray[np.bool_]
LEAST_TEMPER = 1e-3
PRIOR_PAIRS = 20.0  # pairs that speak for κ = 1 and c = 0 before any was seen


class Line(NamedTuple):
    """c and κ of log-odds c + κ·log BF."""

    log_odds: float
    temper: float


def fit_line(factors: Floats, matches: Flags, weights: Floats, scale: float = 1.0, balanced: bool = True) -> Line:
    """The c and κ > 0 of least balanced cross-entropy: half of the weight is on matching pairs.

    Args:
        factors: log Bayes factors of pairs, (n,).
        matches: whether they match, (n,).
        weights: how much each counts, (n,); clean and poor pairs count alike if their weights have like sums.
        scale: the κ that is expected; a weak pull towards it keeps few pairs from driving κ to infinity.
        balanced: whether matching pairs count as much as all others together.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(20_000) < 0.5
    >>> factors = 4 * (rng.normal(size=20_000) + np.where(truth, 1, -1))  # honest log-odds: half of it
    >>> round(fit_line(factors, truth, np.ones(20_000)).temper, 1)
    0.5
    """
    w = weights / weights.sum()
    if balanced:
        w = weights * np.where(matches, 0.5 / weights[matches].sum(), 0.5 / weights[~matches].sum())
    pull = PRIOR_PAIRS / max(len(factors), 1) * 0.01

    def cost(p: Floats) -> tuple[float, Floats]:
        temper = np.exp(p[1])
        logit = p[0] + temper * factors
        signed = np.where(matches, -logit, logit)
        slope = w * np.where(matches, -1, 1) * _sigmoid(signed)
        away = p[1] - np.log(scale)
        value = (w * np.logaddexp(0, signed)).sum() + pull * (away**2 + p[0] ** 2)
        return value, np.array([slope.sum() + 2 * pull * p[0], (slope * factors).sum() * temper + 2 * pull * away])

    found = minimize(cost, np.array([0.0, np.log(scale)]), jac=True, method="L-BFGS-B")
    return Line(float(found.x[0]), float(max(np.exp(found.x[1]), LEAST_TEMPER)))


def _sigmoid(x: Floats) -> Floats:
    return np.exp(-np.logaddexp(0, -x))
