"""The inner loops of hedged.kernels for a CPU, compiled by numba on first use and kept on disk.

Pairs are worked on in strips that fit a core's first cache, and each strip has its own sums, so that results do not
depend on how the strips are shared among threads. Loops run along the pairs of a strip, which the compiler turns
into vector instructions; exp is written out for the same reason.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedged.compiled import compiled, inlined

Floats = NDArray[np.floating[Any]]

STRIP = 512  # pairs
_ONE, _HALF = np.float32(1), np.float32(0.5)  # in float64 arithmetic they count as float64
_LOG2E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.1219444005469057e-4  # their sum is log 2; products of the first are exact
_LOWEST32, _LOWEST64 = np.float32(-80.0), -700.0  # below it, exp counts as 0: subnormal numbers are ten times slower
_SMALLEST32, _SMALLEST64 = np.float32(1e-28), 1e-280  # gradients below count as 0, for the same reason
_EXACT: Any = {"contract", "nsz"}  # what may be rearranged without moving a result by more than its own rounding


@inlined(_EXACT)
def _exp(x: Floats, bits32: Any, bits64: Any) -> None:
    """exp(x) in place for x ≤ 0, to 2 units in the last place; 2ⁿ is made in the bits of a buffer."""
    if x.itemsize == 4:
        _exp32(x, bits32)
        power32 = bits32.view(np.float32)
        for i in range(len(x)):
            x[i] *= power32[i]
    else:
        _exp64(x, bits64)
        power64 = bits64.view(np.float64)
        for i in range(len(x)):
            x[i] *= power64[i]


@inlined(_EXACT)
def _exp32(x: Floats, bits: Any) -> None:
    for i in range(len(x)):
        t = max(np.float32(x[i]), _LOWEST32)
        n = np.int32(t * np.float32(_LOG2E) - _HALF)
        whole = np.float32(n)
        f = t - whole * np.float32(_LN2_HIGH) - whole * np.float32(_LN2_LOW)
        poly = np.float32(1.9875691500e-4)
        poly = poly * f + np.float32(1.3981999507e-3)
        poly = poly * f + np.float32(8.3334519073e-3)
        poly = poly * f + np.float32(4.1665795894e-2)
        poly = poly * f + np.float32(1.6666665459e-1)
        poly = poly * f + np.float32(5.0000001201e-1)
        poly = poly * (f * f) + f + _ONE
        bits[i] = (n + np.int32(127)) << np.int32(23) if x[i] > _LOWEST32 else np.int32(0)
        x[i] = poly


@inlined(_EXACT)
def _exp64(x: Floats, bits: Any) -> None:
    for i in range(len(x)):
        t = max(np.float64(x[i]), _LOWEST64)
        n = np.int64(t * _LOG2E - 0.5)
        whole = np.float64(n)
        f = t - whole * _LN2_HIGH - whole * _LN2_LOW
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
        bits[i] = (n + 1023) << 52 if x[i] > _LOWEST64 else 0
        x[i] = poly


@inlined(_EXACT)
def _stretch(
    squares: Floats, spreads: Floats, c: np.floating[Any], at: slice, exponent: Floats, volume: Floats
) -> None:
    """−c Σ_d m_d² / (1 + 2c s_d) and Π_d (1 + 2c s_d) of a strip of pairs."""
    two = np.float32(2) * c
    exponent[:] = np.float32(0)
    volume[:] = _ONE
    for d in range(len(squares)):
        square, spread = squares[d, at], spreads[d, at]
        for i in range(len(square)):
            stretch = _ONE + two * spread[i]
            exponent[i] -= square[i] / stretch * c
            volume[i] *= stretch


@compiled(_EXACT)
def expected(
    first: int, last: int, squares: Floats, spreads: Floats, widths: Floats, weights: Floats, out: Floats
) -> None:
    """Write Σ_j w_j E[exp(−c_j ‖v‖²)], `(P,)`, given m² and s as `(D, P)`, for the strips from `first` to `last`."""
    pairs = squares.shape[1]
    for strip in range(first, last):
        at = slice(strip * STRIP, min((strip + 1) * STRIP, pairs))
        total = out[at]
        size = len(total)
        exponent, volume = np.empty(size, squares.dtype), np.empty(size, squares.dtype)
        bits32, bits64 = np.empty(size, np.int32), np.empty(size, np.int64)
        total[:] = np.float32(0)
        for j in range(len(widths)):
            _stretch(squares, spreads, widths[j], at, exponent, volume)
            _exp(exponent, bits32, bits64)
            w = weights[j]
            for i in range(size):
                total[i] += w * exponent[i] / np.sqrt(volume[i])


@inlined(True)
def _sum(x: Floats) -> Any:
    total = x[0] - x[0]
    for i in range(len(x)):
        total += x[i]
    return total


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
    pairs = squares.shape[1]
    smallest = _SMALLEST32 if squares.itemsize == 4 else _SMALLEST64
    for strip in range(first, last):
        at = slice(strip * STRIP, min((strip + 1) * STRIP, pairs))
        given = grad[at]
        size = len(given)
        term, volume = np.empty(size, squares.dtype), np.empty(size, squares.dtype)
        bits32, bits64 = np.empty(size, np.int32), np.empty(size, np.int64)
        for d in range(len(squares)):
            to_squares[d, at] = np.float32(0)
            to_spreads[d, at] = np.float32(0)
        for j in range(len(widths)):
            c, w = widths[j], weights[j]
            two = np.float32(2) * c
            _stretch(squares, spreads, c, at, term, volume)
            _exp(term, bits32, bits64)
            for i in range(size):
                value = term[i] * given[i] / np.sqrt(volume[i])
                term[i] = value if abs(value) > smallest else np.float32(0)
            to_weights[strip, j] = _sum(term)
            for d in range(len(squares)):
                square, spread = squares[d, at], spreads[d, at]
                slope_square, slope_spread = to_squares[d, at], to_spreads[d, at]
                for i in range(size):
                    shrink = _ONE / (_ONE + two * spread[i])
                    slope = w * c * term[i] * shrink  # −∂/∂m_d²
                    slope_square[i] -= slope
                    slope_spread[i] += slope * (two * square[i] * shrink - _ONE)
