"""p(m | x_i, x_j) of all pairs of two lists, with bounds that spare most exponentials of pairs that are far apart."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedged._compiled import compiled
from hedged.match._closed_form.loops.bounds import floors, log_chernoff
from hedged.match._closed_form.loops.gaussians import STRIP, exp, expected
from hedged.match._closed_form.loops.limits import MATRIX_FAR, PlainCurve

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.int64]
FAR = np.float32(MATRIX_FAR)  # log p below which Jensen's bound stands for p
MARGIN = np.float32(1e-2)  # more than rounding makes of it
GONE = np.float32(16)  # an exponent at which a term is next to nothing
ROUNDING = 2.0**-22  # what terms may add and be left out, all together
_ZERO, _ONE, _TWO = np.float32(0), np.float32(1), np.float32(2)
_QUICK: Any = {"contract", "nsz", "arcp", "reassoc"}


class Strip(NamedTuple):
    """What is known of one Gaussian and each of a strip of others, before any term: buffers that are used again."""

    squares: Floats  # (D, STRIP): m²
    spreads: Floats  # (D, STRIP): s
    length: Floats  # (STRIP,): ‖m‖²
    along: Floats  # (STRIP,): Σ_d m_d² s_d
    trace: Floats  # (STRIP,): Σ_d s_d
    floor: Floats  # (STRIP,): Jensen's bound
    kinds: NDArray[np.int32]  # (STRIP,): 0 for a pair that needs no terms, 1 for one that needs few, 2 for the others
    buffer: Floats  # (STRIP,)


@compiled(_QUICK)
def _survey(mean: Floats, variance: Floats, means: Floats, variances: Floats, start: int, n: int, strip: Strip) -> None:
    """Of one Gaussian and n of others, `(D, M)`, from `start` on: all that comes before Jensen's bound."""
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
def _judge(n: int, b: Any, width: Any, strip: Strip) -> int:
    """Write of what kind the pairs are, given that few terms are those below `width`; tell how many need any."""
    length, along, trace, kinds = strip.length[:n], strip.along[:n], strip.trace[:n], strip.kinds[:n]
    for i in range(n):
        is_near = log_chernoff(length[i], along[i], b) > FAR
        is_short = length[i] * width < GONE * (_ONE + _TWO * width * trace[i])
        kinds[i] = np.int32(is_near) + np.int32(is_near and is_short)
    near = 0
    for i in range(n):
        near += int(kinds[i] > 0)
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
    """Pairs of a row whose terms are yet to be added: of each kind, few terms or all, up to two strips."""

    many: Ints  # (2,)
    squares: Floats  # (2, D, n)
    spreads: Floats  # (2, D, n)
    floor: Floats  # (2, n)
    place: Ints  # (2, n): in the row


@compiled()
def _collect(n: int, strip: Strip, start: int, pending: Pending) -> None:
    """Let the pairs of a strip wait that need terms."""
    near, every = np.empty(n + 1, np.int64), 0
    for i in range(n):
        near[every] = i
        every += strip.kinds[i] > 0
    chosen = np.empty(every + 1, np.int64)
    for kind in range(2):
        count, begun = 0, pending.many[kind]
        for i in range(every):
            chosen[count] = near[i]
            count += strip.kinds[near[i]] == kind + 1
        for d in range(len(strip.squares)):
            for i in range(count):
                pending.squares[kind, d, begun + i] = strip.squares[d, chosen[i]]
                pending.spreads[kind, d, begun + i] = strip.spreads[d, chosen[i]]
        for i in range(count):
            pending.floor[kind, begun + i] = strip.floor[chosen[i]]
            pending.place[kind, begun + i] = start + chosen[i]
        pending.many[kind] += count


@compiled()
def _add_pending(kind: int, pending: Pending, terms: Floats, first: int, highest: Any, share: Any, out: Floats) -> None:
    """Raise the pairs that wait from their floor to the sum of their first terms; of each, `share` counts."""
    count, widths, weights = pending.many[kind], terms[0, :first], terms[1, :first]
    value = np.empty(count, terms.dtype)
    expected(0, -(-count // STRIP), pending.squares[kind], pending.spreads[kind], widths, weights, value)
    for i in range(count):
        rise = min(value[i], highest) - pending.floor[kind, i]
        out[pending.place[kind, i]] += share * max(rise, _ZERO)
    pending.many[kind] = 0


@compiled()
def _add_strip(strip: Strip, terms: Floats, first: int, highest: Any, share: Any, out: Floats) -> None:
    """The same for a strip that is near all but throughout, as it lies."""
    value = strip.buffer[: len(out)]
    expected(0, 1, strip.squares, strip.spreads, terms[0, :first], terms[1, :first], value)
    for i in range(len(out)):
        rise = min(value[i], highest) - strip.floor[i]
        out[i] += share * (max(rise, _ZERO) if strip.kinds[i] > 0 else _ZERO)


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
    return bool(log_chernoff(square, square * widest, b) < FAR - MARGIN)


@compiled()
def _counting(spread: Floats, terms: Floats) -> int:
    """How many terms count if s is at least this, `(D,)`: what all the others add is less than rounding does."""
    rest, many = 0.0, len(terms[0])
    while many > 0:
        volume = 1.0
        for s in spread:
            volume *= 1 + 2 * terms[0, many - 1] * s
        rest += abs(terms[1, many - 1]) / math.sqrt(volume)
        if rest > ROUNDING:
            break
        many -= 1
    return many


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
    dim, size, kind = means.shape[1], means.shape[2], terms.dtype
    few = terms.shape[1] // 3
    share = np.full(1, 1 / (mean.shape[1] * len(means)), kind)[0]
    boxes, least, line = _boxes(means, variances), _least(variances), np.empty(size, kind)
    strip = Strip(
        np.empty((dim, STRIP), kind),
        np.empty((dim, STRIP), kind),
        np.empty(STRIP, kind),
        np.empty(STRIP, kind),
        np.empty(STRIP, kind),
        np.empty(STRIP, kind),
        np.empty(STRIP, np.int32),
        np.empty(STRIP, kind),
    )
    pending = Pending(
        np.zeros(2, np.int64),
        np.empty((2, dim, 2 * STRIP), kind),
        np.empty((2, dim, 2 * STRIP), kind),
        np.empty((2, 2 * STRIP), kind),
        np.empty((2, 2 * STRIP), np.int64),
    )
    for row in range(first, last):
        line[:] = _ZERO
        for one in range(mean.shape[1]):
            mu, var = mean[row, one], variance[row, one]
            counting = _counting(var + least, terms)
            for other in range(len(means)):
                for start in range(0, size, STRIP):
                    n = min(STRIP, size - start)
                    here = line[start : start + n]
                    if _is_far(mu, var, boxes[start // STRIP, other], curve.bias):
                        _add_far(mu, var, means[other], variances[other], start, curve.bias, share, here)
                        continue
                    _survey(mu, var, means[other], variances[other], start, n, strip)
                    for i in range(n):
                        strip.floor[i] = strip.length[i] + strip.trace[i]
                    floors(curve, strip.buffer[:n], strip.floor[:n])
                    for i in range(n):
                        here[i] += share * strip.floor[i]
                    near = _judge(n, curve.bias, terms[0, few], strip)
                    if 8 * near > 7 * n:
                        _add_strip(strip, terms, counting, curve.at_zero, share, here)
                        continue
                    _collect(n, strip, start, pending)
                    if pending.many[0] >= STRIP:
                        _add_pending(0, pending, terms, min(few, counting), curve.at_zero, share, line)
                    if pending.many[1] >= STRIP:
                        _add_pending(1, pending, terms, counting, curve.at_zero, share, line)
            _add_pending(0, pending, terms, min(few, counting), curve.at_zero, share, line)
            _add_pending(1, pending, terms, counting, curve.at_zero, share, line)
        for i in range(size):
            out[row, places[i]] = min(max(line[i], ends[0]), ends[1])
