"""p(m | x_i, x_j) of all pairs of two lists of Gaussians whose covariances are diag v + FᵀF.

Pairs that are far apart get Jensen's bound, as in `matrix.py`. The others are worked out in strips: in up to
`MOST_TURNED` dimensions each is turned into the eigenbasis of its covariance, in more its determinant is that of a
matrix as small as the rank (`hedged.match._closed_form.turned` has the formulas).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedged._compiled import compiled
from hedged.match._closed_form.loops.bounds import floors, log_chernoff
from hedged.match._closed_form.loops.gaussians import STRIP, exp, expected
from hedged.match._closed_form.loops.limits import MATRIX_FAR, PlainCurve
from hedged.match._closed_form.loops.matrix import NEGLIGIBLE_EXPONENT
from hedged.match._closed_form.loops.sums import terms_that_count, volumes

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.int64]
MOST_TURNED = 4
SWEEPS = 6  # of rotations in three or four dimensions
FEWEST, MOST_PAIRS = 64, 160  # pairs whose products are worked out together: fewer in many dimensions, for the cache
IN_CACHE = 24_000  # numbers
FAR_LOG_P, MARGIN = np.float32(MATRIX_FAR), np.float32(1e-2)  # as in matrix.py
_QUICK: Any = {"contract", "nsz", "arcp", "afn", "reassoc"}
_ONE, _TWO = np.float32(1), np.float32(2)


class Items(NamedTuple):
    """One list, items last, in the curve's units.

    Args:
        mean: `(D, M)`.
        own: v, `(D, M)`.
        factor: F, `(R, D, M)`.
        trace: Of the covariance, `(M,)`.
        widest: At least its largest eigenvalue, `(M,)`.
    """

    mean: Floats
    own: Floats
    factor: Floats
    trace: Floats
    widest: Floats


class Strip(NamedTuple):
    """What is known of one Gaussian and each of a strip of others: buffers that are used again.

    Args:
        gap: m, `(D, STRIP)`.
        length: ‖m‖², `(STRIP,)`.
        along: mᵀSm, `(STRIP,)`.
        dot: f·m of one factor, `(STRIP,)`.
        floor: Jensen's bound, `(STRIP,)`.
        buffer: `(STRIP,)`.
    """

    gap: Floats
    length: Floats
    along: Floats
    dot: Floats
    floor: Floats
    buffer: Floats


@compiled(_QUICK)
def _survey(row: int, rows: Items, columns: Items, start: int, n: int, strip: Strip) -> None:
    """Differences of means, their lengths, and their variances along themselves."""
    length, along, dot = strip.length[:n], strip.along[:n], strip.dot[:n]
    length[:], along[:] = 0, 0
    for d in range(len(rows.mean)):
        mu, own, gap = rows.mean[d, row], rows.own[d, row], strip.gap[d]
        column, spread = columns.mean[d, start : start + n], columns.own[d, start : start + n]
        for i in range(n):
            m = mu - column[i]
            gap[i] = m
            length[i] += m * m
            along[i] += m * m * (own + spread[i])
    for r in range(len(rows.factor)):
        dot[:] = 0
        for d in range(len(rows.mean)):
            f, gap = rows.factor[r, d, row], strip.gap[d]
            for i in range(n):
                dot[i] += f * gap[i]
        for i in range(n):
            along[i] += dot[i] * dot[i]
    for r in range(len(columns.factor)):
        dot[:] = 0
        for d in range(len(rows.mean)):
            factor, gap = columns.factor[r, d, start : start + n], strip.gap[d]
            for i in range(n):
                dot[i] += factor[i] * gap[i]
        for i in range(n):
            along[i] += dot[i] * dot[i]


@compiled(_QUICK)
def _covariances(row: int, rows: Items, columns: Items, places: Ints, strip: Strip, start: int, out: Floats) -> Floats:
    """S of some pairs, `(D, D, n)`, above the diagonal and on it, and m, `(D, n)`."""
    dim = len(rows.mean)
    gap = np.empty((dim, len(places)), out.dtype)
    for d in range(dim):
        for i in range(len(places)):
            gap[d, i] = strip.gap[d, places[i]]
        for e in range(d, dim):
            fixed = rows.own[d, row] if d == e else rows.own[d, row] * 0
            for r in range(len(rows.factor)):
                fixed += rows.factor[r, d, row] * rows.factor[r, e, row]
            for i in range(len(places)):
                at = start + places[i]
                total = fixed + columns.own[d, at] if d == e else fixed
                for r in range(len(columns.factor)):
                    total += columns.factor[r, d, at] * columns.factor[r, e, at]
                out[d, e, i] = total
    return gap


@compiled(_QUICK)
def _rotate(a: Floats, m: Floats, p: int, q: int) -> None:
    """Turn the axes p < q of matrices `(D, D, n)` and vectors `(D, n)` so that they no longer covary."""
    for i in range(m.shape[1]):
        gap, twice = a[q, q, i] - a[p, p, i], a[p, q, i] + a[p, q, i]
        length = abs(gap) + np.sqrt(gap * gap + twice * twice)
        tangent = (-twice if gap < 0 else twice) / length if length > 0 else length
        cosine = 1 / np.sqrt(1 + tangent * tangent)
        sine, shift = tangent * cosine, tangent * a[p, q, i]
        a[p, p, i] -= shift
        a[q, q, i] += shift
        a[p, q, i] = 0
        for j in range(len(m)):
            if j not in (p, q):
                one, other = a[min(p, j), max(p, j), i], a[min(q, j), max(q, j), i]
                a[min(p, j), max(p, j), i] = cosine * one - sine * other
                a[min(q, j), max(q, j), i] = sine * one + cosine * other
        one, other = m[p, i], m[q, i]
        m[p, i], m[q, i] = cosine * one - sine * other, sine * one + cosine * other


@compiled()
def _turned(covariance: Floats, gap: Floats, terms: Floats, out: Floats) -> None:
    """The sum of terms of pairs, `(n,)`, in the eigenbasis of each."""
    dim = len(gap)
    for _ in range(1 if dim <= 2 else SWEEPS):
        for p in range(dim):
            for q in range(p + 1, dim):
                _rotate(covariance, gap, p, q)
    squares, spreads = np.empty(gap.shape, terms.dtype), np.empty(gap.shape, terms.dtype)
    for d in range(dim):
        for i in range(len(out)):
            squares[d, i] = gap[d, i] * gap[d, i]
            spreads[d, i] = max(covariance[d, d, i], 0.0)
    expected(0, -(-len(out) // STRIP), squares, spreads, terms[0], terms[1], out)


@compiled(_QUICK)
def _products(row: int, rows: Items, columns: Items, places: Ints, strip: Strip, start: int, out: Floats) -> Floats:
    """Products of the factors of pairs and of m, last, `((R + 1)(R + 2)/2, D, n)`, a ≤ b; and s, `(D, n)`.

    An odd number of dimensions has one of zeros beside it.
    """
    dim, first = len(rows.mean), len(rows.factor)
    vectors = np.empty((first + len(columns.factor) + 1, len(places)), out.dtype)
    spread = np.empty((dim + dim % 2, len(places)), out.dtype)
    out[:, dim:], spread[dim:] = 0, 0
    for d in range(dim):
        for r in range(first):
            vectors[r] = rows.factor[r, d, row]
        for i in range(len(places)):
            at = start + places[i]
            for r in range(len(columns.factor)):
                vectors[first + r, i] = columns.factor[r, d, at]
            vectors[-1, i] = strip.gap[d, places[i]]
            spread[d, i] = rows.own[d, row] + columns.own[d, at]
        place = 0
        for a in range(len(vectors)):
            for b in range(a, len(vectors)):
                one, other, product = vectors[a], vectors[b], out[place, d]
                for i in range(len(places)):
                    product[i] = one[i] * other[i]
                place += 1
    return spread


@compiled(_QUICK)
def _weigh(products: Floats, spread: Floats, c: Any, sums: Floats, volume: Floats, inverse: Floats) -> None:
    """Σ_d products / t_d, `(Q, n)`, and Π_d t_d, of an even number of dimensions, two at a time."""
    two, first, second = _TWO * c, inverse[0], inverse[1]
    sums[:], volume[:] = 0, 1
    for d in range(0, len(spread), 2):
        own, next_own = spread[d], spread[d + 1]
        for i in range(len(volume)):
            both = (_ONE + two * own[i]) * (_ONE + two * next_own[i])
            first[i] = _ONE / both  # one division for two dimensions
            volume[i] *= both
        for i in range(len(volume)):  # apart from the loop above: of more arrays no vector instructions are made
            second[i] = first[i] * (_ONE + two * own[i])
            first[i] *= _ONE + two * next_own[i]
        for place in range(len(products)):
            product, next_product, total = products[place, d], products[place, d + 1], sums[place]
            for i in range(len(volume)):
                total[i] += product[i] * first[i] + next_product[i] * second[i]


@compiled(_QUICK)
def _eliminate(rank: int, c: Any, sums: Floats, volume: Floats, share: Floats) -> None:
    """One row of K after the other, of its upper half and of the pull on m: Π t |K| is left, and mᵀA⁻¹m comes last."""
    two, width = _TWO * c, rank + 1
    for a in range(rank):
        top = a * width - a * (a - 1) // 2  # where row a begins
        pivot = sums[top]
        for i in range(len(volume)):
            pivot[i] = _ONE + two * pivot[i]
            volume[i] *= pivot[i]
        for b in range(a + 1, width):
            row = sums[top + b - a]
            for i in range(len(volume)):
                share[i] = two * row[i] / pivot[i]
            begin = b * width - b * (b - 1) // 2
            for e in range(b, width):
                other, target = sums[top + e - a], sums[begin + e - b]
                for i in range(len(volume)):
                    target[i] -= share[i] * other[i]


@compiled(_QUICK)
def _add(w: Any, power: Floats, volume: Floats, out: Floats) -> None:
    for i in range(len(out)):
        out[i] += w * power[i] / np.sqrt(volume[i])


@compiled(_QUICK)
def _low_rank(rank: int, products: Floats, spread: Floats, terms: Floats, out: Floats) -> None:
    """The sum of terms of pairs, `(n,)`, by way of K."""
    sums = np.empty((len(products), len(out)), out.dtype)
    volume, inverse, share = np.empty_like(out), np.empty((2, len(out)), out.dtype), np.empty_like(out)
    out[:] = 0
    for j in range(terms.shape[1]):
        c = terms[0, j]
        _weigh(products, spread, c, sums, volume, inverse)
        _eliminate(rank, c, sums, volume, share)
        power = sums[len(sums) - 1]
        for i in range(len(out)):
            power[i] = -c * max(power[i], power[i] * 0)
        exp(power)
        _add(terms[1, j], power, volume, out)


@compiled()
def _raise(
    places: Ints,
    row: int,
    rows: Items,
    columns: Items,
    start: int,
    strip: Strip,
    terms: Floats,
    highest: Any,
    out: Floats,
) -> None:
    """Raise some pairs of a strip from their floor to the sum of their terms."""
    dim, rank = len(rows.mean), len(rows.factor) + len(columns.factor)
    kinds = (rank + 1) * (rank + 2) // 2
    step = min(max(IN_CACHE // (kinds * dim), FEWEST), MOST_PAIRS) if dim > MOST_TURNED else STRIP
    for low in range(0, len(places), step):
        here = places[low : low + step]
        value = np.empty(len(here), out.dtype)
        if dim <= MOST_TURNED:
            covariance = np.zeros((dim, dim, len(here)), rows.mean.dtype)
            gap = _covariances(row, rows, columns, here, strip, start, covariance)
            _turned(covariance, gap, terms, value)
        else:
            products = np.empty((kinds, dim + dim % 2, len(here)), out.dtype)
            spread = _products(row, rows, columns, here, strip, start, products)
            _low_rank(rank, products, spread, terms, value)
        for i in range(len(here)):
            out[here[i]] = max(out[here[i]], min(value[i], highest))


@compiled()
def _is_far(row: int, rows: Items, box: Floats, b: Any) -> bool:
    """Whether all of a strip, in a box of least and greatest means and the greatest width, `(3, D)`, are far."""
    square = rows.mean[0, row] * 0
    for d in range(len(rows.mean)):
        gap = max(box[0, d] - rows.mean[d, row], rows.mean[d, row] - box[1, d])
        square += gap * gap if gap > 0 else gap * 0
    widest = rows.widest[row] + box[2, 0]
    return bool(log_chernoff(square, square * widest, b) < FAR_LOG_P - MARGIN)


@compiled()
def turned_logits(
    first: int, last: int, rows: Items, columns: Items, places: Ints, terms: Floats, curve: PlainCurve, out: Floats
) -> None:
    """Write the rows from `first` to `last` of log p/(1 − p), `(N, M)`: all terms of all pairs, however far.

    Where Jensen's bound is a point of the curve its log-odds are b − u, without an exponential that might vanish.
    """
    size = columns.mean.shape[1]
    strip, everything = _strip(len(rows.mean), rows.mean, terms), np.arange(STRIP)
    floor, reach = np.empty(STRIP, terms.dtype), np.empty(STRIP, terms.dtype)
    least = 1 / (1 + math.exp(min(float(curve.bias), 700.0)))  # 1 − p is no less, even where it rounds to 0
    for row in range(first, last):
        for start in range(0, size, STRIP):
            n = min(STRIP, size - start)
            _survey(row, rows, columns, start, n, strip)
            for i in range(n):
                strip.floor[i] = strip.length[i] + (rows.trace[row] + columns.trace[start + i])
                reach[i] = np.sqrt(strip.floor[i])
            floors(curve, strip.buffer[:n], strip.floor[:n])
            floor[:n] = strip.floor[:n]
            _raise(everything[:n], row, rows, columns, start, strip, terms, curve.at_zero, strip.floor[:n])
            for i in range(n):
                p = min(strip.floor[i], curve.at_zero)
                is_floor = p <= floor[i] and reach[i] >= curve.chord_end
                out[row, places[start + i]] = (
                    curve.bias - reach[i] if is_floor else np.log(p) - np.log(max(1 - p, least))
                )


@compiled()
def _strip(dim: int, wide: Floats, narrow: Floats) -> Strip:
    return Strip(
        np.empty((dim, STRIP), wide.dtype),
        np.empty(STRIP, wide.dtype),
        np.empty(STRIP, wide.dtype),
        np.empty(STRIP, wide.dtype),
        np.empty(STRIP, narrow.dtype),
        np.empty(STRIP, narrow.dtype),
    )


@compiled()
def turned_probabilities(
    first: int,
    last: int,
    rows: Items,
    columns: Items,
    places: Ints,
    terms: Floats,
    curve: PlainCurve,
    ends: Floats,
    out: Floats,
) -> None:
    """Write the rows from `first` to `last` of p, `(N, M)`, for two lists; all else is as `probabilities` has it."""
    dim, size = len(rows.mean), columns.mean.shape[1]
    few = terms.shape[1] // 3
    boxes, least = np.empty((-(-size // STRIP), 3, dim), rows.mean.dtype), np.empty(dim, rows.mean.dtype)
    for k in range(len(boxes)):
        at = slice(k * STRIP, min((k + 1) * STRIP, size))
        for d in range(dim):
            boxes[k, 0, d], boxes[k, 1, d] = columns.mean[d, at].min(), columns.mean[d, at].max()
            boxes[k, 2, d] = columns.widest[at].max()
    for d in range(dim):
        least[d] = columns.own[d].min()
    strip = _strip(dim, rows.mean, terms)
    near, short = np.empty(STRIP, np.int64), np.empty(STRIP, np.int64)
    for row in range(first, last):
        counting = terms_that_count(terms, volumes(rows.own[:, row] + least, terms), 0.0, 0.0)
        for start in range(0, size, STRIP):
            n = min(STRIP, size - start)
            floor = strip.floor[:n]
            _survey(row, rows, columns, start, n, strip)
            for i in range(n):
                floor[i] = strip.length[i] + (rows.trace[row] + columns.trace[start + i])
            floors(curve, strip.buffer[:n], floor)
            if not _is_far(row, rows, boxes[start // STRIP], curve.bias):
                count, fewer, width = 0, 0, terms[0, few]
                for i in range(n):
                    length, trace = strip.length[i], rows.trace[row] + columns.trace[start + i]
                    if log_chernoff(length, strip.along[i], curve.bias) > FAR_LOG_P:
                        if length * width < NEGLIGIBLE_EXPONENT * (_ONE + _TWO * width * trace):
                            near[count] = i
                            count += 1
                        else:
                            short[fewer] = i
                            fewer += 1
                _raise(near[:count], row, rows, columns, start, strip, terms[:, :counting], curve.at_zero, floor)
                some = terms[:, : min(few, counting)]
                _raise(short[:fewer], row, rows, columns, start, strip, some, curve.at_zero, floor)
            for i in range(n):
                out[row, places[start + i]] = min(max(floor[i], ends[0]), ends[1])
