"""p(m | x_i, x_j) of all pairs of two lists, with bounds that spare most exponentials of pairs that are far apart."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedged._compiled import compiled
from hedged.match._closed_form.loops.bounds import floors, log_chernoff
from hedged.match._closed_form.loops.gaussians import STRIP, exp
from hedged.match._closed_form.loops.limits import MATRIX_FAR, PlainCurve
from hedged.match._closed_form.loops.sums import extremes, near_sum, padded, volumes

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.int64]
FAR_LOG_P = np.float32(MATRIX_FAR)  # log p below which Jensen's bound stands for p
FAR_MARGIN = np.float32(1e-2)  # of log p, more than its rounding error
NEGLIGIBLE_EXPONENT = np.float32(16)  # x where a term, exp(−x), is next to nothing
NEARLY_ALL = 7 / 8  # share of a strip: if more pairs need terms, it is quicker not to pick them out
FEW, ALL = 0, 1  # which terms a pair needs: the first third, whose Gaussians are the widest, or all that count
_ZERO, _ONE, _TWO = np.float32(0), np.float32(1), np.float32(2)
_QUICK: Any = {"contract", "nsz", "arcp", "reassoc"}


class Strip(NamedTuple):
    """What is known of one Gaussian and each of a strip of others, before any term: buffers that are used again."""

    squares: Floats  # (padded(D), STRIP): m²
    spreads: Floats  # (padded(D), STRIP): s
    length: Floats  # (STRIP,): ‖m‖²
    along: Floats  # (STRIP,): Σ_d m_d² s_d
    trace: Floats  # (STRIP,): Σ_d s_d
    floor: Floats  # (STRIP,): Jensen's bound
    needs: NDArray[np.int32]  # (STRIP,): 0 for a pair that needs no terms, else 1 + FEW or 1 + ALL
    buffer: Floats  # (STRIP,)


@compiled(_QUICK)
def _survey(mean: Floats, variance: Floats, means: Floats, variances: Floats, start: int, n: int, strip: Strip) -> None:
    """Distances and spreads of one Gaussian and n of the others, `(D, M)`, from `start` on."""
    length, along, trace = strip.length[:n], strip.along[:n], strip.trace[:n]
    length[:], along[:], trace[:] = _ZERO, _ZERO, _ZERO
    for d in range(len(mean)):
        mu, var, square, spread = mean[d], variance[d], strip.squares[d], strip.spreads[d]
        column, width = means[d, start : start + n], variances[d, start : start + n]
        for i in range(n):
            m, s = mu - column[i], var + width[i]
            square[i], spread[i] = m * m, s
            length[i] += m * m
            along[i] += m * m * s
            trace[i] += s


@compiled(_QUICK)
def _classify(n: int, b: Any, width: Any, strip: Strip) -> int:
    """Write which terms the pairs need, given that the first few are those below `width`; return how many need any."""
    length, along, trace, needs = strip.length[:n], strip.along[:n], strip.trace[:n], strip.needs[:n]
    for i in range(n):
        is_near = log_chernoff(length[i], along[i], b) > FAR_LOG_P
        is_short = length[i] * width < NEGLIGIBLE_EXPONENT * (_ONE + _TWO * width * trace[i])
        needs[i] = np.int32(is_near) + np.int32(is_near and is_short)
    near = 0
    for i in range(n):
        near += int(needs[i] > 0)
    return near


@compiled(_QUICK)
def _add_far(
    mean: Floats, variance: Floats, means: Floats, variances: Floats, start: int, b: Any, share: Any, out: Floats
) -> None:
    """Add Jensen's bound for a strip that is far throughout: there it is e/(1 + e) with e = exp(b − reach)."""
    reach = np.zeros(len(out), out.dtype)
    for d in range(len(mean)):
        mu, var = mean[d], variance[d]
        column, width = means[d, start : start + len(out)], variances[d, start : start + len(out)]
        for i in range(len(out)):
            m = mu - column[i]
            reach[i] += m * m + (var + width[i])
    for i in range(len(out)):
        reach[i] = b - np.sqrt(reach[i])
    exp(reach)
    for i in range(len(out)):
        out[i] += share * (reach[i] - reach[i] * reach[i])  # to within e³, which is nothing


class Pending(NamedTuple):
    """Pairs of a row whose terms are yet to be added, in two groups, FEW and ALL, of up to two strips each."""

    counts: Ints  # (2,): of pairs
    squares: Floats  # (2, padded(D), n)
    spreads: Floats  # (2, padded(D), n)
    length: Floats  # (2, n): ‖m‖²
    along: Floats  # (2, n): Σ_d m_d² s_d
    trace: Floats  # (2, n): Σ_d s_d
    floor: Floats  # (2, n)
    place: Ints  # (2, n): in the row


@compiled()
def _collect(n: int, strip: Strip, start: int, pending: Pending) -> None:
    """Append the pairs of a strip that need terms to those that are pending."""
    near, every = np.empty(n + 1, np.int64), 0
    for i in range(n):
        near[every] = i
        every += strip.needs[i] > 0
    chosen = np.empty(every + 1, np.int64)
    for need in (FEW, ALL):
        count, begun = 0, pending.counts[need]
        for i in range(every):
            chosen[count] = near[i]
            count += strip.needs[near[i]] == need + 1
        for d in range(len(strip.squares)):
            for i in range(count):
                pending.squares[need, d, begun + i] = strip.squares[d, chosen[i]]
                pending.spreads[need, d, begun + i] = strip.spreads[d, chosen[i]]
        for i in range(count):
            pending.length[need, begun + i] = strip.length[chosen[i]]
            pending.along[need, begun + i] = strip.along[chosen[i]]
            pending.trace[need, begun + i] = strip.trace[chosen[i]]
            pending.floor[need, begun + i] = strip.floor[chosen[i]]
            pending.place[need, begun + i] = start + chosen[i]
        pending.counts[need] += count


@compiled()
def _add_pending(
    need: int, pending: Pending, terms: Floats, most: Floats, highest: Any, share: Any, out: Floats
) -> None:
    """Raise pending pairs from their floor to the sum of their terms; each counts by its `share`."""
    count = pending.counts[need]
    if not count:
        return
    value = np.empty(count, terms.dtype)
    bounds = extremes(pending.length[need, :count], pending.along[need, :count], pending.trace[need, :count])
    near_sum(pending.squares[need], pending.spreads[need], bounds, terms, most, value)
    for i in range(count):
        rise = min(value[i], highest) - pending.floor[need, i]
        out[pending.place[need, i]] += share * max(rise, _ZERO)
    pending.counts[need] = 0


@compiled()
def _add_strip(strip: Strip, terms: Floats, most: Floats, highest: Any, share: Any, out: Floats) -> None:
    """The same for a whole strip of which nearly all pairs need terms."""
    value = strip.buffer[: len(out)]
    bounds = extremes(strip.length[: len(out)], strip.along[: len(out)], strip.trace[: len(out)])
    near_sum(strip.squares, strip.spreads, bounds, terms, most, value)
    for i in range(len(out)):
        rise = min(value[i], highest) - strip.floor[i]
        out[i] += share * (max(rise, _ZERO) if strip.needs[i] > 0 else _ZERO)


@compiled()
def _boxes(means: Floats, variances: Floats) -> Floats:
    """Of each strip of `(C, D, M)`, the least and the greatest mean and the greatest variance, `(S, C, 3, D)`."""
    components, dim, size = means.shape
    boxes = np.empty((-(-size // STRIP), components, 3, dim), means.dtype)
    for strip in range(len(boxes)):
        for c in range(components):
            for d in range(dim):
                at = slice(strip * STRIP, min((strip + 1) * STRIP, size))
                boxes[strip, c, 0, d] = means[c, d, at].min()
                boxes[strip, c, 1, d] = means[c, d, at].max()
                boxes[strip, c, 2, d] = variances[c, d, at].max()
    return boxes


@compiled()
def _is_far(mean: Floats, variance: Floats, box: Floats, b: Any) -> bool:
    """Whether all of a strip, in a box `(3, D)`, are far from a Gaussian."""
    square, widest = mean[0] * 0, mean[0] * 0
    for d in range(len(mean)):
        gap = max(box[0, d] - mean[d], mean[d] - box[1, d])
        square += gap * gap if gap > 0 else gap * 0
        widest = max(widest, variance[d] + box[2, d])
    return bool(log_chernoff(square, square * widest, b) < FAR_LOG_P - FAR_MARGIN)


@compiled()
def _least(variances: Floats) -> Floats:
    """The least variance of each dimension, `(D,)`."""
    least = np.full(variances.shape[1], np.inf, variances.dtype)
    for component in variances:
        for d in range(len(least)):
            for value in component[d]:
                least[d] = min(least[d], value)
    return least


@compiled()
def probabilities(
    first: int,
    last: int,
    mean: Floats,
    variance: Floats,
    means: Floats,
    variances: Floats,
    places: Ints,
    terms: Floats,
    curve: PlainCurve,
    ends: Floats,
    out: Floats,
) -> None:
    """Write the rows from `first` to `last` of p, `(N, M)`, for lists `(N, C, D)` and `(C', D, M)`.

    All in the curve's units. The second list is in an order of its own, in which `places`, `(M,)`, are the columns of
    the result: the nearer the items of a strip are to each other, the more is passed over. `terms` are widths, rising,
    and weights, `(2, J)`; `curve` is in their dtype; `ends` are the least and the greatest p.
    """
    dim, size, dtype = means.shape[1], means.shape[2], terms.dtype
    few = terms.shape[1] // 3  # see FEW
    share = np.full(1, 1 / (mean.shape[1] * len(means)), dtype)[0]
    boxes, least, row_sums = _boxes(means, variances), _least(variances), np.empty(size, dtype)
    wide = terms[:, :few]
    strip = Strip(
        np.zeros((padded(dim), STRIP), dtype),
        np.zeros((padded(dim), STRIP), dtype),
        np.empty(STRIP, dtype),
        np.empty(STRIP, dtype),
        np.empty(STRIP, dtype),
        np.empty(STRIP, dtype),
        np.empty(STRIP, np.int32),
        np.empty(STRIP, dtype),
    )
    pending = Pending(
        np.zeros(2, np.int64),
        np.zeros((2, padded(dim), 2 * STRIP), dtype),
        np.zeros((2, padded(dim), 2 * STRIP), dtype),
        np.empty((2, 2 * STRIP), dtype),
        np.empty((2, 2 * STRIP), dtype),
        np.empty((2, 2 * STRIP), dtype),
        np.empty((2, 2 * STRIP), dtype),
        np.empty((2, 2 * STRIP), np.int64),
    )
    for row in range(first, last):
        row_sums[:] = _ZERO
        for one in range(mean.shape[1]):
            mu, var = mean[row, one], variance[row, one]
            most = volumes(var + least, terms)
            for other in range(len(means)):
                for start in range(0, size, STRIP):
                    n = min(STRIP, size - start)
                    here = row_sums[start : start + n]
                    if _is_far(mu, var, boxes[start // STRIP, other], curve.bias):
                        _add_far(mu, var, means[other], variances[other], start, curve.bias, share, here)
                        continue
                    _survey(mu, var, means[other], variances[other], start, n, strip)
                    for i in range(n):
                        strip.floor[i] = strip.length[i] + strip.trace[i]
                    floors(curve, strip.buffer[:n], strip.floor[:n])
                    for i in range(n):
                        here[i] += share * strip.floor[i]
                    near = _classify(n, curve.bias, terms[0, few], strip)
                    if near > NEARLY_ALL * n:
                        _add_strip(strip, terms, most, curve.at_zero, share, here)
                        continue
                    _collect(n, strip, start, pending)
                    if pending.counts[FEW] >= STRIP:
                        _add_pending(FEW, pending, wide, most, curve.at_zero, share, row_sums)
                    if pending.counts[ALL] >= STRIP:
                        _add_pending(ALL, pending, terms, most, curve.at_zero, share, row_sums)
            _add_pending(FEW, pending, wide, most, curve.at_zero, share, row_sums)
            _add_pending(ALL, pending, terms, most, curve.at_zero, share, row_sums)
        for i in range(size):
            out[row, places[i]] = min(max(row_sums[i], ends[0]), ends[1])
