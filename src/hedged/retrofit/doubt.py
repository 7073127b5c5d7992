"""How often pairs with an input are decided wrongly: the uncertainty η, fitted on pairs of held-out identities.

The log Bayes factor of an input with itself says how much its embedding claims to know. The signs of quality say more:
an input like no other, or like poorer views, is seldom understood, however sure its embedding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from hedged.retrofit.calibrate import LEAST_TEMPER, Line
from hedged.retrofit.select import Pairs

Floats = NDArray[np.floating[Any]]
PULL = 1e-4  # towards c = 0, κ as it is for pairs and signs that say nothing


def fit_doubt(pairs: Pairs, line: Line) -> tuple[Line, tuple[float, ...]]:
    """c, κ and w: log-odds that a pair with an input is decided rightly, c + κ log BF(x, x) + w·signs(x).

    Matches and strangers, clean and poor pairs count alike.

    Args:
        pairs: held-out pairs, with what each of their two inputs says of itself.
        line: the calibrated log-odds of a match, by which they are decided.
    """
    own = np.concatenate([pairs.own1, pairs.own2])
    signs = np.concatenate([pairs.signs1, pairs.signs2])
    spread = signs.std(0)
    told = np.where(spread > 1e-6, signs / np.where(spread > 1e-6, spread, 1.0), 0.0)
    is_right = np.tile((line.log_odds + line.temper * pairs.factors >= 0) == pairs.matches, 2)
    weights = np.tile(pairs.weights, 2) / (2 * pairs.weights.sum())
    side = np.where(is_right, -1.0, 1.0)
    start = np.array([0.0, np.log(line.temper), *np.zeros(signs.shape[1])])

    def cost(p: Floats) -> tuple[float, Floats]:
        signed = side * (p[0] + np.exp(p[1]) * own + told @ p[2:])
        slope = weights * side * np.exp(-np.logaddexp(0, -signed))
        away = p - start
        gradient = np.array([slope.sum(), np.exp(p[1]) * (slope @ own), *(slope @ told)])
        return float(weights @ np.logaddexp(0, signed) + PULL * (away @ away)), gradient + 2 * PULL * away

    found = minimize(cost, start, jac=True, method="L-BFGS-B").x
    clarity = np.where(spread > 1e-6, found[2:] / np.where(spread > 1e-6, spread, 1.0), 0.0)
    return Line(float(found[0]), float(max(np.exp(found[1]), LEAST_TEMPER))), tuple(float(w) for w in clarity)
