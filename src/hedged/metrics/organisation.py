"""Organisation of the latent space: do classes that share a digit lie together, one digit an axis?

A class is a number of N digits, such as 7 = "07"; two classes share a digit when it stands in the same place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedged.errors import DataError, ShapeError, ValueRangeError
from hedged.metrics._arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    check_at_least,
    check_same_length,
    integers,
    vector,
)


@final
@dataclass(frozen=True, eq=False)
class Centroids:
    """The centre of each class.

    Args:
        labels: The classes in increasing order, `(C,)`.
        positions: Their centres, `(C, D)`.
    """

    labels: NDArray[Any]
    positions: FloatArray

    @property
    def order(self) -> NDArray[Any]:
        """The classes along the number line, for embeddings of one dimension; equal centres by label."""
        if self.positions.shape[1] != 1:
            raise ShapeError(f"centroids of {self.positions.shape[1]} dimensions have no order; expected one")
        return self.labels[np.argsort(self.positions[:, 0], kind="stable")]

    @property
    def spread(self) -> float:
        """The standard deviation of the centres along a dimension, averaged (as a variance) over dimensions."""
        return float(np.sqrt(self.positions.var(axis=0).mean()))


@final
@dataclass(frozen=True, eq=False)
class AxisAlignment:
    """How much of the variance along each axis each digit explains.

    Args:
        explained: `[d, p]` is the share of variance along axis d that digit p explains, leftmost digit first.
    """

    explained: FloatArray

    @property
    def score(self) -> float:
        """Mean share when each digit gets its own axis, in the best pairing: 1 for a grid along the axes."""
        return _best_pairing(self.explained)


@final
@dataclass(frozen=True, eq=False)
class DigitReading:
    """How often each digit is read from each dimension alone.

    Args:
        accuracy: `[d, p]` is the share of items of which digit p is read from dimension d, leftmost digit first.
    """

    accuracy: FloatArray

    @property
    def score(self) -> float:
        """Mean accuracy when each digit is read from an axis of its own, in the best pairing."""
        return _best_pairing(self.accuracy)


@final
@dataclass(frozen=True)
class Turn:
    """A rotation of the plane, and how well digits are laid out along its axes.

    Args:
        degrees: θ, counter-clockwise from the axes of the space.
        score: The score of `axis_alignment` along the turned axes.
    """

    degrees: float
    score: float


def class_centroids(means: ArrayLike, labels: ArrayLike) -> Centroids:
    """c_y = (1/n_y) Σ_{i : y_i = y} μ_i, the mean of each class.

    Args:
        means: μ of each item, `(n, D)`.
        labels: Class of each item, `(n,)`.

    >>> class_centroids([[3.0], [0.0], [2.0]], [7, 7, 2]).order
    array([7, 2])
    """
    points, y = np.asarray(means, dtype=np.float64), vector("labels", labels)
    if points.ndim != 2:
        raise ShapeError(f"means has shape {points.shape}; expected (n, D): for one dimension, means[:, None]")
    check_same_length(means=points, labels=y)
    if not np.isfinite(points).all():
        raise ValueRangeError("means holds NaN or infinity: its classes have no centre")
    classes, group, sizes = np.unique(y, return_inverse=True, return_counts=True)
    sums = np.zeros((len(classes), points.shape[1]))
    np.add.at(sums, group, points)
    return Centroids(classes, sums / sizes[:, None])


def shared_digit_count(order: ArrayLike, n_digits: int = 2) -> int:
    """|{k : classes k and k + 1 of the order share a digit}|, at most C − 1: 99 for 100 classes.

    Args:
        order: The classes along the number line, each once, `(C,)`.
        n_digits: N, the digits of a class.

    >>> shared_digit_count([12, 13, 73, 85])  # 1_, _3, nothing
    2
    """
    return int(_linked(order, n_digits).sum())


def run_lengths(order: ArrayLike, n_digits: int = 2) -> IntArray:
    """The order cut wherever neighbours share no digit: the number of classes in each piece, one if isolated.

    Args:
        order: The classes along the number line, each once, `(C,)`.
        n_digits: N, the digits of a class.

    >>> run_lengths([12, 13, 73, 85])
    array([3, 1])
    """
    linked = _linked(order, n_digits)
    cuts = np.flatnonzero(~linked) + 1
    return np.diff(cuts, prepend=0, append=len(linked) + 1)


def mean_run_length(order: ArrayLike, n_digits: int = 2, *, isolated: bool = True) -> float:
    """Mean number of classes in a run, a series of classes each of which shares a digit with the next.

    By default a class that shares none with either neighbour is a run of one, so the mean is C / (C − s),
    s = `shared_digit_count`: the paper's s of 76 to 80 then give 4.2 to 5.0, about the 4.6 it reports. By its
    words a run is made of pairs, and an isolated class is none: `isolated=False`. The mean is then 1 + s/runs
    (0 without runs), and 4.6 would need orders with next to no isolated class.

    Args:
        order: The classes along the number line, each once, `(C,)`.
        n_digits: N, the digits of a class.
        isolated: Whether a class that shares no digit with its neighbours is a run of one.

    >>> mean_run_length([12, 13, 73, 85]), mean_run_length([12, 13, 73, 85], isolated=False)
    (2.0, 3.0)
    """
    lengths = run_lengths(order, n_digits)
    counted = lengths if isolated else lengths[lengths > 1]
    return float(counted.mean()) if counted.size else 0.0


def axis_alignment(centroids: Centroids, n_digits: int = 2) -> AxisAlignment:
    """η²_dp = Σ_v n_v (x̄_dv − x̄_d)² / Σ_c (x_cd − x̄_d)²: between groups, of the total (one-way ANOVA).

    x_cd is coordinate d of the centre of class c, v a value of digit p, x̄_dv the mean over its n_v classes.
    For two digits in a plane, hedged embeddings should give the tens one axis and the ones the other.

    Args:
        centroids: The centres of the classes.
        n_digits: N, the digits of a class.

    >>> tens, ones = np.divmod(np.arange(100), 10)
    >>> axis_alignment(Centroids(np.arange(100), np.stack([tens, ones], axis=1).astype(float))).explained
    array([[1., 0.],
           [0., 1.]])
    """
    digits = _digits(integers("centroids.labels", centroids.labels), n_digits)
    deviation = centroids.positions - centroids.positions.mean(axis=0)
    total = (deviation**2).sum(axis=0)
    between = np.stack([_between(deviation, digits[:, place]) for place in range(n_digits)], axis=1)
    # An axis along which all centres are equal has no variance to explain.
    return AxisAlignment(np.divide(between, total[:, None], out=np.zeros_like(between), where=total[:, None] > 0))


def digit_reading(means: ArrayLike, labels: ArrayLike, n_digits: int = 2, beside: int = 25) -> DigitReading:
    """How often a digit is read from one coordinate alone.

    An item is read as the digit that is most frequent among the `beside` items on either side of it along the
    dimension, itself left out; among equals, as the smallest. An axis that is a digit's own is read almost without
    error, and tells nothing of the other digits; along diagonals both are read, and neither well. Unlike
    `axis_alignment`, it sees items, so it counts what strays from the centre of its class.

    Args:
        means: μ of each item, `(n, D)`.
        labels: Class of each item, `(n,)`.
        n_digits: N, the digits of a class.
        beside: How many items on either side vote.

    >>> tens, ones = np.divmod(np.repeat(np.arange(100), 40), 10)
    >>> means = np.stack([tens, ones], axis=1) + np.random.default_rng(0).uniform(0, 0.9, (4000, 2))
    >>> digit_reading(means, 10 * tens + ones).accuracy.round(1)
    array([[1. , 0.1],
           [0.1, 1. ]])
    """
    points = np.asarray(means, dtype=np.float64)
    digits = _digits(integers("labels", labels), n_digits)
    check_same_length(means=points, labels=digits)
    check_at_least("beside", beside, 1)
    read = np.empty((points.shape[1], n_digits))
    for dimension, column in enumerate(points.T):
        along = digits[np.argsort(column, kind="stable")]
        for place in range(n_digits):
            own = along[:, place]
            before = np.cumsum(np.pad(np.eye(10)[own], ((1, 0), (0, 0))), axis=0)  # [k]: of the first k items
            item = np.arange(len(own))
            votes = before[np.minimum(item + beside + 1, len(own))] - before[np.maximum(item - beside, 0)]
            votes[item, own] -= 1  # itself
            read[dimension, place] = (votes.argmax(axis=1) == own).mean()
    return DigitReading(read)


def best_turn(centroids: Centroids, n_digits: int = 2) -> Turn:
    """θ in (−45°, 45°] and the score of `axis_alignment` after the plane is turned by θ, where that is highest.

    Along the axes θ = 0: a score says how well digits are laid out, θ whether the axes of the space are theirs.

    Args:
        centroids: The centres of the classes, on a plane.
        n_digits: N, the digits of a class.

    >>> tens, ones = np.divmod(np.arange(100), 10)
    >>> diagonals = np.stack([tens + ones, tens - ones], axis=1).astype(float)
    >>> best_turn(Centroids(np.arange(100), diagonals))
    Turn(degrees=45.0, score=1.0)
    """
    if centroids.positions.shape[1] != 2:
        raise ShapeError(f"a plane is turned, got centroids of {centroids.positions.shape[1]} dimensions")
    turns = []
    for degrees in np.arange(-44.5, 45.5, 0.5):
        cos, sin = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
        turned = Centroids(centroids.labels, centroids.positions @ np.array([[cos, -sin], [sin, cos]]))
        turns.append(Turn(float(degrees), round(axis_alignment(turned, n_digits).score, 12)))
    return max(turns, key=lambda turn: turn.score)


def _best_pairing(shares: FloatArray) -> float:
    """The mean share, `(D, N)`, of digits that are each paired with an axis of their own, where that is highest."""
    from scipy.optimize import linear_sum_assignment  # late: slow to import, and rarely asked for

    return float(shares[linear_sum_assignment(shares, maximize=True)].mean())


def _between(deviation: FloatArray, digit: IntArray) -> FloatArray:
    member = digit == np.unique(digit)[:, None]
    squares: FloatArray = ((member @ deviation) ** 2 / member.sum(axis=1, keepdims=True)).sum(axis=0)
    return squares


def _linked(order: ArrayLike, n_digits: int) -> BoolArray:
    classes = integers("order", order)
    if len(np.unique(classes)) < len(classes):
        raise DataError(f"order names {len(classes)} classes, {len(np.unique(classes))} distinct; expected each once")
    digits = _digits(classes, n_digits)
    linked: BoolArray = (digits[1:] == digits[:-1]).any(axis=1)
    return linked


def _digits(classes: IntArray, n_digits: int) -> IntArray:
    """(C, N), leftmost digit first."""
    check_at_least("n_digits", n_digits, 1)
    if classes.min() < 0 or classes.max() >= 10**n_digits:
        raise ValueRangeError(
            f"classes run from {classes.min()} to {classes.max()}; expected 0 to {10**n_digits - 1}: "
            f"n_digits={n_digits}"
        )
    return classes[:, None] // 10 ** np.arange(n_digits)[::-1] % 10
