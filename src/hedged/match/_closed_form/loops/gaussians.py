"""Σ_j w_j E[exp(−c_j ‖v‖²)] and its gradients for Gaussians v: the compiled sum that all of the closed form shares.

numba compiles these loops on first use and keeps them on disk.

Pairs are worked on in strips that fit a core's first cache, and each strip has its own sums, so that results do not
depend on how the strips are shared among threads. Loops run along the pairs of a strip, which the compiler turns
into vector instructions; exp is written out for the same reason.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedged._compiled import compiled, inlined

Floats = NDArray[np.floating[Any]]

STRIP = 512  # pairs
LANES = 32  # numbers that the compiler works on at a time, or a divisor of it
_ONE, _HALF = np.float32(1), np.float32(0.5)  # in float64 arithmetic they count as float64
_LOG2E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.1219444005469057e-4  # their sum is log 2; products of the first are exact
_LOWEST32, _LOWEST64 = (
    np.float32(-86.0),
    -660.0,
)  # below it, a power counts as 0: subnormal numbers are ten times slower
LEAST32, _LEAST64 = np.float32(1e-30), 1e-295  # terms below count as 0, for the same reason
LARGEST = np.float32(1e36)
MOST = np.float32(1e12)  # m² and s beyond count as this: the terms are next to nothing
_EXACT: Any = {"contract", "nsz"}  # what may be rearranged without moving a result by more than its own rounding
_QUICK: Any = {"contract", "nsz", "arcp", "afn", "reassoc"}  # and by little more: divisions by way of estimates


@inlined(_EXACT)
def exp2(x: Any) -> Any:
    """2ˣ in single precision for x ≤ 0, to 2 units in the last place, beside what the rounding of x costs."""
    t = max(x, _LOWEST32)
    n = np.int32(t - _HALF)
    f = t - np.float32(n)
    poly = np.float32(1.5403530393e-4)
    poly = poly * f + np.float32(1.3333558146e-3)
    poly = poly * f + np.float32(9.6181291076e-3)
    poly = poly * f + np.float32(5.5504108664e-2)
    poly = poly * f + np.float32(2.4022650695e-1)
    poly = poly * f + np.float32(6.9314718055e-1)
    poly = poly * f + _ONE
    bits = (n + np.int32(127)) << np.int32(23) if x > _LOWEST32 else np.int32(0)
    return poly * np.int32(bits).view(np.float32)


@inlined(_EXACT)
def _exp64(x: Any) -> Any:
    t = max(x, _LOWEST64)
    n = np.int64(t * _LOG2E - 0.5)
    f = t - n * _LN2_HIGH - n * _LN2_LOW
    poly = 1 / 6227020800  # 1/13!, and so on: the series of exp
    poly = poly * f + 1 / 479001600
    poly = poly * f + 1 / 39916800
    poly = poly * f + 1 / 3628800
    poly = poly * f + 1 / 362880
    poly = poly * f + 1 / 40320
    poly = poly * f + 1 / 5040
    poly = poly * f + 1 / 720
    poly = poly * f + 1 / 120
    poly = poly * f + 1 / 24
    poly = poly * f + 1 / 6
    poly = poly * f + 1 / 2
    poly = poly * (f * f) + f + 1.0
    bits = (n + 1023) << 52 if x > _LOWEST64 else np.int64(0)
    return poly * np.int64(bits).view(np.float64)


@compiled(_EXACT)
def exp(x: Floats) -> None:
    """Take the exponential of numbers ≤ 0 in their place: exactly 0 where it is next to nothing."""
    for i in range(len(x)):
        x[i] = exp2(np.float32(x[i]) * np.float32(_LOG2E)) if x.itemsize == 4 else _exp64(np.float64(x[i]))


@inlined()
def _cut(x: Floats, first: int, size: int) -> Floats:
    """Some pairs of `(D, P)`, cut where products of a few would overflow.

    There is nothing in what is added to make the dimensions even and the pairs as many as vector instructions like.
    """
    strip = np.zeros((len(x) + len(x) % 2, -(-size // LANES) * LANES), x.dtype)
    for d in range(len(x)):
        row = x[d, first : first + size]
        for i in range(size):
            strip[d, i] = min(row[i], MOST)
    return strip


@compiled(_QUICK)
def _stretch(squares: Floats, spreads: Floats, c: Any, last: int, exponent: Floats, volume: Floats) -> None:
    """Σ_d m_d² / (1 + 2c s_d) and Π_d (1 + 2c s_d) of pairs, `(n,)`, over dimensions up to `last`, two at a time."""
    two = np.float32(2) * c
    exponent[:] = np.float32(0)
    volume[:] = _ONE
    for d in range(0, last, 2):
        square, other_square, spread, other_spread = squares[d], squares[d + 1], spreads[d], spreads[d + 1]
        for i in range(len(exponent)):
            stretch, other = _ONE + two * spread[i], _ONE + two * other_spread[i]
            both = stretch * other
            exponent[i] += (square[i] * other + other_square[i] * stretch) / both  # one division for two dimensions
            volume[i] *= both


@compiled(_QUICK)
def _add_term32(
    squares: Floats, spreads: Floats, c: Any, w: Any, exponent: Floats, volume: Floats, out: Floats
) -> None:
    """Add w E[exp(−c ‖v‖²)], given what `_stretch` left, and the last two dimensions: all in registers."""
    two, k = np.float32(2) * c, -c * np.float32(_LOG2E)
    square, other_square, spread, other_spread = squares[-2], squares[-1], spreads[-2], spreads[-1]
    for i in range(len(out)):
        stretch, other = _ONE + two * spread[i], _ONE + two * other_spread[i]
        v = min(volume[i] * (stretch * other), LARGEST)
        shrink = _ONE / np.sqrt(v)
        last = (square[i] * other + other_square[i] * stretch) * (volume[i] * shrink * shrink)
        power = exp2(k * (exponent[i] + last))
        out[i] += w * shrink * (power if (power > LEAST32 * v * shrink) & (v < LARGEST) else np.float32(0))


@compiled(_QUICK)
def _terms(c: Any, exponent: Floats, volume: Floats) -> None:
    """E[exp(−c ‖v‖²)] of a strip of pairs, in the place of the exponents."""
    if exponent.itemsize == 4:
        k = -np.float32(c) * np.float32(_LOG2E)
        for i in range(len(exponent)):
            v = min(volume[i], LARGEST)
            shrink, power = _ONE / np.sqrt(v), exp2(k * exponent[i])
            exponent[i] = shrink * (power if (power > LEAST32 * v * shrink) & (v < LARGEST) else np.float32(0))
    else:
        for i in range(len(exponent)):
            root, power64 = np.sqrt(volume[i]), _exp64(np.float64(-c * exponent[i]))
            exponent[i] = (power64 if power64 > _LEAST64 * root else 0.0) / root


@compiled(_EXACT)
def expected(
    first: int, last: int, squares: Floats, spreads: Floats, widths: Floats, weights: Floats, out: Floats
) -> None:
    """Write Σ_j w_j E[exp(−c_j ‖v‖²)], `(P,)`, given m² and s as `(D, P)`, for the strips from `first` to `last`."""
    for start in range(first * STRIP, min(last * STRIP, len(out)), STRIP):
        size = min(STRIP, len(out) - start)
        near, wide = _cut(squares, start, size), _cut(spreads, start, size)
        total = np.zeros(near.shape[1], out.dtype)
        exponent, volume = np.empty_like(total), np.empty_like(total)
        for j in range(len(widths)):
            if out.itemsize == 4:
                if j == 0 or len(near) > 2:
                    _stretch(near, wide, widths[j], len(near) - 2, exponent, volume)
                _add_term32(near, wide, widths[j], weights[j], exponent, volume, total)
            else:
                _stretch(near, wide, widths[j], len(near), exponent, volume)
                _terms(widths[j], exponent, volume)
                for i in range(len(total)):
                    total[i] += weights[j] * exponent[i]
        out[start : start + size] = total[:size]


@compiled(_QUICK)
def dot(x: Floats, y: Floats) -> Any:
    """Σ_i x_i y_i, in any order."""
    total = x[0] - x[0]
    for i in range(len(x)):
        total += x[i] * y[i]
    return total


@compiled(_QUICK)
def _expand_term32(
    squares: Floats,
    spreads: Floats,
    c: Any,
    w: Any,
    exponent: Floats,
    volume: Floats,
    total: Floats,
    term: Floats,
    to_squares: Floats,
    to_spreads: Floats,
) -> None:
    """As `_add_term32`, and keep E[exp(−c ‖v‖²)] and add its slopes in the last two dimensions: all in registers."""
    two, k = np.float32(2) * c, -c * np.float32(_LOG2E)
    square, other_square, spread, other_spread = squares[-2], squares[-1], spreads[-2], spreads[-1]
    to_square, to_other_square, to_spread, to_other_spread = (
        to_squares[-2],
        to_squares[-1],
        to_spreads[-2],
        to_spreads[-1],
    )
    for i in range(len(total)):
        stretch, other = _ONE + two * spread[i], _ONE + two * other_spread[i]
        rest = min(volume[i], LARGEST)
        v = min(rest * (stretch * other), LARGEST)
        shrink = _ONE / np.sqrt(v)
        both = rest * shrink * shrink
        one, another = other * both, stretch * both
        near, other_near = square[i] * one, other_square[i] * another
        power = exp2(k * (exponent[i] + near + other_near))
        value = shrink * (power if (power > LEAST32 * v * shrink) & (v < LARGEST) else np.float32(0))
        slope = w * c * value
        term[i] = value
        total[i] += w * value
        to_square[i] -= slope * one
        to_other_square[i] -= slope * another
        to_spread[i] += slope * one * (two * near - _ONE)
        to_other_spread[i] += slope * another * (two * other_near - _ONE)


@compiled(_QUICK)
def _add_slopes(
    squares: Floats, spreads: Floats, c: Any, w: Any, term: Floats, last: int, to_squares: Floats, to_spreads: Floats
) -> None:
    """Add w times the slopes of a term in m² and s, over dimensions up to `last`, two at a time."""
    two, factor = np.float32(2) * c, w * c
    for d in range(0, last, 2):
        square, other_square, spread, other_spread = squares[d], squares[d + 1], spreads[d], spreads[d + 1]
        to_square, to_other_square = to_squares[d], to_squares[d + 1]
        to_spread, to_other_spread = to_spreads[d], to_spreads[d + 1]
        for i in range(len(term)):
            stretch, other = _ONE + two * spread[i], _ONE + two * other_spread[i]
            both = _ONE / (stretch * other)  # one division for two dimensions
            one, another, slope = other * both, stretch * both, factor * term[i]
            to_square[i] -= slope * one
            to_other_square[i] -= slope * another
            to_spread[i] += slope * one * (two * square[i] * one - _ONE)
            to_other_spread[i] += slope * another * (two * other_square[i] * another - _ONE)


@compiled(_EXACT)
def expand(
    squares: Floats,
    spreads: Floats,
    widths: Floats,
    weights: Floats,
    total: Floats,
    terms: Floats,
    to_squares: Floats,
    to_spreads: Floats,
) -> None:
    """Write what `expected` does for one strip of `_cut`, the terms `(J, n)` and the slopes in m² and s."""
    total[:], to_squares[:], to_spreads[:] = 0, 0, 0
    exponent, volume = np.empty_like(total), np.empty_like(total)
    for j in range(len(widths)):
        c, w, term = widths[j], weights[j], terms[j]
        if total.itemsize == 4:
            last = len(squares) - 2
            if j == 0 or last:
                _stretch(squares, spreads, c, last, exponent, volume)
            _expand_term32(squares, spreads, c, w, exponent, volume, total, term, to_squares, to_spreads)
        else:
            last = len(squares)
            _stretch(squares, spreads, c, last, term, volume)
            _terms(c, term, volume)
            for i in range(len(total)):
                total[i] += w * term[i]
        _add_slopes(squares, spreads, c, w, term, last, to_squares, to_spreads)


@compiled(_EXACT)
def gradients(
    first: int,
    last: int,
    squares: Floats,
    spreads: Floats,
    widths: Floats,
    weights: Floats,
    grad: Floats,
    to_squares: Floats,
    to_spreads: Floats,
    to_weights: Floats,
) -> None:
    """Write the gradients of `expected` given that of its result, `grad`; of the weights, one row a strip."""
    for strip in range(first, last):
        start = strip * STRIP
        size = min(STRIP, len(grad) - start)
        near, wide = _cut(squares, start, size), _cut(spreads, start, size)
        slope_squares, slope_spreads = np.empty_like(near), np.empty_like(near)
        total, terms = np.empty_like(near[0]), np.empty((len(widths), near.shape[1]), near.dtype)
        expand(near, wide, widths, weights, total, terms, slope_squares, slope_spreads)
        given = grad[start : start + size]
        for j in range(len(widths)):
            to_weights[strip, j] = dot(terms[j, :size], given)
        for d in range(len(squares)):
            for i in range(size):
                to_squares[d, start + i] = slope_squares[d, i] * given[i]
                to_spreads[d, start + i] = slope_spreads[d, i] * given[i]
