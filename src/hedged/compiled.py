"""The inner loops of hedged.kernels for float32 on a CPU, compiled by numba on first use and kept on disk.

Pairs are worked on in strips that fit a core's first cache, and each strip has its own sums, so that results do not
depend on how the strips are shared among threads. Loops run along the pairs of a strip, which the compiler turns
into vector instructions; exp is written out for the same reason.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float32]

STRIP = 512  # pairs
_LOWEST = np.float32(-80.0)  # below it, exp counts as 0: subnormal numbers are ten times slower
_SMALLEST = np.float32(1e-28)  # gradients below count as 0, for the same reason
_LOG2E = np.float32(1.44269504)
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)  # their sum is log 2 to 12 more bits
_ONE, _HALF = np.float32(1), np.float32(0.5)
_EXACT: Any = {"contract", "nsz"}  # what may be rearranged without moving a result by more than its own rounding


@njit(fastmath=_EXACT, inline="always", error_model="numpy")
def _exp(x: Floats, power: Any, scale: Floats) -> None:
    """exp(x) in place for x ≤ 0, to 2 units in the last place; `scale` views the bits of `power`."""
    for i in range(len(x)):
        t = max(x[i], _LOWEST)
        n = np.int32(t * _LOG2E - _HALF)
        whole = np.float32(n)
        f = t - whole * _LN2_HIGH - whole * _LN2_LOW
        poly = np.float32(1.9875691500e-4)
        poly = poly * f + np.float32(1.3981999507e-3)
        poly = poly * f + np.float32(8.3334519073e-3)
        poly = poly * f + np.float32(4.1665795894e-2)
        poly = poly * f + np.float32(1.6666665459e-1)
        poly = poly * f + np.float32(5.0000001201e-1)
        poly = poly * (f * f) + f + _ONE
        power[i] = (n + np.int32(127)) << np.int32(23) if x[i] > _LOWEST else np.int32(0)
        x[i] = poly
    for i in range(len(x)):
        x[i] *= scale[i]


@njit(fastmath=_EXACT, inline="always", error_model="numpy")
def _stretch(squares: Floats, spreads: Floats, c: np.float32, at: slice, exponent: Floats, volume: Floats) -> None:
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


@njit(fastmath=_EXACT, error_model="numpy", cache=True, nogil=True)
def expected(
    first: int, last: int, squares: Floats, spreads: Floats, widths: Floats, weights: Floats, out: Floats
) -> None:
    """Write Σ_j w_j E[exp(−c_j ‖v‖²)], `(P,)`, given m² and s as `(D, P)`, for the strips from `first` to `last`."""
    pairs = squares.shape[1]
    for strip in range(first, last):
        at = slice(strip * STRIP, min((strip + 1) * STRIP, pairs))
        total = out[at]
        size = len(total)
        exponent, volume = np.empty(size, np.float32), np.empty(size, np.float32)
        power = np.empty(size, np.int32)
        scale = power.view(np.float32)
        total[:] = np.float32(0)
        for j in range(len(widths)):
            _stretch(squares, spreads, widths[j], at, exponent, volume)
            _exp(exponent, power, scale)
            w = weights[j]
            for i in range(size):
                total[i] += w * exponent[i] / np.sqrt(volume[i])


@njit(fastmath=True, inline="always", error_model="numpy")
def _sum(x: Floats) -> np.float32:
    total = np.float32(0)
    for i in range(len(x)):
        total += x[i]
    return total


@njit(fastmath=_EXACT, error_model="numpy", cache=True, nogil=True)
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
    for strip in range(first, last):
        at = slice(strip * STRIP, min((strip + 1) * STRIP, pairs))
        given = grad[at]
        size = len(given)
        term, volume = np.empty(size, np.float32), np.empty(size, np.float32)
        power = np.empty(size, np.int32)
        scale = power.view(np.float32)
        for d in range(len(squares)):
            to_squares[d, at] = np.float32(0)
            to_spreads[d, at] = np.float32(0)
        for j in range(len(widths)):
            c, w = widths[j], weights[j]
            two = np.float32(2) * c
            _stretch(squares, spreads, c, at, term, volume)
            _exp(term, power, scale)
            for i in range(size):
                value = term[i] * given[i] / np.sqrt(volume[i])
                term[i] = value if abs(value) > _SMALLEST else np.float32(0)
            to_weights[strip, j] = _sum(term)
            for d in range(len(squares)):
                square, spread = squares[d, at], spreads[d, at]
                slope_square, slope_spread = to_squares[d, at], to_spreads[d, at]
                for i in range(size):
                    shrink = _ONE / (_ONE + two * spread[i])
                    slope = w * c * term[i] * shrink  # −∂/∂m_d²
                    slope_square[i] -= slope
                    slope_spread[i] += slope * (two * square[i] * shrink - _ONE)
