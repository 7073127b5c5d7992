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
from hedged.compiled.bounds import bound, log_floor
from hedged.compiled.gaussians import STRIP, expected, gradients

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.int64]
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

    mean and variance `(C, D, B)` in the curve's units; terms are widths and weights `(2, J)`, curve is b and the end of
    its chord. Of K blocks, block k has the rows k, k + K, … of the matrix of pairs. Results have the blocks first and
    matching before other pairs second: sums and to_bias `(K, 2)`, to_mean and to_variance `(K, 2, C, D, B)`, to_terms
    `(K, 2, J)`.
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
    after = slice(row + 1, mean.shape[2])
    nearness[after] = np.float32(-3e38)
    for one in range(len(mean)):
        for other in range(len(mean)):
            columns, widths = mean[other][:, after], variance[other][:, after]
            bound(mean[one][:, row], variance[one][:, row], columns, widths, b, nearness[after])


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
def _log_match(
    squares: Floats, spreads: Floats, terms: Floats, curve: Floats, value: Floats, out: Floats, floor: Floats
) -> None:
    """log p of pairs of components; `floor` keeps the slopes of Jensen's bound where it is that, else 0."""
    tiny = 1e12 * (1.1754944e-38 if terms.itemsize == 4 else 2.2250738585072014e-308)
    expected(0, 1, squares, spreads, terms[0], terms[1], value)
    for i in range(len(value)):
        reach = 0.0
        for d in range(len(squares)):
            reach += squares[d, i] + spreads[d, i]
        reach = math.sqrt(max(reach, tiny))
        least, by_reach, by_bias = log_floor(reach, curve[0], curve[1])
        found = math.log(value[i]) if value[i] > tiny else -math.inf
        is_floor = least > found
        out[i] = least if is_floor else found
        floor[0, i] = by_reach / (2 * reach) if is_floor else 0.0
        floor[1, i] = by_bias if is_floor else 0.0


@compiled()
def _cost(log_p: float, matches: bool) -> tuple[float, float]:
    """−log p or −log(1 − p), and its slope in log p."""
    if matches:
        return -log_p, -1.0
    rest = -math.expm1(log_p)
    return -math.log(rest), (1 - rest) / rest


@compiled()
def _log_sum(x: Floats) -> Any:
    most = x[0]
    for value in x[1:]:
        most = max(most, value)
    total = 0.0
    for value in x:
        total += math.exp(value - most)
    return most + math.log(total)


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
    value, log_p = np.empty((both, n), mean.dtype), np.empty((both, n), np.float64)
    floor = np.empty((both, 2, n), np.float64)
    for at in range(both):
        one, other = at // components, at % components
        _geometry(pairs, mean[one], mean[other], variance[one], variance[other], squares[at], spreads[at])
        _log_match(squares[at], spreads[at], terms, curve, value[at], log_p[at], floor[at])
    slope, joint = np.zeros(n, np.float64), np.empty(n, np.float64)
    highest, rest = -math.log1p(math.exp(-curve[0])), 1 / (1 + math.exp(curve[0]))
    for i in range(n):
        joint[i] = _log_sum(log_p[:, i]) if both > 1 else log_p[0, i]
        mixed = joint[i] - math.log(both)
        cost, rise = _cost(min(mixed, highest), matches)
        total[0] += cost
        if mixed > highest:
            to_bias[0] += rise * rest
        else:
            slope[i] = rise
    given = np.empty(n, mean.dtype)
    for at in range(both):
        one, other = at // components, at % components
        for i in range(n):
            share = slope[i] * math.exp(log_p[at, i] - joint[i])
            to_bias[0] += share * floor[at, 1, i]
            given[i] = share / value[at, i] if floor[at, 0, i] == 0 and share != 0 else 0.0
            floor[at, 0, i] *= share
        _add_gradients(
            pairs,
            floor[at, 0],
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
