"""Identification: of which class is a probe, by its K nearest neighbours in a gallery?"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedged.errors import ShapeError, ValueRangeError
from hedged.metrics._arrays import BoolArray, check_same_length, vector

Vote = Literal["majority", "plurality"]
"""How neighbours vote: more than half of them, or the most frequent class."""


def knn_correct(
    neighbours: ArrayLike, gallery_labels: ArrayLike, probe_labels: ArrayLike, vote: Vote = "majority"
) -> BoolArray:
    """Is each probe identified? `(n,)`.

    majority: |{j ∈ N_i : y_j = y_i}| > k/2. More than half of the neighbours are of the right class.
    plurality: the most frequent class of N_i is y_i; of equally frequent ones, that of the closest neighbour.

    Args:
        neighbours: Indices of the nearest gallery items of each probe, best first, `(n, k)`.
        gallery_labels: Class of each gallery item, `(m,)`.
        probe_labels: Class of each probe, `(n,)`.
        vote: How the neighbours vote.

    >>> neighbours, gallery, probes = [[0, 1, 2, 3, 4]], ["a", "b", "c", "a", "b"], ["a"]
    >>> knn_correct(neighbours, gallery, probes, "majority")
    array([False])
    >>> knn_correct(neighbours, gallery, probes, "plurality")
    array([ True])
    """
    right = vector("probe_labels", probe_labels)
    votes = _neighbour_labels(np.asarray(neighbours), vector("gallery_labels", gallery_labels))
    check_same_length(neighbours=votes, probe_labels=right)
    correct: BoolArray
    if vote == "majority":
        correct = 2 * (votes == right[:, None]).sum(axis=1) > votes.shape[1]
    elif vote == "plurality":
        correct = _plurality(votes) == right
    else:
        raise ValueRangeError(f"vote is {vote!r}; expected 'majority' or 'plurality'")
    return correct


def knn_accuracy(
    neighbours: ArrayLike, gallery_labels: ArrayLike, probe_labels: ArrayLike, vote: Vote = "majority"
) -> float:
    """The share of probes that `knn_correct` finds identified.

    Args:
        neighbours: Indices of the nearest gallery items of each probe, best first, `(n, k)`.
        gallery_labels: Class of each gallery item, `(m,)`.
        probe_labels: Class of each probe, `(n,)`.
        vote: How the neighbours vote.

    >>> knn_accuracy([[0, 1, 2], [2, 1, 0]], gallery_labels=[7, 7, 8], probe_labels=[7, 8])
    0.5
    """
    return float(knn_correct(neighbours, gallery_labels, probe_labels, vote).mean())


def _plurality(votes: NDArray[Any]) -> NDArray[Any]:
    """The first vote with the most equals in its row: best come first, so the closest breaks ties."""
    support = (votes[:, :, None] == votes[:, None, :]).sum(axis=2)
    winners: NDArray[Any] = votes[np.arange(len(votes)), support.argmax(axis=1)]
    return winners


def _neighbour_labels(neighbours: NDArray[Any], gallery_labels: NDArray[Any]) -> NDArray[Any]:
    if neighbours.ndim != 2 or not np.issubdtype(neighbours.dtype, np.integer):
        raise ShapeError(
            f"neighbours has shape {neighbours.shape} and dtype {neighbours.dtype}; expected indices (n, k)"
        )
    if neighbours.size and not 0 <= neighbours.min() <= neighbours.max() < len(gallery_labels):
        raise ShapeError(
            f"neighbours runs from {neighbours.min()} to {neighbours.max()}; expected indices of the "
            f"{len(gallery_labels)} gallery_labels"
        )
    labels: NDArray[Any] = gallery_labels[neighbours]
    return labels
