"""Probabilities and log-odds of numbers and NumPy arrays, as in scipy.special, which takes half a second to import."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def expit(log_odds: ArrayLike) -> NDArray[np.float64]:
    """p = 1/(1 + exp(−x)) of log-odds x, exact at both ends."""
    x = np.asarray(log_odds, dtype=np.float64)
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1.0, small) / (1 + small))


def logit(p: ArrayLike) -> NDArray[np.float64]:
    """x = log p/(1 − p) of a probability p: −∞ of 0 and ∞ of 1."""
    p = np.asarray(p, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(p) - np.log1p(-p))
