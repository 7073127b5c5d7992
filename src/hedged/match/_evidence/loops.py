"""The Bayes factor of hedged.match.evidence for all pairs of two lists, compiled: two ways to sum over dimensions.

`add_up` takes matrix products of groups of dimensions that share a variance; `sum_up` takes every dimension for itself.
Both run along the columns of a row, which the compiler turns into vector instructions; log is written out for the
same reason.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedged._compiled import compiled, inlined

Floats = NDArray[np.floating[Any]]

STRIP = 512  # columns worked on at a time: they fit a core's first cache
_LN2 = np.float32(0.6931471805599453)
_LN2_64 = 0.6931471805599453
_ROOT_HALF, _ROOT_HALF_64 = np.float32(0.7071067811865476), 0.7071067811865476
_ONE, _ZERO, _HALF = np.float32(1), np.float32(0), np.float32(0.5)
_QUICK: Any = {"contract", "nsz", "arcp", "reassoc"}


@inlined(_QUICK)
def _log32(x: Any) -> Any:
    """log x in single precision for normal x > 0, to about 2 units in the last place of max(1, |log x|)."""
    bits = np.float32(x).view(np.int32)
    power = (bits >> np.int32(23)) - np.int32(127)
    f = np.int32((bits & np.int32(0x7FFFFF)) | np.int32(0x3F800000)).view(np.float32)  # in [1, 2)
    is_large = f > np.float32(1.4142135)
    f = f * _HALF if is_large else f
    n = np.float32(power + np.int32(1)) if is_large else np.float32(power)
    f = f - _ONE
    r = f / (np.float32(2) + f)  # log(1 + f) = 2 artanh(r), |r| < 0.1716
    q = r * r
    poly = np.float32(2 / 9)
    poly = poly * q + np.float32(2 / 7)
    poly = poly * q + np.float32(2 / 5)
    poly = poly * q + np.float32(2 / 3)
    poly = poly * q + np.float32(2)
    return poly * r + n * _LN2


@compiled(_QUICK)
def _logs(x: Floats) -> None:
    """Replace x by log x."""
    if x.itemsize == 4:
        for i in range(len(x)):
            x[i] = _log32(x[i])
    else:
        for i in range(len(x)):
            x[i] = np.log(x[i])


@compiled(_QUICK)
def add_up(
    first: int,
    last: int,
    products: Floats,
    spread1: Floats,
    spread2: Floats,
    sizes: Floats,
    told: Floats,
    out: Floats,
) -> None:
    """Write c + κ Σ_k [products_k/t_k − ½ size_k log t_k] for the rows from `first` to `last` of `out`, `(N, M)`.

    products `(K, N, M)`; variances spread1 `(K, N)` and spread2 `(K, M)` of the K groups, of `sizes` `(K,)` dimensions;
    told: c and κ.
    """
    groups, columns = len(sizes), out.shape[1]
    t = np.empty(STRIP, out.dtype)
    half = sizes.dtype.type(0.5)
    for row in range(first, last):
        for start in range(0, columns, STRIP):
            stop = min(start + STRIP, columns)
            sums, n = out[row, start:stop], stop - start
            sums[:] = sizes.dtype.type(0)
            for k in range(groups):
                s, rest, size = spread1[k, row], sizes.dtype.type(1) - spread1[k, row], half * sizes[k]
                others, product = spread2[k, start:stop], products[k, row, start:stop]
                for i in range(n):
                    t[i] = s + rest * others[i]
                    sums[i] += product[i] / t[i]
                _logs(t[:n])
                for i in range(n):
                    sums[i] -= size * t[i]
            for i in range(n):
                sums[i] = told[0] + told[1] * sums[i]


@compiled(_QUICK)
def sum_up(
    first: int,
    last: int,
    mean1: Floats,
    spread1: Floats,
    mean2: Floats,
    spread2: Floats,
    every: int,
    told: Floats,
    out: Floats,
) -> None:
    """Write c + κ Σ_d ½[(s₂μ₁² + s₁μ₂² − (μ₁ − μ₂)²)/t − log t] for the rows from `first` to `last` of `out`.

    mean1 and spread1 `(N, D)`, mean2 and spread2 `(D, M)`. The logarithm is taken of products of `every` t at a time,
    which must not vanish.
    """
    dims, columns = len(mean2), out.shape[1]
    one = told.dtype.type(1)
    half = told.dtype.type(0.5)
    product = np.empty(STRIP, out.dtype)
    for row in range(first, last):
        for start in range(0, columns, STRIP):
            stop = min(start + STRIP, columns)
            sums, n = out[row, start:stop], stop - start
            sums[:] = told.dtype.type(0)
            product[:] = one
            for d in range(dims):
                m, s = mean1[row, d], spread1[row, d]
                square, rest = m * m, one - s
                means, spreads = mean2[d, start:stop], spread2[d, start:stop]
                for i in range(n):
                    far = m - means[i]
                    t = s + rest * spreads[i]
                    product[i] *= t
                    sums[i] += (spreads[i] * square + s * (means[i] * means[i]) - far * far) / t
                if (d + 1) % every == 0 or d + 1 == dims:
                    _logs(product[:n])
                    for i in range(n):
                        sums[i] -= product[i]
                        product[i] = one
            for i in range(n):
                sums[i] = told[0] + told[1] * (half * sums[i])
