"""The k best matches of each probe in a gallery, exact, with a bound that spares most of the exponentials.

A gallery item is worked out only if its bound (hedged.compiled.bounds) exceeds the k-th best match so far.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedged.compiled import compiled
from hedged.compiled.bounds import bound, log_floor
from hedged.compiled.gaussians import STRIP, expected

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.int64]
SLACK = 1e-3  # of the bound's logarithm, far more than its rounding


@compiled()
def _log_match(
    chosen: Ints,
    count: int,
    mean: Floats,
    variance: Floats,
    means: Floats,
    variances: Floats,
    terms: Floats,
    b: float,
    touch: float,
    out: Floats,
) -> None:
    """log p of one probe `(C, D)` and the chosen items of a gallery `(C', D, M)`, as `ClosedForm` has it."""
    dim = mean.shape[1]
    squares, spreads = np.empty((dim, count), terms.dtype), np.empty((dim, count), terms.dtype)
    value, reach = np.empty(count, terms.dtype), np.empty(count, np.float64)
    out[:count] = -math.inf
    tiny = 1e12 * (1.1754944e-38 if terms.itemsize == 4 else 2.2250738585072014e-308)
    for one in range(len(mean)):
        for other in range(len(means)):
            reach[:] = 0
            for d in range(dim):
                mu, var, column, width = mean[one, d], variance[one, d], means[other, d], variances[other, d]
                for i in range(count):
                    j = chosen[i]
                    m = mu - column[j]
                    squares[d, i] = m * m
                    spreads[d, i] = var + width[j]
                    reach[i] += squares[d, i] + spreads[d, i]
            expected(0, 1, squares, spreads, terms[0], terms[1], value)
            for i in range(count):
                log_value = math.log(value[i]) if value[i] > tiny else -math.inf
                log_value = max(log_value, log_floor(math.sqrt(max(reach[i], tiny)), b, touch)[0])
                high, low = max(out[i], log_value), min(out[i], log_value)
                out[i] = high + math.log1p(math.exp(low - high))
    highest, pairs = -math.log1p(math.exp(-b)), len(mean) * len(means)
    for i in range(count):
        out[i] = min(out[i] - math.log(pairs), highest)


@compiled()
def _insert(score: float, item: int, best: Floats, items: Ints) -> None:
    """Put an item in its place among the best, after its equals."""
    place = len(best) - 1
    while place > 0 and best[place - 1] < score:
        best[place], items[place] = best[place - 1], items[place - 1]
        place -= 1
    best[place], items[place] = score, item


@compiled()
def nearest(
    first: int,
    last: int,
    mean: Floats,
    variance: Floats,
    means: Floats,
    variances: Floats,
    terms: Floats,
    curve: Floats,
    best: Floats,
    items: Ints,
    exclude_self: int,
) -> None:
    """Write the best matches, `(N, k)`, of the probes `(N, C, D)` from `first` to `last` in a gallery `(C', D, M)`.

    All in the curve's own units; `terms` are widths and weights `(2, J)`, `curve` is b, the end of its chord and the
    error that p may have.
    """
    size = means.shape[2]
    b, touch, error = curve[0], curve[1], curve[2]
    nearness, scores, chosen = np.empty(STRIP, np.float32), np.empty(STRIP, np.float64), np.empty(STRIP, np.int64)
    for probe in range(first, last):
        kept, places = best[probe], items[probe]
        kept[:] = -math.inf
        places[:] = -1
        cut = -math.inf
        for start in range(0, size, STRIP):
            stop = min(start + STRIP, size)
            nearness[:] = np.float32(-3e38)
            for one in range(mean.shape[1]):
                for other in range(len(means)):
                    bound(
                        mean[probe, one],
                        variance[probe, one],
                        means[other, :, start:stop],
                        variances[other, :, start:stop],
                        b,
                        nearness[: stop - start],
                    )
            count = 0
            for i in range(stop - start):
                if nearness[i] >= cut and not (exclude_self and start + i == probe):
                    chosen[count] = start + i
                    count += 1
            if not count:
                continue
            _log_match(chosen, count, mean[probe], variance[probe], means, variances, terms, b, touch, scores)
            for i in range(count):
                if scores[i] > kept[-1]:
                    _insert(scores[i], chosen[i], kept, places)
            least = math.exp(kept[-1])
            cut = math.log(least - error) - SLACK if least > error else -math.inf


@compiled()
def closest(
    first: int, last: int, points: Floats, columns: Floats, best: Floats, items: Ints, exclude_self: int
) -> None:
    """Write the least squared distances, `(N, k)`, of some points `(N, D)` to a gallery, `(D, M)`."""
    size = columns.shape[1]
    squares = np.empty(STRIP, columns.dtype)
    for probe in range(first, last):
        kept, places = best[probe], items[probe]
        kept[:] = -math.inf
        places[:] = -1
        for start in range(0, size, STRIP):
            stop = min(start + STRIP, size)
            _squares(points[probe], columns[:, start:stop], squares[: stop - start])
            for i in range(stop - start):
                if -squares[i] > kept[-1] and not (exclude_self and start + i == probe):
                    _insert(-squares[i], start + i, kept, places)
        kept *= -1


@compiled({"contract", "nsz"})
def _squares(point: Floats, columns: Floats, out: Floats) -> None:
    out[:] = 0
    for d in range(len(point)):
        x, column = point[d], columns[d]
        for i in range(len(column)):
            out[i] += (x - column[i]) * (x - column[i])
