r"""Σ_j w_j E[exp(−c_j ‖v‖²)] of pairs for `match_matrix`, which needs it to a part of `ROUNDING` and no more.

`gaussians.expected` is its oracle: the same sum to the last digits. Here, of four dimensions at a time,

    Σ_d m_d² / (1 + q s_d) = (n₀ + n₁ q + n₂ q² + n₃ q³) / (1 + e₁ q + e₂ q² + e₃ q³ + e₄ q⁴),   q = 2c,

and the denominator is Π_d (1 + q s_d). Both polynomials are worked out once for all terms. No coefficient is negative,
so nothing cancels. Exponentials in double precision have ten digits, and terms that are nothing for all of a strip are
left out.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedged._compiled import compiled, inlined
from hedged.match._closed_form.loops.gaussians import LANES, LARGEST, LEAST32, MOST, STRIP, exp2, expected

Floats = NDArray[np.floating[Any]]

NEGLIGIBLE_REST = 2.0**-25  # what the terms that are left out may add up to
HELD = 2**15  # coefficients that are worked on at a time: they stay in a core's second cache
AT_ONCE = 128  # pairs that are worked on at a time at least
_WIDEST, _FARTHEST_32 = 1e4, 1e6  # s and m² up to which products of four are numbers in single precision
_ONE, _TWO = np.float32(1), np.float32(2)
_LOG2E = 1.4426950408889634
_LOWEST = -1000.0  # powers of 2 below it count as this
_FARTHEST = 1e37  # volumes beyond it count as this: their terms are next to nothing
_QUICK: Any = {"contract", "nsz", "arcp", "afn", "reassoc"}


@inlined({"contract", "nsz"})
def exp2_64(x: Any) -> Any:
    """2ˣ in double precision for x ≤ 0: relative error at most 6e-11."""
    t = max(x, _LOWEST)
    n = np.int64(t - 0.5)
    f = t - np.float64(n)
    poly = 1.531008115456696e-05  # of degree 7, fitted on [−½, ½] at the zeros of a Chebyshev polynomial
    poly = poly * f + 0.0001546973200317073
    poly = poly * f + 0.0013333450560450353
    poly = poly * f + 0.009618025602863522
    poly = poly * f + 0.05550410941215323
    poly = poly * f + 0.24022651213596063
    poly = poly * f + 0.6931471805459304
    poly = poly * f + 0.9999999999595487
    return poly * np.int64((n + 1023) << 52).view(np.float64)


@inlined(_QUICK)
def _term32(exponent: Any, volume: Any, top: Any, bottom: Any, k: Any) -> Any:
    """2^(k (exponent + top/bottom)) / √(volume · bottom) in single precision: exactly 0 where it is next to nothing."""
    v = min(volume * bottom, LARGEST)
    shrink = _ONE / np.sqrt(v)
    power = exp2(k * (exponent + top * (volume * shrink * shrink)))
    return shrink * (power if (power > LEAST32 * v * shrink) & (v < LARGEST) else np.float32(0))


@inlined(_QUICK)
def _term64(exponent: Any, volume: Any, top: Any, bottom: Any, k: Any) -> Any:
    """The same in double precision; the root begins with an estimate in single precision, and has 13 digits."""
    rest = min(volume, _FARTHEST)
    v = min(rest * bottom, _FARTHEST)
    y = np.float64(_ONE / np.sqrt(np.float32(v)))
    shrink = y * (1.5 - 0.5 * v * y * y)
    return shrink * exp2_64(k * (exponent + top * (rest * shrink * shrink)))


@compiled(_QUICK)
def _add_two(squares: Floats, spreads: Floats, start: int, c: Any, w: Any, out: Floats) -> None:
    """Add w E[exp(−c ‖v‖²)] of pairs in two dimensions, from `start` on."""
    two, stop = _TWO * c, start + len(out)
    square, other_square = squares[0, start:stop], squares[1, start:stop]
    spread, other_spread = spreads[0, start:stop], spreads[1, start:stop]
    if out.itemsize == 4:
        k32 = -np.float32(c) * np.float32(_LOG2E)
        for i in range(len(out)):
            stretch, other = _ONE + two * spread[i], _ONE + two * other_spread[i]
            top = square[i] * other + other_square[i] * stretch
            out[i] += w * _term32(np.float32(0), _ONE, top, stretch * other, k32)
    else:
        k64 = -np.float64(c) * _LOG2E
        for i in range(len(out)):
            stretch, other = _ONE + two * spread[i], _ONE + two * other_spread[i]
            top = square[i] * other + other_square[i] * stretch
            out[i] += w * _term64(0.0, 1.0, top, stretch * other, k64)


@compiled(_QUICK)
def _factor(squares: Floats, spreads: Floats, start: int, top: Floats, bottom: Floats) -> None:
    """Write n₀ … n₃ and e₁ … e₄ of each four dimensions, `(D, n)`, of n pairs from `start` on."""
    n = top.shape[1]
    for d in range(0, len(top), 4):
        q0, q1, q2, q3 = (
            squares[d, start : start + n], squares[d + 1, start : start + n],
            squares[d + 2, start : start + n], squares[d + 3, start : start + n],
        )  # fmt: skip
        s0, s1, s2, s3 = (
            spreads[d, start : start + n], spreads[d + 1, start : start + n],
            spreads[d + 2, start : start + n], spreads[d + 3, start : start + n],
        )  # fmt: skip
        t0, t1, t2, t3 = top[d], top[d + 1], top[d + 2], top[d + 3]
        b1, b2, b3, b4 = bottom[d], bottom[d + 1], bottom[d + 2], bottom[d + 3]
        for i in range(n):
            a, b, e, f = min(s0[i], MOST), min(s1[i], MOST), min(s2[i], MOST), min(s3[i], MOST)
            g, h, k, m = min(q0[i], MOST), min(q1[i], MOST), min(q2[i], MOST), min(q3[i], MOST)
            sum1, both1, sum2, both2 = a + b, a * b, e + f, e * f
            near1, cross1, near2, cross2 = g + h, g * b + h * a, k + m, k * f + m * e
            b1[i] = sum1 + sum2
            b2[i] = both1 + sum1 * sum2 + both2
            b3[i] = both1 * sum2 + sum1 * both2
            b4[i] = both1 * both2
            t0[i] = near1 + near2
            t1[i] = (cross1 + near1 * sum2) + (cross2 + near2 * sum1)
            t2[i] = (cross1 * sum2 + near1 * both2) + (cross2 * sum1 + near2 * both1)
            t3[i] = cross1 * both2 + cross2 * both1


@inlined(_QUICK)
def _polynomials(q: Any, n0: Any, n1: Any, n2: Any, n3: Any, e1: Any, e2: Any, e3: Any, e4: Any) -> Any:
    return ((n3 * q + n2) * q + n1) * q + n0, (((e4 * q + e3) * q + e2) * q + e1) * q + _ONE


@compiled(_QUICK)
def _stretch(tops: Floats, bottoms: Floats, c: Floats, last: int, exponent: Floats, volume: Floats) -> None:
    """Σ_d m_d² / (1 + 2c s_d) and Π_d (1 + 2c s_d) of four terms and n pairs, `(4, n)`, over dimensions up to `last`.

    Four terms at a time, since what takes long is to load the coefficients.
    """
    exponent[:], volume[:] = np.float32(0), _ONE
    one, two, three, four = _TWO * c[0], _TWO * c[1], _TWO * c[2], _TWO * c[3]
    sum1, sum2, sum3, sum4 = exponent[0], exponent[1], exponent[2], exponent[3]
    product1, product2, product3, product4 = volume[0], volume[1], volume[2], volume[3]
    for d in range(0, last, 4):
        n0, n1, n2, n3 = tops[d], tops[d + 1], tops[d + 2], tops[d + 3]
        e1, e2, e3, e4 = bottoms[d], bottoms[d + 1], bottoms[d + 2], bottoms[d + 3]
        for i in range(len(sum1)):
            top, bottom = _polynomials(one, n0[i], n1[i], n2[i], n3[i], e1[i], e2[i], e3[i], e4[i])
            sum1[i] += top / bottom
            product1[i] *= bottom
            top, bottom = _polynomials(two, n0[i], n1[i], n2[i], n3[i], e1[i], e2[i], e3[i], e4[i])
            sum2[i] += top / bottom
            product2[i] *= bottom
            top, bottom = _polynomials(three, n0[i], n1[i], n2[i], n3[i], e1[i], e2[i], e3[i], e4[i])
            sum3[i] += top / bottom
            product3[i] *= bottom
            top, bottom = _polynomials(four, n0[i], n1[i], n2[i], n3[i], e1[i], e2[i], e3[i], e4[i])
            sum4[i] += top / bottom
            product4[i] *= bottom


@compiled(_QUICK)
def _add_four(tops: Floats, bottoms: Floats, c: Any, w: Any, exponent: Floats, volume: Floats, out: Floats) -> None:
    """Add w E[exp(−c ‖v‖²)], given what `_stretch` left, and the last four dimensions: all in registers."""
    q = _TWO * c
    t0, t1, t2, t3 = tops[-4], tops[-3], tops[-2], tops[-1]
    b1, b2, b3, b4 = bottoms[-4], bottoms[-3], bottoms[-2], bottoms[-1]
    if out.itemsize == 4:
        k32 = -np.float32(c) * np.float32(_LOG2E)
        for i in range(len(out)):
            top, bottom = _polynomials(q, t0[i], t1[i], t2[i], t3[i], b1[i], b2[i], b3[i], b4[i])
            out[i] += w * _term32(exponent[i], volume[i], top, bottom, k32)
    else:
        k64 = -np.float64(c) * _LOG2E
        for i in range(len(out)):
            top, bottom = _polynomials(q, t0[i], t1[i], t2[i], t3[i], b1[i], b2[i], b3[i], b4[i])
            out[i] += w * _term64(exponent[i], volume[i], top, bottom, k64)


class Extremes(NamedTuple):
    """What some pairs have at most and at least: it tells which terms count."""

    least: float  # ‖m‖²
    greatest: float  # ‖m‖²
    widest: float  # Σ_d m_d² s_d / ‖m‖²
    total: float  # Σ_d s_d


@compiled(_QUICK | {"nnan"})
def extremes(length: Floats, along: Floats, trace: Floats) -> Extremes:
    """The extremes of pairs from ‖m‖², Σ_d m_d² s_d and Σ_d s_d, `(n,)` each."""
    least, greatest, widest, total = length[0], length[0], along[0] * 0, trace[0]
    for i in range(len(length)):
        least, greatest = min(least, length[i]), max(greatest, length[i])
        widest = max(widest, along[i] / max(length[i], np.float32(1e-30)))
        total = max(total, trace[i])
    return Extremes(float(least), float(greatest), float(widest), float(total))


@compiled()
def volumes(spread: Floats, terms: Floats) -> Floats:
    """Π_d (1 + 2c s_d)^(−1/2) for each term, `(J,)`, in double precision."""
    out = np.empty(terms.shape[1])
    for j in range(len(out)):
        product = 1.0
        for s in spread:
            product *= 1 + 2 * float(terms[0, j]) * float(s)
        out[j] = 1 / math.sqrt(product)
    return out


@compiled()
def terms_that_count(terms: Floats, most: Floats, least: float, widest: float) -> int:
    """How many of the terms count for pairs at least √least apart: all others add less than rounding does.

    No volume is more than `most`, `(J,)`. Since x ↦ 1/(1 + q x) is convex, Σ_d m_d² / (1 + q s_d) is at least
    ‖m‖² / (1 + q widest) where widest ≥ Σ_d m_d² s_d / ‖m‖².
    """
    rest, many = 0.0, len(terms[0])
    while many > 0:
        c = float(terms[0, many - 1])
        rest += abs(terms[1, many - 1]) * most[many - 1] * math.exp(-c * least / (1 + 2 * c * widest))
        if rest > NEGLIGIBLE_REST:
            break
        many -= 1
    return many


@compiled()
def padded(dim: int) -> int:
    """How many rows `near_sum` takes for so many dimensions: those added are zero."""
    return 2 if dim <= 2 else (dim + 3) // 4 * 4


@compiled()
def near_sum(squares: Floats, spreads: Floats, bounds: Extremes, terms: Floats, most: Floats, out: Floats) -> None:
    """Write Σ_j w_j E[exp(−c_j ‖v‖²)] of pairs, from m² and s as `(padded(D), n)`, to within `NEGLIGIBLE_REST`.

    There is room for a multiple of `LANES` pairs; the first are asked for, as many as `out` has. `terms` are widths,
    rising, and weights, `(2, J)`; `most` are what `volumes` gives for the least s that any of the pairs has.
    """
    count, rows = len(out), len(squares)
    many = terms_that_count(terms, most, bounds.least, bounds.widest)
    if out.itemsize == 4 and (bounds.total > _WIDEST or bounds.greatest > _FARTHEST_32):
        near, wide = squares[:, :count].copy(), spreads[:, :count].copy()
        expected(0, -(-count // STRIP), near, wide, terms[0, :many], terms[1, :many], out)
        return
    each = min(max(HELD // rows // LANES * LANES, AT_ONCE), squares.shape[1])
    held, value, four = np.empty((2, rows * each), out.dtype), np.empty(each, out.dtype), np.empty((2, 4), out.dtype)
    sums = np.empty((2, 4 * each), out.dtype)
    for start in range(0, count, each):
        n = min(each, -(-(count - start) // LANES) * LANES)
        here = value[:n]
        here[:] = 0
        if rows == 2:
            for j in range(many):
                _add_two(squares, spreads, start, terms[0, j], terms[1, j], here)
        else:
            top, bottom = held[0, : rows * n].reshape(rows, n), held[1, : rows * n].reshape(rows, n)
            exponent, volume = sums[0, : 4 * n].reshape(4, n), sums[1, : 4 * n].reshape(4, n)
            _factor(squares, spreads, start, top, bottom)
            for j in range(0, many, 4):
                for k in range(4):
                    four[:, k] = terms[:, min(j + k, many - 1)]
                _stretch(top, bottom, four[0], rows - 4, exponent, volume)
                for k in range(min(4, many - j)):
                    _add_four(top, bottom, four[0, k], four[1, k], exponent[k], volume[k], here)
        for i in range(min(n, count - start)):
            out[start + i] = value[i]
