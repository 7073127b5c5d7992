"""p(m | x_i, x_j) of all pairs where each item has one variance: no loop over dimensions, only over terms.

E[exp(−c ‖v‖²)] = (1 + 2c s)^(−D/2) exp(−c ‖m‖² / (1 + 2c s)) for v ~ N(m, s I), and ‖m‖² of all pairs comes from one
product of matrices. The power is the exponential of −D/2 log(1 + 2c s), whose error does not grow with D as long as the
logarithm is as exact near 0 as it is elsewhere.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedged._compiled import compiled, inlined
from hedged.match._closed_form.loops.bounds import floors, log_chernoff
from hedged.match._closed_form.loops.gaussians import MOST, STRIP, exp2
from hedged.match._closed_form.loops.limits import MATRIX_FAR, PlainCurve
from hedged.match._closed_form.loops.sums import NEGLIGIBLE_REST, exp2_64

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.int64]
_ZERO, _ONE, _TWO = np.float32(0), np.float32(1), np.float32(2)
FAR_MARGIN = 1e-2  # of log p, more than its rounding error
NEGLIGIBLE_32 = 2.0**-18  # what the terms that are left out may add up to where p is in single precision
CERTAINLY = 0.9999  # times the least ‖m‖² is less than it, for all rounding
SMALL = 0.41  # 2c s below which 1 + 2c s is less than √2
_LOG2E = 1.4426950408889634
_ROOT_HALF_32, _ROOT_HALF_64 = np.int32(0x3F3504F3), np.int64(0x3FE6A09E667F3BCD)  # the bits of √½
_QUICK: Any = {"contract", "nsz", "arcp", "afn", "reassoc"}
_EXACT: Any = {"contract", "nsz"}  # where 1 + x must not be taken apart again


@inlined(_EXACT)
def _parts32(x: Any) -> Any:
    """f and n with 1 + x = 2ⁿ (1 + f) and |f| < 0.42, where f is x itself if n is 0."""
    bits = np.float32(_ONE + x).view(np.int32)
    n = (bits - _ROOT_HALF_32) >> np.int32(23)
    f = np.int32(bits - (n << np.int32(23))).view(np.float32) - _ONE
    return (x if n == np.int32(0) else f), np.float32(n)


@inlined(_EXACT)
def _parts64(x: Any) -> Any:
    bits = np.float64(1.0 + x).view(np.int64)
    n = (bits - _ROOT_HALF_64) >> np.int64(52)
    f = np.int64(bits - (n << np.int64(52))).view(np.float64) - 1.0
    return (x if n == np.int64(0) else f), np.float64(n)


@inlined(_QUICK)
def _log32(f: Any) -> Any:
    """log₂(1 + f) = 2 artanh(r) / log 2 with r = f / (2 + f), for |r| < 0.172: to about 3 half-ulps."""
    r = f / (_TWO + f)
    q = r * r
    poly = np.float32(2 / 9 * _LOG2E)
    poly = poly * q + np.float32(2 / 7 * _LOG2E)
    poly = poly * q + np.float32(2 / 5 * _LOG2E)
    poly = poly * q + np.float32(2 / 3 * _LOG2E)
    poly = poly * q + np.float32(2 * _LOG2E)
    return poly * r


@compiled(_QUICK)
def _add32(square: Floats, spread: Floats, widest: float, half: Any, c: Any, w: Any, out: Floats) -> None:
    """Add w E[exp(−c ‖v‖²)] of pairs from ‖m‖², s ≤ `widest` and D/2, in single precision."""
    two, k = _TWO * c, c * np.float32(_LOG2E)
    if 2 * c * widest < SMALL:
        for i in range(len(out)):
            x = two * spread[i]
            out[i] += w * exp2(-half * _log32(x) - k * square[i] / (_ONE + x))
    else:
        for i in range(len(out)):
            x = two * spread[i]
            f, n = _parts32(x)
            out[i] += w * exp2(-half * (_log32(f) + n) - k * square[i] / (_ONE + x))


@compiled(_QUICK)
def _add64(square: Floats, spread: Floats, half: Any, c: Any, w: Any, out: Floats) -> None:
    """The same in double precision, to ten digits of log p; one division for both quotients."""
    two, k = 2 * c, c * _LOG2E
    for i in range(len(out)):
        x = two * spread[i]
        f, n = _parts64(x)
        share = 1 / ((2 + f) * (1 + x))
        r = f * (1 + x) * share
        q = r * r
        poly = 2 / 15
        poly = poly * q + 2 / 13
        poly = poly * q + 2 / 11
        poly = poly * q + 2 / 9
        poly = poly * q + 2 / 7
        poly = poly * q + 2 / 5
        poly = poly * q + 2 / 3
        poly = poly * q + 2.0
        out[i] += w * exp2_64(-half * (poly * r * _LOG2E + n) - k * square[i] * ((2 + f) * share))


@compiled(_QUICK)
def _survey(
    products: Floats, own: Any, others: Floats, spread: Any, spreads: Floats, square: Floats, wide: Floats
) -> None:
    """‖m‖² = ‖x‖² + ‖y‖² − 2 xᵀy, and s, of one item and a strip of others, in the precision of the products."""
    for i in range(len(square)):
        near = own + others[i] - _TWO * products[i]
        square[i] = min(max(near, _ZERO), MOST)
        wide[i] = min(spread + spreads[i], MOST)


@compiled(_QUICK)
def _reach(dim: int, square: Floats, wide: Floats, out: Floats) -> None:
    """E‖v‖² = ‖m‖² + D s."""
    d = np.float32(dim)
    for i in range(len(square)):
        out[i] = square[i] + d * wide[i]


@compiled(_QUICK)
def _raise(square: Floats, wide: Floats, value: Floats, curve: PlainCurve, floor: Floats) -> None:
    """Raise floors to the sums of terms but for pairs that are certainly far."""
    far = np.float32(MATRIX_FAR)
    for i in range(len(floor)):
        is_near = log_chernoff(square[i], square[i] * wide[i], curve.bias) > far
        floor[i] = max(floor[i], min(value[i], curve.at_zero)) if is_near else floor[i]


@compiled({"contract", "nsz", "reassoc", "nnan"})
def _smallest(x: Floats) -> float:
    least = x[0]
    for i in range(len(x)):
        least = min(least, x[i])
    return float(least)


@compiled({"contract", "nsz", "reassoc", "nnan"})
def _least(products: Floats, own: Any, others: Floats) -> float:
    """The least ‖m‖² of one item and all others."""
    least = others[0] - _TWO * products[0]
    for i in range(len(others)):
        least = min(least, others[i] - _TWO * products[i])
    return float(max(own + least, _ZERO))


@compiled()
def terms_that_count(dim: int, least: float, narrowest: float, widest: float, terms: Floats, negligible: float) -> Ints:
    """Which terms count for pairs at least √least apart, with s from narrowest to widest: the others add nothing.

    −log of a term, D/2 log(1 + 2c s) + c ‖m‖² / (1 + 2c s), is least where 1 + 2c s = 2c ‖m‖² / D.
    """
    chosen, count = np.empty(len(terms[0]), np.int64), 0
    for j in range(len(terms[0])):
        c = float(terms[0, j])
        s = min(max((2 * c * least / dim - 1) / (2 * c), narrowest), widest)
        exponent = 0.5 * dim * math.log1p(2 * c * s) + c * least / (1 + 2 * c * s)
        if abs(terms[1, j]) * math.exp(-exponent) * len(terms[0]) > negligible:
            chosen[count] = j
            count += 1
    return chosen[:count]


@compiled()
def spherical_probabilities(
    first: int,
    last: int,
    dim: int,
    products: Floats,
    squares: Floats,
    spread: Floats,
    other_squares: Floats,
    other_spreads: Floats,
    places: Ints,
    terms: Floats,
    curve: PlainCurve,
    ends: Floats,
    out: Floats,
) -> None:
    """Write the rows from `first` to `last` of p, `(N, M)`, from xᵀy `(N, M)`, ‖x‖², ‖y‖² and variances.

    All in the curve's units, and these in double precision. `terms`, in the dtype of the arithmetic, and the rest are
    as `matrix.probabilities` has them.
    """
    dtype, size, half = terms.dtype, len(places), terms[0, :1] * 0 + 0.5 * dim
    narrowest, widest = other_spreads.min(), other_spreads.max()
    negligible = NEGLIGIBLE_32 if out.itemsize == 4 else NEGLIGIBLE_REST
    value, floor, buffer = np.empty(STRIP, dtype), np.empty(STRIP, dtype), np.empty(STRIP, dtype)
    square, wide = np.empty(STRIP, dtype), np.empty(STRIP, dtype)
    for row in range(first, last):
        own = spread[row]
        chosen = terms_that_count(
            dim, _least(products[row], squares[row], other_squares) * CERTAINLY, own + narrowest, own + widest,
            terms, negligible,
        )  # fmt: skip
        for start in range(0, size, STRIP):
            n = min(STRIP, size - start)
            stop = start + n
            near, s = square[:n], wide[:n]
            _survey(
                products[row, start:stop], squares[row], other_squares[start:stop],
                spread[row], other_spreads[start:stop], near, s,
            )  # fmt: skip
            _reach(dim, near, s, floor[:n])
            floors(curve, buffer[:n], floor[:n])
            closest = _smallest(near)
            if log_chernoff(closest, closest * (own + widest), curve.bias) > MATRIX_FAR - FAR_MARGIN:
                value[:n] = 0
                for j in chosen:
                    if value.itemsize == 4:
                        _add32(near, s, own + widest, np.float32(half[0]), terms[0, j], terms[1, j], value[:n])
                    else:
                        _add64(near, s, half[0], terms[0, j], terms[1, j], value[:n])
                _raise(near, s, value[:n], curve, floor[:n])
            for i in range(n):
                out[row, places[start + i]] = min(max(floor[i], ends[0]), ends[1])
