"""Which way vectors move when inputs get worse: the direction that tells poorer views from others."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

Floats = NDArray[np.floating[Any]]
TRUST = 0.01  # one over the ridge of the regression: a few vectors hardly move it
UNIT = 0.2  # of its log-odds: so they vary about as much as the logarithms of lengths
MOST_STEPS = 300


def decline(u: Floats, poor: Floats) -> Floats:
    """e, `(P,)`: a fifth of the log-odds of being a poorer view are eᵀu, but for a constant; by logistic regression.

    Args:
        u: vectors on their principal axes, (n, P).
        poor: the same of poorer views, (m, P).

    >>> rng = np.random.default_rng(0)
    >>> u = rng.normal(size=(500, 2))
    >>> bool(decline(u, u + [1, 0]) @ [1, 0] > 10 * abs(decline(u, u + [1, 0]) @ [0, 1]))
    True
    """
    both = np.concatenate([u, poor]).astype(np.float64)
    spread = both.std(0) + 1e-12
    is_poor = np.repeat([0, 1], [len(u), len(poor)])
    learnt = LogisticRegression(C=TRUST, max_iter=MOST_STEPS).fit(both / spread, is_poor)
    return np.asarray(UNIT * learnt.coef_[0] / spread)
