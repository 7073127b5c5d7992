"""Two-covariance PLDA in closed form: where every head of evidence starts.

A vector is x = m + y + ε with an identity y ~ N(0, B) and a view ε ~ N(0, W). Directions v with vᵀWv = 1 and vᵀBv = w
are independent of each other, and along them x is an observation of z = y/√w ~ N(0, 1) with evidence λ = w.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

Floats = NDArray[np.floating[Any]]
LEAST_EVIDENCE = 1e-3  # of a direction that is kept: one with less tells identities apart by chance


@final
@dataclass(frozen=True, eq=False)
class Directions:
    """Directions in which identities differ, best first, of unit variance within an identity.

    Args:
        weight: a direction a column, (F, D).
        evidence: the variance between identities in each of them, (D,).
        centre: what is subtracted from vectors first, (F,).
    """

    weight: Floats
    evidence: Floats
    centre: Floats

    def first(self, count: int) -> Directions:
        """The best directions.

        Args:
            count: how many of them.
        """
        return Directions(self.weight[:, :count], self.evidence[:count], self.centre)


def covariances(x: Floats, y: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """B between and W within identities, each `(F, F)`, unbiased.

    Args:
        x: centred vectors, (n, F).
        y: their identities, (n,), numbered from 0 without gaps.
    """
    count = np.bincount(y)
    sums = np.zeros((len(count), x.shape[1]))
    np.add.at(sums, y, x)
    means = sums / count[:, None]
    total = x.T @ x
    explained = (means * count[:, None]).T @ means
    within = (total - explained) / max(len(x) - len(count), 1)
    between = (explained - (len(count) - 1) * within) / len(x)  # a mean of n has W/n of the views in it
    return between, within


def directions(
    x: Floats, y: NDArray[np.intp], ridge: float, unseen: float = 0.0, count: int | None = None
) -> Directions:
    """All directions that tell identities apart, best first: Bv = wWv.

    Args:
        x: vectors, (n, F), of like scale in all features.
        y: their identities, (n,), numbered from 0 without gaps.
        ridge: how much of the mean variance within is added to all directions of W; the fewer vectors, the more.
        unseen: how much of the mean variance between is added to all directions of B: new identities may differ in
            directions in which those of training do not.
        count: how many to take, at most F, even if the last ones tell nothing; None: all that tell something.

    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(np.arange(200), 5)
    >>> x = rng.normal(size=(200, 3))[y] * [3, 1, 0] + rng.normal(size=(1000, 3))
    >>> directions(x, y, ridge=0).evidence.round(-1)[0]
    np.float64(10.0)
    """
    centre = x.mean(0)
    between, within = covariances(x - centre, y)
    within = within + (ridge * np.trace(within) / len(within) + 1e-12) * np.eye(len(within))
    between = between + unseen * max(np.trace(between), 0.0) / len(between) * np.eye(len(between))
    evidence, weight = eigh(between, within)
    kept = max(int((evidence > LEAST_EVIDENCE).sum()), 1) if count is None else count
    return Directions(weight[:, ::-1][:, :kept], np.maximum(evidence[::-1][:kept], LEAST_EVIDENCE), centre)
