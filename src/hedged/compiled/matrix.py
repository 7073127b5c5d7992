"""p(m | x_i, x_j) of all pairs of two lists, with bounds that spare most exponentials of pairs that are far apart."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedged.compiled import compiled
from hedged.compiled.bounds import floors, log_chernoff
from hedged.compiled.gaussians import STRIP, expected

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.int64]
FAR = np.float32(-11.5)  # log p below which Jensen's bound stands for p: the truth is between it and this, 10⁻⁵
MARGIN = np.float32(1e-2)  # more than rounding makes of it
GONE = np.float32(16)  # an exponent at which a term is next to nothing
_ONE, _TWO = np.float32(1), np.float32(2)


@compiled({"contract", "nsz", "arcp", "reassoc"})
def _survey(
    mean: Floats,
    variance: Floats,
    means: Floats,
    variances: Floats,
    start: int,
    squares: Floats,
    spreads: Floats,
    length: Floats,
    along: Floats,
    trace: Floats,
) -> None:
    """m², s, ‖m‖², Σ_d m_d² s_d and Σ_d s_d of one Gaussian and n of others, `(D, M)`, from `start` on."""
    n = len(length)
    length[:] = np.float32(0)
    along[:] = np.float32(0)
    trace[:] = np.float32(0)
    for d in range(len(mean)):
        mu, var, square, spread = mean[d], variance[d], squares[d], spreads[d]
        column, width = means[d, start : start + n], variances[d, start : start + n]
        for i in range(n):
            m, s = mu - column[i], var + width[i]
            square[i], spread[i] = m * m, s
            length[i] += m * m
            along[i] += m * m * s
            trace[i] += s


@compiled({"contract", "nsz", "arcp", "reassoc"})
def _kinds(length: Floats, along: Floats, trace: Floats, b: Any, width: Any, kinds: NDArray[np.int32]) -> None:
    """0 for pairs that need no terms, 1 for those to which terms of `width` or more add nothing, 2 for the others."""
    for i in range(len(kinds)):
        is_near = log_chernoff(length[i], along[i], b) > FAR
        is_short = length[i] * width < GONE * (_ONE + _TWO * width * trace[i])
        kinds[i] = np.int32(is_near) + np.int32(is_near and is_short)


class Pending(NamedTuple):
    """Pairs whose terms are yet to be added: of each kind, few terms or all, up to two strips."""

    many: Ints  # (2,)
    squares: Floats  # (2, D, n)
    spreads: Floats  # (2, D, n)
    floor: Floats  # (2, n)
    place: Ints  # (2, n): in the matrix, row by row


@compiled()
def _collect(
    kinds: NDArray[np.int32], squares: Floats, spreads: Floats, floor: Floats, places: Ints, pending: Pending
) -> None:
    """Let the pairs of a strip wait that need terms."""
    near, every = np.empty(len(kinds) + 1, np.int64), 0
    for i in range(len(kinds)):
        near[every] = i
        every += kinds[i] > 0
    chosen = np.empty(every + 1, np.int64)
    for kind in range(2):
        count, begun = 0, pending.many[kind]
        for i in range(every):
            chosen[count] = near[i]
            count += kinds[near[i]] == kind + 1
        for d in range(len(squares)):
            for i in range(count):
                pending.squares[kind, d, begun + i] = squares[d, chosen[i]]
                pending.spreads[kind, d, begun + i] = spreads[d, chosen[i]]
        for i in range(count):
            pending.floor[kind, begun + i] = floor[chosen[i]]
            pending.place[kind, begun + i] = places[chosen[i]]
        pending.many[kind] += count


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
def _add(kind: int, pending: Pending, terms: Floats, highest: Any, share: Any, out: Floats) -> None:
    """Raise the pairs that wait from their floor to the sum of their terms; of each, `share` counts."""
    count = pending.many[kind]
    value = np.empty(count, terms.dtype)
    expected(0, -(-count // STRIP), pending.squares[kind], pending.spreads[kind], terms[0], terms[1], value)
    for i in range(count):
        rise = min(value[i], highest) - pending.floor[kind, i]
        out[pending.place[kind, i]] += share * max(rise, np.float32(0))
    pending.many[kind] = 0


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
    curve: Floats,
    out: Floats,
) -> None:
    """Write the rows from `first` to `last` of p, `(N, M)`, for lists `(N, C, D)` and `(C', D, M)`.

    All in the curve's units. The second list is in an order of its own, in which `places`, `(M,)`, are the columns of
    the result: the nearer the items of a strip are to each other, the more is passed over. `terms` are widths, rising,
    and weights, `(2, J)`; curve is b, the end of its chord, and p at both its ends.
    """
    dim, size, kind = means.shape[1], means.shape[2], terms.dtype
    few = terms.shape[1] // 3
    choices = np.ascontiguousarray(terms[:, :few]), terms
    share = np.full(1, 1 / (mean.shape[1] * len(means)), kind)[0]
    boxes, here = _boxes(means, variances), np.empty(STRIP, np.int64)
    squares, spreads = np.empty((dim, STRIP), kind), np.empty((dim, STRIP), kind)
    length, along, trace = np.empty(STRIP, kind), np.empty(STRIP, kind), np.empty(STRIP, kind)
    buffer, floor, kinds = np.empty(STRIP, kind), np.empty(STRIP, kind), np.empty(STRIP, np.int32)
    pending = Pending(
        np.zeros(2, np.int64),
        np.empty((2, dim, 2 * STRIP), kind),
        np.empty((2, dim, 2 * STRIP), kind),
        np.empty((2, 2 * STRIP), kind),
        np.empty((2, 2 * STRIP), np.int64),
    )
    flat = out.reshape(-1)
    for row in range(first, last):
        out[row] = np.float32(0)
        for start in range(0, size, STRIP):
            n = min(STRIP, size - start)
            for i in range(n):
                here[i] = row * size + places[start + i]
            for one in range(mean.shape[1]):
                for other in range(len(means)):
                    mu, var = mean[row, one], variance[row, one]
                    wanted = length[:n], along[:n], trace[:n]
                    _survey(mu, var, means[other], variances[other], start, squares, spreads, *wanted)
                    for i in range(n):
                        floor[i] = length[i] + trace[i]
                    floors(curve, buffer[:n], floor[:n])
                    for i in range(n):
                        flat[here[i]] += share * floor[i]
                    if _is_far(mu, var, boxes[start // STRIP, other], curve[0]):
                        continue
                    _kinds(length[:n], along[:n], trace[:n], curve[0], terms[0, few], kinds[:n])
                    _collect(kinds[:n], squares, spreads, floor, here, pending)
                    for which in range(2):
                        if pending.many[which] >= STRIP:
                            _add(which, pending, choices[which], curve[2], share, flat)
    for which in range(2):
        _add(which, pending, choices[which], curve[2], share, flat)
