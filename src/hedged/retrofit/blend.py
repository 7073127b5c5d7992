"""Branches blended into one head: log-odds = c + κ Σ_b (g_b Q_b + I_b), fitted on pairs of held-out identities.

The log Bayes factor of a branch is Q + I: what its means say, and I = −½ Σ_d log t_d, the greater the surer both inputs
are. A head counts its dimensions as if they were independent; the gain g of a branch says how far
to trust its means beside that count, and so how much the branch weighs among the others. A gain is a scale of means,
√g, so that a blend is an embedding like any other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from hedged.retrofit.select import Pairs

Floats = NDArray[np.floating[Any]]
PULL = 1e-3  # towards c = 0, κ = 1/B and gains of 1: a few pairs cannot drive them far
MOST_FITTED = 100_000  # pairs that a blend is fitted to; of more, so many are drawn
FARTHEST = 6.0  # natural logarithms that κ and gains may be from where they start


class Blend(NamedTuple):
    """c, κ and the gain of each branch."""

    log_odds: float
    temper: float
    gains: tuple[float, ...]


def fit_blend(parts: list[Pairs]) -> Blend:
    """The blend of least balanced cross-entropy: matches and strangers, clean and poor pairs count alike.

    Args:
        parts: the same pairs by each branch.
    """
    rows = _drawn(parts[0])
    parts = [part.take(rows) for part in parts]
    weights = parts[0].weights / parts[0].weights.sum()
    sign = np.where(parts[0].matches, -1.0, 1.0)
    said = np.stack([part.factors - part.shared for part in parts])  # Q, (B, n)
    shared = np.sum([part.shared for part in parts], axis=0)
    start = np.zeros(2 + len(parts))
    start[1] = -np.log(len(parts))

    def cost(p: Floats) -> tuple[float, Floats]:
        temper, gains = np.exp(p[1]), np.exp(p[2:])
        factors = gains @ said + shared
        signed = sign * (p[0] + temper * factors)
        slope = weights * sign * np.exp(-np.logaddexp(0, -signed))
        away = p - start
        gradient = np.array([slope.sum(), temper * (slope @ factors), *(temper * gains * (said @ slope))])
        return float(weights @ np.logaddexp(0, signed) + PULL * (away @ away)), gradient + 2 * PULL * away

    bounds = [(None, None), *((s - FARTHEST, s + FARTHEST) for s in start[1:])]
    found = minimize(cost, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return Blend(float(found[0]), float(np.exp(found[1])), tuple(float(g) for g in np.exp(found[2:])))


def blended(parts: list[Pairs], gains: tuple[float, ...]) -> Pairs:
    """The pairs by all branches together.

    Args:
        parts: the same pairs by each branch.
        gains: of the branches.
    """
    names = (("factors", "shared"), ("own1", "own_shared1"), ("own2", "own_shared2"))
    sums: dict[str, Floats] = {}
    for total, shared in names:
        sums[shared] = sum(getattr(part, shared) for part in parts)
        said = [g * (getattr(part, total) - getattr(part, shared)) for g, part in zip(gains, parts, strict=True)]
        sums[total] = sum(said) + sums[shared]
    return replace(parts[0], **sums)  # type: ignore[arg-type]


def _drawn(pairs: Pairs) -> NDArray[np.intp]:
    """All matches if they fit, and as many of the rest as are to be fitted."""
    rng = np.random.default_rng(0)
    kinds = [np.flatnonzero(pairs.matches), np.flatnonzero(~pairs.matches)]
    return np.concatenate([np.sort(rng.permutation(rows)[: MOST_FITTED // 2]) for rows in kinds])
