"""Σ_j w_j E[exp(−c_j ‖v‖²)] and its gradients for chosen pairs of Gaussians whose covariances are diag v + FᵀF.

With t = 1 + 2cs, W = F diag(1/t), K = I + 2c W Fᵀ, q = K⁻¹ W m and y = A⁻¹m = m/t − 2c Wᵀq, a term is
E = (Π t |K|)^(−1/2) exp(−c mᵀy), and its slopes are

    −2c E y  in m,   E (2c² y_d² − c/t_d + 2c² W_dᵀ K⁻¹ W_d)  in s_d,   2E (2c² q yᵀ − c K⁻¹W)  in F.

Pairs are worked on in strips, in double precision, and loops run along the pairs of a strip.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedged._compiled import compiled
from hedged.match._closed_form.loops.gaussians import exp

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
PAIRS = 64  # of a strip
NEGLIGIBLE = 1e-22  # of the sum of all terms so far, below which no later one counts: times weights of up to 5,000
_QUICK: Any = {"contract", "nsz", "arcp", "afn", "reassoc"}


class Rows(NamedTuple):
    """A list of Gaussians, in the curve's units, or slopes in their numbers.

    Args:
        mean: `(N, D)`.
        own: v, `(N, D)`.
        factor: F, `(N, R, D)`.
    """

    mean: Floats
    own: Floats
    factor: Floats


class Strip(NamedTuple):
    """What a strip of pairs is worked out in. Dimensions are made a multiple of four by some of zeros.

    Args:
        mean: m, `(D, n)`.
        own: s, `(D, n)`.
        factor: F of both, `(R, D, n)`.
        products: Of rows of F and of m, last, `((R + 1)(R + 2)/2, D, n)`, a ≤ b.
        inverse: 1/t, `(D, n)`.
        small: K and the pull W m in its last column, `(R + 1, R + 1, n)`; inverted, K⁻¹ and q.
        volume: Π t |K|, `(n,)`.
        power: E, `(n,)`.
        buffer: `(2, n)`.
        size: The sum of |w E| so far, `(n,)`.
    """

    mean: Floats
    own: Floats
    factor: Floats
    products: Floats
    inverse: Floats
    small: Floats
    volume: Floats
    power: Floats
    buffer: Floats
    size: Floats


@compiled()
def _strip(dim: int, rank: int) -> Strip:
    dim = (dim + 3) // 4 * 4
    return Strip(
        np.zeros((dim, PAIRS)),
        np.zeros((dim, PAIRS)),
        np.zeros((rank, dim, PAIRS)),
        np.empty(((rank + 1) * (rank + 2) // 2, dim, PAIRS)),
        np.empty((dim, PAIRS)),
        np.empty((rank + 1, rank + 1, PAIRS)),
        np.empty(PAIRS),
        np.empty(PAIRS),
        np.empty((2, PAIRS)),
        np.empty(PAIRS),
    )


@compiled(_QUICK)
def _fill(start: int, n: int, one: Rows, other: Rows, first: Ints, second: Ints, strip: Strip) -> None:
    """Put n pairs in a strip; what is left of it is filled with the first of them."""
    ranks = one.factor.shape[1]
    for i in range(PAIRS):
        a, b = first[start + (i if i < n else 0)], second[start + (i if i < n else 0)]
        for d in range(one.mean.shape[1]):
            strip.mean[d, i] = one.mean[a, d] - other.mean[b, d]
            strip.own[d, i] = one.own[a, d] + other.own[b, d]
        for r in range(ranks):
            for d in range(one.mean.shape[1]):
                strip.factor[r, d, i] = one.factor[a, r, d]
        for r in range(other.factor.shape[1]):
            for d in range(one.mean.shape[1]):
                strip.factor[ranks + r, d, i] = other.factor[b, r, d]


@compiled(_QUICK)
def _multiply(strip: Strip) -> None:
    """Write the products of rows of F and m."""
    rank = len(strip.factor)
    for d in range(len(strip.mean)):
        place = 0
        for a in range(rank + 1):
            left = strip.factor[a, d] if a < rank else strip.mean[d]
            for b in range(a, rank + 1):
                right, product = strip.factor[b, d] if b < rank else strip.mean[d], strip.products[place, d]
                for i in range(PAIRS):
                    product[i] = left[i] * right[i]
                place += 1


@compiled(_QUICK)
def _weigh(c: float, strip: Strip) -> None:
    """1/t, Π t, and the upper half of the products of rows of F and m, weighed by 1/t: four dimensions at a time."""
    rank, volume = len(strip.factor), strip.volume
    strip.small[:], volume[:] = 0, 1
    for d in range(0, len(strip.mean), 2):
        own, next_own, inverse, next_inverse = strip.own[d], strip.own[d + 1], strip.inverse[d], strip.inverse[d + 1]
        for i in range(PAIRS):
            both = (1 + 2 * c * own[i]) * (1 + 2 * c * next_own[i])
            inverse[i] = 1 / both  # one division for two dimensions
            volume[i] *= both
        for i in range(PAIRS):
            next_inverse[i] = inverse[i] * (1 + 2 * c * own[i])
            inverse[i] *= 1 + 2 * c * next_own[i]
    place = 0
    for a in range(rank + 1):
        for b in range(a, rank + 1):
            total = strip.small[a, b]
            for d in range(0, len(strip.mean), 4):
                one, two, three, four = (
                    strip.inverse[d],
                    strip.inverse[d + 1],
                    strip.inverse[d + 2],
                    strip.inverse[d + 3],
                )
                products = strip.products[place]
                first, second, third, fourth = products[d], products[d + 1], products[d + 2], products[d + 3]
                for i in range(PAIRS):
                    total[i] += first[i] * one[i] + second[i] * two[i] + third[i] * three[i] + fourth[i] * four[i]
            place += 1


@compiled(_QUICK)
def _solve(c: float, strip: Strip) -> None:
    """By Gauss and Jordan: K⁻¹ and q in the place of K and the pull, mᵀA⁻¹m in the last corner, and E."""
    small, volume, power = strip.small, strip.volume, strip.power
    rank, share = len(small) - 1, strip.buffer[0]
    corner = small[rank, rank]
    for a in range(rank):
        for b in range(a, rank):
            for i in range(PAIRS):
                small[a, b, i] = 2 * c * small[a, b, i] + (1 if a == b else 0)
                small[b, a, i] = small[a, b, i]
        for i in range(PAIRS):
            small[rank, a, i] = small[a, rank, i]
    for a in range(rank):
        pivot = strip.buffer[1]
        for i in range(PAIRS):
            volume[i] *= small[a, a, i]
            pivot[i] = 1 / small[a, a, i]
            corner[i] -= 2 * c * small[rank, a, i] * small[a, rank, i] * pivot[i]
            small[a, a, i] = 1
        for b in range(rank + 1):
            for i in range(PAIRS):
                small[a, b, i] *= pivot[i]
        for e in range(rank + 1):
            if e != a:
                for i in range(PAIRS):
                    share[i] = small[e, a, i]
                    small[e, a, i] = 0
                for b in range(rank if e == rank else rank + 1):
                    for i in range(PAIRS):
                        small[e, b, i] -= share[i] * small[a, b, i]
    for i in range(PAIRS):
        power[i] = -c * max(corner[i], 0.0)
    exp(power)
    for i in range(PAIRS):
        power[i] = power[i] / np.sqrt(volume[i])


@compiled(_QUICK)
def _is_over(w: float, strip: Strip) -> bool:
    """Add |w E| to their sum: whether that is next to nothing beside it, for all pairs. E falls as c rises."""
    most = 0.0
    for i in range(PAIRS):
        strip.size[i] += abs(w) * strip.power[i]
        most = max(most, strip.power[i] - NEGLIGIBLE * strip.size[i])
    return most <= 0


@compiled(_QUICK)
def _reach(strip: Strip) -> None:
    """‖m‖² + tr S of the pairs, into the first buffer."""
    reach = strip.buffer[0]
    reach[:] = 0
    for d in range(len(strip.mean)):
        for i in range(PAIRS):
            reach[i] += strip.mean[d, i] * strip.mean[d, i] + strip.own[d, i]
        for r in range(len(strip.factor)):
            for i in range(PAIRS):
                reach[i] += strip.factor[r, d, i] * strip.factor[r, d, i]


@compiled()
def sums(
    begin: int,
    end: int,
    one: Rows,
    other: Rows,
    first: Ints,
    second: Ints,
    widths: Floats,
    weights: Floats,
    out: Floats,
) -> None:
    """Write the sum of terms and ‖m‖² + tr S, `(2, P)`, of the pairs (first, second), strip by strip."""
    strip = _strip(one.mean.shape[1], one.factor.shape[1] + other.factor.shape[1])
    total = np.empty(PAIRS)
    for start in range(begin * PAIRS, min(end * PAIRS, len(first)), PAIRS):
        n = min(PAIRS, len(first) - start)
        _fill(start, n, one, other, first, second, strip)
        _multiply(strip)
        _reach(strip)
        out[1, start : start + n] = strip.buffer[0, :n]
        total[:], strip.size[:] = 0, 0
        for j in range(len(widths)):
            _weigh(widths[j], strip)
            _solve(widths[j], strip)
            for i in range(PAIRS):
                total[i] += weights[j] * strip.power[i]
            if _is_over(weights[j], strip):
                break
        out[0, start : start + n] = total[:n]


@compiled(_QUICK)
def _add_slopes(c: float, slope: Floats, strip: Strip, to: Strip) -> None:
    """Add the slopes of a term in m, s and F, times `slope`, which is the term times what is asked for."""
    small, known, y = strip.small, strip.buffer[0], strip.buffer[1]
    rank = len(strip.factor)
    for d in range(len(strip.mean)):
        inverse, mean, to_own, to_mean = strip.inverse[d], strip.mean[d], to.own[d], to.mean[d]
        for i in range(PAIRS):
            y[i] = mean[i]
        for r in range(rank):
            factor, pull = strip.factor[r, d], small[r, rank]
            for i in range(PAIRS):
                y[i] -= 2 * c * factor[i] * pull[i]
        for i in range(PAIRS):
            y[i] *= inverse[i]
        for i in range(PAIRS):
            to_own[i] += c * slope[i] * (2 * c * y[i] * y[i] - inverse[i])
        for i in range(PAIRS):
            to_mean[i] -= 2 * c * slope[i] * y[i]
        for r in range(rank):
            known[:] = 0
            for s in range(rank):
                factor, row = strip.factor[s, d], small[r, s]
                for i in range(PAIRS):
                    known[i] += row[i] * factor[i]
            factor, pull, to_factor = strip.factor[r, d], small[r, rank], to.factor[r, d]
            for i in range(PAIRS):
                known[i] *= inverse[i]  # K⁻¹W
            for i in range(PAIRS):
                to_own[i] += 2 * c * c * slope[i] * factor[i] * inverse[i] * known[i]
            for i in range(PAIRS):
                to_factor[i] += 2 * c * slope[i] * (2 * c * pull[i] * y[i] - known[i])


@compiled(_QUICK)
def _begin(reach: Floats, strip: Strip, to: Strip) -> None:
    """Write the slopes of ‖m‖² + tr S, times what is asked for."""
    for d in range(len(strip.mean)):
        for i in range(PAIRS):
            to.own[d, i] = reach[i]
            to.mean[d, i] = 2 * reach[i] * strip.mean[d, i]
        for r in range(len(strip.factor)):
            for i in range(PAIRS):
                to.factor[r, d, i] = 2 * reach[i] * strip.factor[r, d, i]


@compiled(_QUICK)
def _spill(start: int, n: int, first: Ints, second: Ints, to: Strip, to_one: Rows, to_other: Rows) -> None:
    """Add the slopes of pairs to those of their items."""
    ranks, dim = to_one.factor.shape[1], to_one.mean.shape[1]
    for i in range(n):
        a, b = first[start + i], second[start + i]
        for d in range(dim):
            to_one.mean[a, d] += to.mean[d, i]
            to_other.mean[b, d] -= to.mean[d, i]
            to_one.own[a, d] += to.own[d, i]
            to_other.own[b, d] += to.own[d, i]
        for r in range(ranks):
            for d in range(dim):
                to_one.factor[a, r, d] += to.factor[r, d, i]
        for r in range(to_other.factor.shape[1]):
            for d in range(dim):
                to_other.factor[b, r, d] += to.factor[ranks + r, d, i]


@compiled()
def slopes(
    begin: int,
    end: int,
    one: Rows,
    other: Rows,
    first: Ints,
    second: Ints,
    widths: Floats,
    weights: Floats,
    grads: Floats,
    each: int,
    to_one: Rows,
    to_other: Rows,
    to_weights: Floats,
) -> None:
    """Add up the gradients of `sums` given those of its results, `(2, P)`: one block of `each` strips a sum.

    The slopes have a first axis for the blocks, `(B, N, ...)`; of the weights they are `(B, J)`.
    """
    dim, rank = one.mean.shape[1], one.factor.shape[1] + other.factor.shape[1]
    strip, to = _strip(dim, rank), _strip(dim, rank)
    for block in range(begin, end):
        mine = Rows(to_one.mean[block], to_one.own[block], to_one.factor[block])
        its = Rows(to_other.mean[block], to_other.own[block], to_other.factor[block])
        for start in range(block * each * PAIRS, min((block + 1) * each * PAIRS, len(first)), PAIRS):
            n = min(PAIRS, len(first) - start)
            _fill(start, n, one, other, first, second, strip)
            _multiply(strip)
            asked = np.zeros((2, PAIRS))
            asked[:, :n] = grads[:, start : start + n]
            _begin(asked[1], strip, to)
            strip.size[:] = 0
            for j in range(len(widths)):
                _weigh(widths[j], strip)
                _solve(widths[j], strip)
                over = _is_over(weights[j], strip)
                for i in range(PAIRS):
                    strip.power[i] *= asked[0, i]
                    to_weights[block, j] += strip.power[i]
                    strip.power[i] *= weights[j]
                if over:
                    break
                _add_slopes(widths[j], strip.power, strip, to)
            _spill(start, n, first, second, to, mine, its)
