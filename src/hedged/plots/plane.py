"""The plane on which embeddings of any dimension are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self, final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False)
class Plane:
    """z ↦ (z − centre) · directions: the plane on which D dimensions are seen.

    Args:
        centre: What is mapped to the origin, `(D,)`.
        directions: Its two axes, orthonormal, `(D, 2)`.
        share: The share of the variance of the means that the plane keeps.
    """

    centre: Array
    directions: Array
    share: float

    @classmethod
    def through(cls, means: Array) -> Self:
        """The embedding space itself if it has two dimensions, else the two principal axes of the means.

        >>> Plane.through(np.random.default_rng(0).normal(size=(50, 4)) * [0.0, 2.0, 0.0, 1.0]).share
        1.0

        Args:
            means: `(n, D)`.
        """
        dim = means.shape[-1]
        if dim == 2:
            return cls(np.zeros(2), np.eye(2), 1.0)
        centre = means.mean(0)
        _, spread, rows = np.linalg.svd(means - centre, full_matrices=False)
        total = float((spread**2).sum())
        share = float((spread[:2] ** 2).sum()) / total if total else 1.0
        return cls(centre, rows[:2].T, share)

    def project(self, points: Array) -> Array:
        """Places on the plane, `(..., 2)`.

        Args:
            points: `(..., D)`.
        """
        return (points - self.centre) @ self.directions

    def deviations(self, covariances: Array) -> Array:
        """Standard deviations along the axes of the plane, `(..., 2)`.

        Args:
            covariances: `(..., D, D)`.
        """
        deviations: Array = np.sqrt(np.einsum("da,...de,ea->...a", self.directions, covariances, self.directions))
        return deviations

    def ellipses(self, spreads: Array) -> tuple[Array, Array, Array]:
        """Widths, heights and angles in degrees of the 1-σ ellipses, each `(n,)`.

        On the plane a covariance is VᵀΣV: even of a diagonal one, the ellipse may be turned.

        Args:
            spreads: Covariances `(n, D, D)`, or the diagonals of diagonal ones, `(n, D)`.
        """
        axes = "nd,db->nab" if spreads.ndim == 2 else "nde,eb->nab"
        covariance = np.einsum(f"da,{axes}", self.directions, spreads, self.directions)
        squares, vectors = np.linalg.eigh(covariance)
        sigmas = np.sqrt(np.maximum(squares, 0))
        angle = np.degrees(np.arctan2(vectors[:, 1, 1], vectors[:, 0, 1]))
        return 2 * sigmas[:, 1], 2 * sigmas[:, 0], angle


def one_of_each(labels: NDArray[np.int64], count: int, seed: int) -> NDArray[np.intp]:
    """Random items: one of each class, then a second of each, and so on, classes in random order.

    >>> [int(item) for item in one_of_each(np.array([7, 7, 8, 7]), 2, seed=0) if item == 2]
    [2]

    Args:
        labels: The class of each item, `(n,)`.
        count: How many items, at most.
        seed: Of the random choice.
    """
    shuffled = np.random.default_rng(seed).permutation(len(labels))
    grouped = np.argsort(labels[shuffled], kind="stable")  # class after class
    _, start, sizes = np.unique(labels[shuffled][grouped], return_index=True, return_counts=True)
    turn = np.empty_like(grouped)
    turn[grouped] = np.arange(len(grouped)) - np.repeat(start, sizes)
    chosen: NDArray[np.intp] = shuffled[np.argsort(turn, kind="stable")][:count]
    return chosen
