"""−log p and −log(1 − p) over all pairs of a batch, in closed form, with their gradients in the same pass.

Most pairs that do not match are so far apart that a bound rules them out. The others are collected until they fill a
strip, and worked out together. No tensor has the pairs as an axis. The rows of the matrix of pairs are dealt out to a
fixed number of blocks, each with sums of its own: results do not depend on the number of threads.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedged.compiled import compiled
from hedged.compiled.bounds import bound, floors, log_floor
from hedged.compiled.gaussians import STRIP, expected, gradients

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.int64]
CERTAINLY = 1.0001  # times a number in single precision is more than it
VANISHING = 1e-297  # below all sums of terms that count
FAR = -16.0  # a pair that does not match, and whose log p is certainly below, costs nothing


@compiled()
def costs(
    first: int,
    last: int,
    mean: Floats,
    variance: Floats,
    labels: Ints,
    terms: Floats,
    curve: Floats,
    sums: Floats,
    to_mean: Floats,
    to_variance: Floats,
    to_terms: Floats,
    to_bias: Floats,
) -> None:
    """Write the summed costs of matching and of other pairs and their gradients, for the blocks from `first` to `last`.

    mean and variance `(C, D, B)` in the curve's units; terms are widths and weights `(2, J)`, curve is b, the end of
    its chord, and p at both its ends. Of K blocks, block k has the rows k, k + K, … of the matrix of pairs. Results
    have the blocks first and matching before other pairs second: sums and to_bias `(K, 2)`, to_mean and to_variance
    `(K, 2, C, D, B)`, to_terms `(K, 2, J)`.
    """
    batch = len(labels)
    nearness, found = np.empty(batch, np.float32), np.empty((2, 2, STRIP), np.int64)
    for block in range(first, last):
        sums[block] = 0
        to_mean[block] = 0
        to_variance[block] = 0
        to_terms[block] = 0
        to_bias[block] = 0
        count = np.zeros(2, np.int64)
        for row in range(block, batch + len(sums), len(sums)):
            done = row >= batch  # one turn more, to work out what is left
            if not done:
                _bounds(row, mean, variance, curve[0], nearness)
            for other in range(row + 1, batch + 1 if not done else row + 2):
                for kind in range(2):
                    if count[kind] == STRIP or (done and count[kind]):
                        _add(
                            found[kind, :, : count[kind]],
                            kind == 0,
                            mean,
                            variance,
                            terms,
                            curve,
                            sums[block, kind : kind + 1],
                            to_mean[block, kind],
                            to_variance[block, kind],
                            to_terms[block, kind],
                            to_bias[block, kind : kind + 1],
                        )
                        count[kind] = 0
                if done or other == batch:
                    continue
                kind = 0 if labels[row] == labels[other] else 1
                if kind == 0 or nearness[other] > FAR:
                    found[kind, 0, count[kind]], found[kind, 1, count[kind]] = row, other
                    count[kind] += 1


@compiled()
def _bounds(row: int, mean: Floats, variance: Floats, b: float, nearness: Floats) -> None:
    """Bounds from above on log p of one item with those after it."""
    after = nearness[row + 1 : mean.shape[2]]
    after[:] = np.float32(-3e38)
    for one in range(len(mean)):
        for other in range(len(mean)):
            bound(mean[one, :, row], variance[one, :, row], mean[other], variance[other], row + 1, b, after)


@compiled()
def _geometry(
    pairs: Ints, one: Floats, other: Floats, spread_one: Floats, spread_other: Floats, squares: Floats, spreads: Floats
) -> None:
    """Squared differences of means and sums of variances of pairs, `(D, n)`, from components `(D, B)`."""
    for d in range(len(one)):
        for i in range(pairs.shape[1]):
            m = one[d, pairs[0, i]] - other[d, pairs[1, i]]
            squares[d, i] = m * m
            spreads[d, i] = spread_one[d, pairs[0, i]] + spread_other[d, pairs[1, i]]


@compiled()
def _match(
    squares: Floats, spreads: Floats, terms: Floats, curve: Floats, value: Floats, p: Floats, floor: Floats
) -> None:
    """p of pairs of components; `floor` keeps log p and its slopes where Jensen's bound is it, else slopes of 0."""
    tiny = 1e12 * (1.1754944e-38 if terms.itemsize == 4 else 2.2250738585072014e-308)
    expected(0, 1, squares, spreads, terms[0], terms[1], value)
    reach, least, buffer = np.empty_like(value), np.empty_like(value), np.empty_like(value)
    reach[:] = 0
    for d in range(len(squares)):
        for i in range(len(value)):
            reach[i] += squares[d, i] + spreads[d, i]
    least[:] = reach
    floors(curve.astype(terms.dtype), buffer, least)
    for i in range(len(value)):
        p[i] = value[i]
        floor[0, i], floor[1, i], floor[2, i] = 0, 0, 0
        if value[i] <= tiny or value[i] < least[i] * CERTAINLY:
            length = math.sqrt(max(reach[i], tiny))
            log_p, by_reach, by_bias = log_floor(length, curve[0], curve[1])
            if value[i] <= tiny or math.exp(log_p) > value[i]:
                p[i] = math.exp(log_p)
                floor[0, i], floor[1, i], floor[2, i] = log_p, by_reach / (2 * length), by_bias


@compiled()
def _far_shares(i: int, floor: Floats, shares: Floats) -> Any:
    """−log p of one pair whose p is too small for a number, but not its logarithm: Jensen's bound, all over."""
    most, total = floor[0, 0, i], 0.0
    for at in range(len(floor)):
        most = max(most, floor[at, 0, i])
    for at in range(len(floor)):
        shares[at, i] = math.exp(floor[at, 0, i] - most)
        total += shares[at, i]
    for at in range(len(floor)):
        shares[at, i] /= -total
    return math.log(len(floor) / total) - most


@compiled()
def _shares(matches: bool, p: Floats, floor: Floats, highest: float, shares: Floats) -> tuple[float, float]:
    """The sum of −log p or −log(1 − p) of some pairs, and its slope in b by way of the cap, σ(b), of p.

    p is the mean of `(both, n)` over the pairs of components; `shares`, of the same shape, become the slopes in the log
    of each component's p.
    """
    both, cost, by_cap = len(p), 0.0, 0.0
    for i in range(p.shape[1]):
        total = 0.0
        for at in range(both):
            total += p[at, i]
        if matches and total < VANISHING:
            cost += _far_shares(i, floor, shares)
            continue
        capped = min(total / both, highest)
        slope = -1 / capped if matches else 1 / (1 - capped)
        cost -= math.log(capped) if matches else math.log1p(-capped)
        is_capped = total / both > highest
        by_cap += slope * highest * (1 - highest) if is_capped else 0.0
        for at in range(both):
            shares[at, i] = 0.0 if is_capped else p[at, i] * slope / both
    return cost, by_cap


@compiled()
def _add(
    pairs: Ints,
    matches: bool,
    mean: Floats,
    variance: Floats,
    terms: Floats,
    curve: Floats,
    total: Floats,
    to_mean: Floats,
    to_variance: Floats,
    to_terms: Floats,
    to_bias: Floats,
) -> None:
    """Add the costs of a strip of pairs of one kind, and their gradients."""
    components, dim, _ = mean.shape
    both, n = components * components, pairs.shape[1]
    squares, spreads = np.empty((both, dim, n), mean.dtype), np.empty((both, dim, n), mean.dtype)
    value, p = np.empty((both, n), mean.dtype), np.empty((both, n), np.float64)
    floor, shares = np.empty((both, 3, n), np.float64), np.empty((both, n), np.float64)
    for at in range(both):
        one, other = at // components, at % components
        _geometry(pairs, mean[one], mean[other], variance[one], variance[other], squares[at], spreads[at])
        _match(squares[at], spreads[at], terms, curve, value[at], p[at], floor[at])
    cost, by_cap = _shares(matches, p, floor, curve[2], shares)
    total[0] += cost
    to_bias[0] += by_cap
    given = np.empty(n, mean.dtype)
    for at in range(both):
        one, other = at // components, at % components
        for i in range(n):
            share, is_floor = shares[at, i], floor[at, 1, i] != 0
            to_bias[0] += share * floor[at, 2, i]
            given[i] = 0.0 if is_floor else share / value[at, i]
            floor[at, 1, i] *= share
        _add_gradients(
            pairs,
            floor[at, 1],
            given,
            squares[at],
            spreads[at],
            mean[one],
            mean[other],
            terms,
            to_mean[one],
            to_mean[other],
            to_variance[one],
            to_variance[other],
            to_terms,
        )


@compiled()
def _add_gradients(
    pairs: Ints,
    by_floor: Floats,
    given: Floats,
    squares: Floats,
    spreads: Floats,
    mean: Floats,
    means: Floats,
    terms: Floats,
    to_mean: Floats,
    to_means: Floats,
    to_variance: Floats,
    to_variances: Floats,
    to_terms: Floats,
) -> None:
    """Add what pairs of two components, each `(D, B)`, give to the gradients of both."""
    to_squares, to_spreads = np.empty_like(squares), np.empty_like(spreads)
    by_term = np.empty((1, terms.shape[1]), terms.dtype)
    gradients(0, 1, squares, spreads, terms[0], terms[1], given, to_squares, to_spreads, by_term)
    to_terms += by_term[0]
    for d in range(len(mean)):
        for i in range(pairs.shape[1]):
            row, column = pairs[0, i], pairs[1, i]
            pull = 2 * (mean[d, row] - means[d, column]) * (to_squares[d, i] + by_floor[i])
            widen = to_spreads[d, i] + by_floor[i]
            to_mean[d, row] += pull
            to_means[d, column] -= pull
            to_variance[d, row] += widen
            to_variances[d, column] += widen
