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

from hedged._compiled import compiled
from hedged.match._closed_form.loops.bounds import bound, floors, log_floor, too_small
from hedged.match._closed_form.loops.gaussians import LANES, MOST, STRIP, dot, expand
from hedged.match._closed_form.loops.limits import LOSS_FAR, PlainCurve

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.int64]
CERTAINLY = 1.0001  # times a number in single precision is more than it
VANISHING = 1e-297  # below all sums of terms that count
SMALL = 1e-10  # what is no less can be multiplied by what does not vanish


@compiled()
def costs(
    first: int,
    last: int,
    mean: Floats,
    variance: Floats,
    labels: Ints,
    terms: Floats,
    curve: PlainCurve,
    narrow: PlainCurve,
    out: Floats,
) -> None:
    """Write the summed costs of matching and of other pairs and their gradients, for the blocks from `first` to `last`.

    mean and variance `(C, D, B)` in the curve's units; terms are widths and weights `(2, J)`; `curve` is in double
    precision and `narrow` in the dtype of the mean. Of K blocks, block k has the rows k, k + K, … of the matrix of
    pairs. `out` is `(K, 2, …)`, matching before other pairs; the last axis has the sum of costs and its slopes in b
    but for the terms, in their weights `(J,)`, in mean and in variance.
    """
    batch = len(labels)
    nearness, found = np.empty(batch, np.float32), np.empty((2, 2, STRIP), np.int64)
    for block in range(first, last):
        out[block] = 0
        count = np.zeros(2, np.int64)
        for row in range(block, batch + len(out), len(out)):
            done = row >= batch  # one turn more, to work out what is left
            if not done:
                _bounds(row, mean, variance, curve.bias, nearness)
            for other in range(row + 1, batch + 1 if not done else row + 2):
                for kind in range(2):
                    if count[kind] == STRIP or (done and count[kind]):
                        pairs = found[kind, :, : count[kind]]
                        _add(pairs, kind == 0, mean, variance, terms, curve, narrow, out[block, kind])
                        count[kind] = 0
                if done or other == batch:
                    continue
                kind = 0 if labels[row] == labels[other] else 1
                if kind == 0 or nearness[other] > LOSS_FAR:
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
    pairs: Ints,
    one: Floats,
    other: Floats,
    spread_one: Floats,
    spread_other: Floats,
    squares: Floats,
    spreads: Floats,
    reach: Floats,
) -> None:
    """Squared differences of means and sums of variances of pairs, `(D, n)`, from components `(D, B)`; sums of both."""
    reach[:] = 0
    for d in range(len(one)):
        for i in range(pairs.shape[1]):
            m = one[d, pairs[0, i]] - other[d, pairs[1, i]]
            spread = spread_one[d, pairs[0, i]] + spread_other[d, pairs[1, i]]
            reach[i] += m * m + spread
            squares[d, i], spreads[d, i] = min(m * m, MOST), min(spread, MOST)


@compiled()
def _match(value: Floats, reach: Floats, curve: PlainCurve, narrow: PlainCurve, p: Floats, floor: Floats) -> None:
    """p of pairs of components from what the closed form gives, or Jensen's bound, which is there with its slopes.

    `floor` keeps log p and its slopes in the squared reach and in b where Jensen's bound is p, and slopes of 0 else.
    """
    tiny = too_small(value.itemsize)
    least, buffer = reach.copy(), np.empty_like(reach)
    floors(narrow, buffer, least)
    for i in range(len(p)):
        p[i] = value[i]
        floor[0, i], floor[1, i], floor[2, i] = 0, 0, 0
        if value[i] <= tiny or value[i] < least[i] * CERTAINLY:
            length = math.sqrt(max(reach[i], tiny))
            log_p, by_reach, by_bias = log_floor(length, curve.bias, curve.chord_end)
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
    of each component's p. One logarithm does for a product of many pairs.
    """
    both, cost, by_cap, product = len(p), 0.0, 0.0, 1.0
    for i in range(p.shape[1]):
        total = 0.0
        for at in range(both):
            total += p[at, i]
        if matches and total < VANISHING:
            cost += _far_shares(i, floor, shares)
            continue
        capped = min(total / both, highest)
        likelihood = capped if matches else 1 - capped
        slope = (-1 if matches else 1) / likelihood
        product *= likelihood
        if product < SMALL:
            cost -= math.log(product)
            product = 1.0
        is_capped = total / both > highest
        by_cap += slope * highest * (1 - highest) if is_capped else 0.0
        for at in range(both):
            shares[at, i] = 0.0 if is_capped else p[at, i] * slope / both
    return cost - math.log(product), by_cap


@compiled()
def _add(
    pairs: Ints,
    matches: bool,
    mean: Floats,
    variance: Floats,
    terms: Floats,
    curve: PlainCurve,
    narrow: PlainCurve,
    out: Floats,
) -> None:
    """Add the costs of a strip of pairs of one kind, and their gradients."""
    components, dim, _ = mean.shape
    both, n = components * components, pairs.shape[1]
    lanes = -(-n // LANES) * LANES
    squares = np.zeros((both, dim + dim % 2, lanes), mean.dtype)
    spreads, to_squares, to_spreads = np.zeros_like(squares), np.empty_like(squares), np.empty_like(squares)
    value, each = np.empty((both, lanes), mean.dtype), np.empty((both, terms.shape[1], lanes), mean.dtype)
    reach, p = np.empty((both, n), mean.dtype), np.empty((both, n))
    floor, shares = np.empty((both, 3, n)), np.empty((both, n))
    for at in range(both):
        one, other = at // components, at % components
        _geometry(pairs, mean[one], mean[other], variance[one], variance[other], squares[at], spreads[at], reach[at])
        expand(squares[at], spreads[at], terms[0], terms[1], value[at], each[at], to_squares[at], to_spreads[at])
        _match(value[at], reach[at], curve, narrow, p[at], floor[at])
    cost, by_cap = _shares(matches, p, floor, curve.at_zero, shares)
    out[0] += cost
    out[1] += by_cap
    to_weights, rest = out[2 : 2 + terms.shape[1]], out[2 + terms.shape[1] :]
    to_mean, to_variance = rest[: mean.size].reshape(mean.shape), rest[mean.size :].reshape(mean.shape)
    given = np.zeros(lanes, mean.dtype)
    for at in range(both):
        one, other = at // components, at % components
        by_floor = floor[at, 1]
        for i in range(n):
            out[1] += shares[at, i] * floor[at, 2, i]
            given[i] = 0.0 if by_floor[i] != 0 else shares[at, i] / value[at, i]
            by_floor[i] *= shares[at, i]
        for j in range(len(to_weights)):
            to_weights[j] += dot(each[at, j], given)
        for d in range(dim):
            for i in range(n):
                row, column = pairs[0, i], pairs[1, i]
                pull = (
                    2 * (mean[one, d, row] - mean[other, d, column]) * (to_squares[at, d, i] * given[i] + by_floor[i])
                )
                widen = to_spreads[at, d, i] * given[i] + by_floor[i]
                to_mean[one, d, row] += pull
                to_mean[other, d, column] -= pull
                to_variance[one, d, row] += widen
                to_variance[other, d, column] += widen
