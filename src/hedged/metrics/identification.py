"""Identification: of which class is a probe, by its K nearest neighbours in a gallery?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedged.errors import ShapeError, ValueRangeError
from hedged.metrics._arrays import BoolArray, IntArray, check_at_least, check_same_length, vector

Vote = Literal["majority", "plurality"]
ScoreRows = Callable[[slice], ArrayLike]


def nearest(score_rows: ScoreRows, n_probes: int, k: int = 5, *, exclude_self: bool, chunk: int = 512) -> IntArray:
    """N_i = the k gallery items j of highest s_ij, best first, the lower j first among equals: (n_probes, k).

    `score_rows(rows)` returns s for a slice of the probes, (rows, gallery): match probabilities, their logs,
    or anything that is higher when closer. It is asked for `chunk` probes at a time, so memory stays bounded.
    `exclude_self`: probe i and gallery item i are one image, clean or corrupt, and not to be neighbours.

    >>> x = np.array([0.0, 1.0, 1.5, 9.0])
    >>> nearest(lambda rows: -abs(x[rows, None] - x), n_probes=4, k=2, exclude_self=True)
    array([[1, 2],
           [2, 0],
           [1, 0],
           [2, 1]])
    """
    for name, value in {"n_probes": n_probes, "k": k, "chunk": chunk}.items():
        check_at_least(name, value, 1)
    neighbours = np.empty((n_probes, k), dtype=np.intp)
    for start in range(0, n_probes, chunk):
        rows = slice(start, min(start + chunk, n_probes))
        scores = _checked(np.asarray(score_rows(rows)), rows, k, n_probes if exclude_self else None)
        if exclude_self:
            np.fill_diagonal(scores[:, rows], -np.inf)
        neighbours[rows] = _top(scores, k)
    return neighbours


def knn_correct(
    neighbours: ArrayLike, gallery_labels: ArrayLike, probe_labels: ArrayLike, vote: Vote = "majority"
) -> BoolArray:
    """Is each probe identified? (n,), from `neighbours` (n, k), best first, as `nearest` returns them.

    majority: |{j ∈ N_i : y_j = y_i}| > k/2. More than half of the neighbours are of the right class.
    plurality: the most frequent class of N_i is y_i; of equally frequent ones, that of the closest neighbour.

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

    >>> knn_accuracy([[0, 1, 2], [2, 1, 0]], gallery_labels=[7, 7, 8], probe_labels=[7, 8])
    0.5
    """
    return float(knn_correct(neighbours, gallery_labels, probe_labels, vote).mean())


def _checked(scores: NDArray[Any], rows: slice, k: int, same_items: int | None) -> NDArray[np.floating[Any]]:
    """A copy to write in, all of it above the −∞ that will mark what is excluded or taken."""
    count = rows.stop - rows.start
    if scores.ndim != 2 or len(scores) != count:
        raise ShapeError(f"score_rows({rows}) has shape {scores.shape}; expected ({count}, gallery)")
    gallery = scores.shape[1]
    if same_items not in (None, gallery):
        raise ShapeError(
            f"{same_items} probes cannot be the same items as a gallery of {gallery}: pass exclude_self=False"
        )
    if k > gallery - (same_items is not None):
        raise ValueRangeError(f"k is {k}, more than a gallery of {gallery} can give each probe; expected a smaller k")
    if not np.issubdtype(scores.dtype, np.floating):
        scores = scores.astype(np.float64)
    if np.isnan(scores).any():
        raise ValueRangeError(f"score_rows({rows}) holds NaN: its neighbours cannot be ranked")
    ranked: NDArray[np.floating[Any]] = np.maximum(scores, np.finfo(scores.dtype).min)
    return ranked


def _top(scores: NDArray[np.floating[Any]], k: int) -> IntArray:
    """Argmax, k times: the first among equals, which argpartition does not promise, and as fast at k = 5."""
    row = np.arange(len(scores))
    best = np.empty((len(scores), k), dtype=np.intp)
    for rank in range(k):
        best[:, rank] = scores.argmax(axis=1)
        scores[row, best[:, rank]] = -np.inf
    return best


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
