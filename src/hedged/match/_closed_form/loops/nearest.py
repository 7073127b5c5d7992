"""The k best matches of each probe in a gallery, exact, with bounds that spare most of the work.

The gallery comes in leaves, items near each other with a box around them (`_closed_form/nearest.py`). Within a radius
that depends on how wide its distribution is, an item may still be among the best; a leaf whose box is farther is passed
over whole, and so is an item of the others. Only what is left is worked out. As matches are found, the radii shrink.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedged._compiled import compiled, inlined
from hedged.match._closed_form.loops.bounds import log_bound, log_floor, too_small
from hedged.match._closed_form.loops.gaussians import STRIP, expected
from hedged.match._closed_form.loops.limits import PlainCurve

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.int64]
LEAF = 64  # items
GROUP = 16  # probes that visit a leaf together, while it is in the cache
WAITING = 256  # items to be worked out at a time
STEPS = 8  # of the bisection for a radius
REDRAW_GAIN = 0.05  # in log p, for which the radii are drawn in anew
OUTERMOST, EVERYWHERE = 1e16, np.float32(3e38)  # radii beyond the former hold everything
ROUNDINGS, EPSILON = 16, 6e-8  # of a term in single precision, beside one for each dimension


class Gallery(NamedTuple):
    """M items in S leaves: Gaussians with a row a dimension, and a box around the means of each leaf.

    No variance exceeds the one of the rising `grades` that `leaf_grade` and `grade` tell. All in the curve's own units.
    """

    means: Floats  # (C, D, M)
    variances: Floats  # (C, D, M)
    places: Ints  # (M,): which item each is
    lows: Floats  # (S, C, D)
    highs: Floats  # (S, C, D)
    leaf_grade: Ints  # (S, C)
    grade: Ints  # (C, M)
    grades: Floats  # (G,)


class Formula(NamedTuple):
    """The match probability: widths and weights `(2, J)`, the curve in double precision, the error that p may have."""

    terms: Floats
    curve: PlainCurve
    error: float


class Hunt(NamedTuple):
    """What a group of probes knows while it visits the leaves."""

    waiting: Ints  # (GROUP, …): items to be worked out
    many: Ints  # (GROUP,): how many wait
    radii: Floats  # (GROUP, C, G): squared, within which an item may be among the best
    drawn_for: Floats  # (GROUP,): the k-th best match for which the radii hold
    volume: Floats  # (GROUP, C, J): Π_d (1 + 2c_j s_d)^(−1/2) of the probes


@compiled()
def _geometry(
    chosen: Ints, mean: Floats, variance: Floats, means: Floats, variances: Floats, squares: Floats, spreads: Floats
) -> None:
    """Squared differences of means and sums of variances, `(D, n)`, of a Gaussian `(D,)` and chosen others `(D, M)`."""
    for d in range(len(mean)):
        mu, var, column, width, square, spread = mean[d], variance[d], means[d], variances[d], squares[d], spreads[d]
        for i in range(len(chosen)):
            m = mu - column[chosen[i]]
            square[i] = m * m
            spread[i] = var + width[chosen[i]]


@compiled()
def _sum_of_terms(chosen: Ints, mean: Floats, variance: Floats, gallery: Gallery, terms: Floats, out: Floats) -> None:
    """The expansion of p, without its floor, of one probe `(C, D)` and the chosen items of a gallery."""
    dim, count = mean.shape[1], len(chosen)
    squares, spreads = np.empty((dim, count), terms.dtype), np.empty((dim, count), terms.dtype)
    value = np.empty(count, terms.dtype)
    out[:] = 0
    for one in range(len(mean)):
        for other in range(len(gallery.means)):
            _geometry(
                chosen, mean[one], variance[one], gallery.means[other], gallery.variances[other], squares, spreads
            )
            expected(0, -(-count // STRIP), squares, spreads, terms[0], terms[1], value)
            out += value
    out /= len(mean) * len(gallery.means)


@compiled()
def log_match(
    chosen: Ints, mean: Floats, variance: Floats, means: Floats, variances: Floats, formula: Formula, out: Floats
) -> None:
    """log p of one probe `(C, D)` and the chosen ones of some items, `(C, D, M)`, as `ClosedForm` has it."""
    terms, b, touch = formula.terms, formula.curve.bias, formula.curve.chord_end
    dim, count = mean.shape[1], len(chosen)
    squares, spreads = np.empty((dim, count), terms.dtype), np.empty((dim, count), terms.dtype)
    value = np.empty(count, terms.dtype)
    out[:] = -math.inf
    tiny = too_small(terms.itemsize)
    for one in range(len(mean)):
        for other in range(len(means)):
            _geometry(chosen, mean[one], variance[one], means[other], variances[other], squares, spreads)
            expected(0, -(-count // STRIP), squares, spreads, terms[0], terms[1], value)
            for i in range(count):
                reach = math.sqrt(max(squares[:, i].sum() + spreads[:, i].sum(), tiny))
                log_value = math.log(value[i]) if value[i] > tiny else -math.inf
                log_value = max(log_value, log_floor(reach, b, touch)[0])
                high, low = max(out[i], log_value), min(out[i], log_value)
                out[i] = high + math.log1p(math.exp(low - high))
    highest, pairs = -math.log1p(math.exp(-b)), len(mean) * len(means)
    for i in range(count):
        out[i] = min(out[i] - math.log(pairs), highest)


@compiled()
def _insert(score: float, item: int, best: Floats, items: Ints) -> None:
    """Put an item in its place among the best, the first among equals, if it has one."""
    place = len(best)
    while place > 0 and (best[place - 1] < score or (best[place - 1] == score and items[place - 1] > item)):
        place -= 1
        if place + 1 < len(best):
            best[place + 1], items[place + 1] = best[place], items[place]
    if place < len(best):
        best[place], items[place] = score, item


@compiled()
def _shrink(least: float, grades: Floats, variance: Floats, formula: Formula, volume: Floats, radii: Floats) -> None:
    """Write squared radii within which a match may be as good as `least`, for each grade of variances, `(G,)`."""
    high = 1.0
    for grade in range(len(grades)):
        low = 0.0 if grade == 0 else high  # the wider, the farther
        while (
            log_bound(high, grades[grade], variance, formula.terms, formula.curve, formula.error, volume) >= least
            and high < OUTERMOST
        ):
            low, high = high, 2 * high
        for _ in range(STEPS if low < high else 0):
            middle = 0.5 * (low + high)
            if log_bound(middle, grades[grade], variance, formula.terms, formula.curve, formula.error, volume) >= least:
                low = middle
            else:
                high = middle
        radii[grade] = np.float32(high * high * (1 + 1e-4) if high < OUTERMOST else EVERYWHERE)


@inlined()
def _apart(mean: Floats, low: Floats, high: Floats) -> Any:
    """The least squared distance of a point `(D,)` to a box."""
    total = np.float32(0)
    for d in range(len(mean)):
        gap = max(max(low[d] - mean[d], mean[d] - high[d]), np.float32(0))
        total += gap * gap
    return total


@compiled({"contract", "nsz"})
def _squares(point: Floats, columns: Floats, start: int, out: Floats) -> None:
    """Squared distances of a point to as many columns of `(D, M)` as there is room for, from `start`."""
    out[:] = 0
    for d in range(len(point)):
        x, column = point[d], columns[d, start : start + len(out)]
        for i in range(len(out)):
            out[i] += (x - column[i]) * (x - column[i])


@compiled()
def _best_rest(waiting: Ints, mean: Floats, variance: Floats, gallery: Gallery, formula: Formula, best: float) -> Ints:
    """Those of the items that wait which may match as well as `best`, by single precision: `waiting` is used up."""
    terms = formula.terms
    rounding = np.abs(terms[1]).sum() * (mean.shape[1] + ROUNDINGS) * EPSILON
    least = math.exp(best) - formula.error - rounding
    if least <= 0:
        return waiting
    value, count = np.empty(len(waiting), np.float32), 0
    _sum_of_terms(waiting, mean, variance, gallery, terms.astype(np.float32), value)
    for i in range(len(waiting)):
        if value[i] >= least:
            waiting[count] = waiting[i]
            count += 1
    return waiting[:count]


@compiled()
def _work_out(
    h: int, mean: Floats, variance: Floats, gallery: Gallery, formula: Formula, hunt: Hunt, best: Floats, items: Ints
) -> None:
    """Put what waits for a probe `(C, D)` in its place among its best, `(k,)`, and draw the radii in."""
    chosen = _best_rest(hunt.waiting[h, : hunt.many[h]], mean, variance, gallery, formula, best[-1])
    hunt.many[h] = 0
    scores = np.empty(len(chosen), np.float64)
    log_match(chosen, mean, variance, gallery.means, gallery.variances, formula, scores)
    for i in range(len(chosen)):
        _insert(scores[i], gallery.places[chosen[i]], best, items)
    if best[-1] > hunt.drawn_for[h] + REDRAW_GAIN:
        hunt.drawn_for[h] = best[-1]
        for one in range(len(mean)):
            _shrink(best[-1], gallery.grades, variance[one], formula, hunt.volume[h, one], hunt.radii[h, one])


@inlined()
def _in_reach(leaf: int, mean: Floats, gallery: Gallery, radii: Floats) -> bool:
    """Whether the box of a leaf is within the radii of a probe `(C, D)`."""
    found = False
    for one in range(len(mean)):
        for other in range(len(gallery.means)):
            apart = _apart(mean[one], gallery.lows[leaf, other], gallery.highs[leaf, other])
            found |= apart <= radii[one, gallery.leaf_grade[leaf, other]]
    return found


@compiled()
def _visit(h: int, leaf: int, mean: Floats, gallery: Gallery, hunt: Hunt, itself: int) -> None:
    """Let the items of a leaf wait that are within the radii of a probe `(C, D)`, but for the item `itself`."""
    start, stop = leaf * LEAF, min((leaf + 1) * LEAF, len(gallery.places))
    squares, close = np.empty(stop - start, np.float32), np.zeros(stop - start, np.bool_)
    for one in range(len(mean)):
        radii = hunt.radii[h, one]
        for other in range(len(gallery.means)):
            _squares(mean[one], gallery.means[other], start, squares)
            for i in range(stop - start):
                close[i] |= squares[i] <= radii[gallery.grade[other, start + i]]
    for i in range(stop - start):
        if close[i] and gallery.places[start + i] != itself:
            hunt.waiting[h, hunt.many[h]] = start + i
            hunt.many[h] += 1


@compiled()
def _nearest_leaf(mean: Floats, gallery: Gallery) -> int:
    least, found = math.inf, 0
    for leaf in range(len(gallery.lows)):
        for one in range(len(mean)):
            for other in range(len(gallery.means)):
                apart = _apart(mean[one], gallery.lows[leaf, other], gallery.highs[leaf, other])
                if apart < least:
                    least, found = apart, leaf
    return found


@compiled()
def nearest(
    first: int,
    last: int,
    mean: Floats,
    variance: Floats,
    gallery: Gallery,
    formula: Formula,
    best: Floats,
    items: Ints,
    exclude_self: int,
) -> None:
    """Write the best matches, `(N, k)`, for the groups from `first` to `last` of the probes `(N, C, D)`.

    Each probe visits the nearest leaf first, so that the radii are drawn in early, then all the others.
    """
    kinds = mean.shape[1], len(gallery.grades), formula.terms.shape[1]
    hunt = Hunt(
        np.empty((GROUP, WAITING + LEAF), np.int64),
        np.zeros(GROUP, np.int64),
        np.empty((GROUP, kinds[0], kinds[1]), np.float32),
        np.empty(GROUP, np.float64),
        np.empty((GROUP, kinds[0], kinds[2]), np.float64),
    )
    nearby, leaves = np.empty(GROUP, np.int64), len(gallery.lows)
    for group in range(first, last):
        start = group * GROUP
        size = min(GROUP, len(mean) - start)
        best[start : start + size] = -math.inf
        items[start : start + size] = -1
        hunt.drawn_for[:] = -math.inf
        hunt.radii[:] = EVERYWHERE
        for h in range(size):
            _volumes(variance[start + h], formula.terms[0], hunt.volume[h])
            nearby[h] = _nearest_leaf(mean[start + h], gallery)
        for turn in range(leaves + 2):  # the nearest leaf, all leaves, and one turn more to work out what is left
            for h in range(size):
                probe = start + h
                leaf = nearby[h] if turn == 0 else turn - 1
                is_new = turn == 0 or (leaf < leaves and leaf != nearby[h])
                if is_new and _in_reach(leaf, mean[probe], gallery, hunt.radii[h]):
                    _visit(h, leaf, mean[probe], gallery, hunt, probe if exclude_self else -1)
                if hunt.many[h] >= WAITING or (hunt.many[h] and turn % (leaves + 1) == 0):
                    _work_out(h, mean[probe], variance[probe], gallery, formula, hunt, best[probe], items[probe])


@compiled()
def _volumes(variance: Floats, widths: Floats, out: Floats) -> None:
    """Π_d (1 + 2c_j s_d)^(−1/2) for each component `(C, D)` and each term, `(C, J)`."""
    for one in range(len(variance)):
        for j in range(len(widths)):
            product = 1.0
            for d in range(variance.shape[1]):
                product *= 1 + 2.0 * widths[j] * variance[one, d]
            out[one, j] = 1 / math.sqrt(product)


@compiled()
def closest(
    first: int, last: int, points: Floats, columns: Floats, best: Floats, items: Ints, exclude_self: int
) -> None:
    """Write the least squared distances, `(N, k)`, of some points `(N, D)` to a gallery, `(D, M)`."""
    size = columns.shape[1]
    squares = np.empty(LEAF, columns.dtype)
    for probe in range(first, last):
        kept, places = best[probe], items[probe]
        kept[:] = -math.inf
        places[:] = -1
        for start in range(0, size, LEAF):
            stop = min(start + LEAF, size)
            _squares(points[probe], columns, start, squares[: stop - start])
            for i in range(stop - start):
                if -squares[i] > kept[-1] and not (exclude_self and start + i == probe):
                    _insert(-squares[i], start + i, kept, places)
        kept *= -1
