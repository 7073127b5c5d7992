"""The Bayes factor of all pairs of two lists of Gaussians whose covariances are not diagonal, compiled.

With the natural parameters of `hedged.match._evidence.turned`, νᵀA⁻¹ν and log |A| come from eliminating one row after
the other of a small matrix that has ν beside it: of A itself in few dimensions, of I − G diag(1/p) Gᵀ in more. The
arithmetic is double; loops run along a strip of the second list.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedged._compiled import compiled, inlined

Floats = NDArray[np.float64]
_LN2 = 0.6931471805599453
STRIP = 128  # items of the second list that are worked on at a time
_QUICK: Any = {"contract", "nsz", "arcp", "reassoc"}


class Known(NamedTuple):
    """What Gaussians know, items last: in few dimensions P, in more its diagonal and G.

    Args:
        precision: P, `(D, D, N)`, or its diagonal part, `(D, 1, N)`, D a multiple of four.
        turned: G, `(R, D, N)`; no rows where P is all of it.
        pull: ν, `(D, N)`.
        norm: log |P| − μᵀν, `(N,)`.
    """

    precision: Floats
    turned: Floats
    pull: Floats
    norm: Floats


class Strip(NamedTuple):
    """Buffers for pairs of one item and a strip of others.

    Args:
        small: The small matrix with ν or its share in the last column, `(R + 1, R + 1, STRIP)`, from the diagonal on.
        volume: What |A| is a product of, `(STRIP,)`.
        logs: The logarithm of what it was before, `(STRIP,)`.
        share: `(STRIP,)`.
        inverse: 1/p of four dimensions, `(4, STRIP)`.
        pull: ν of both, `(4, STRIP)`.
        known: ν/p, `(4, STRIP)`.
        weighed: G/p of the others, `(R, 4, STRIP)`.
    """

    small: Floats
    volume: Floats
    logs: Floats
    share: Floats
    inverse: Floats
    pull: Floats
    known: Floats
    weighed: Floats


@compiled(_QUICK)
def _few(row: int, one: Known, other: Known, n: int, strip: Strip) -> None:
    """A with ν beside it."""
    dim = len(one.pull)
    for a in range(dim):
        for b in range(a, dim):
            fixed = one.precision[a, b, row] - (1 if a == b else 0)
            precision, target = other.precision[a, b], strip.small[a, b]
            for i in range(n):
                target[i] = fixed + precision[i]
        pull, target = other.pull[a], strip.small[a, dim]
        for i in range(n):
            target[i] = one.pull[a, row] + pull[i]
    strip.small[dim, dim] = 0


@compiled(_QUICK)
def _weigh(d: int, row: int, one: Known, other: Known, n: int, strip: Strip) -> None:
    """1/p and what is weighed by it, of four dimensions from d on; p is multiplied to the volume."""
    volume, rest = strip.volume, strip.share
    for e in (0, 2):  # what the four have by twos, in the place of ν/p
        first, second, both = one.precision[d + e, 0, row] - 1, one.precision[d + e + 1, 0, row] - 1, strip.known[e]
        own, next_own = other.precision[d + e, 0], other.precision[d + e + 1, 0]
        for i in range(n):
            both[i] = (first + own[i]) * (second + next_own[i])
    these, those = strip.known[0], strip.known[2]
    for i in range(n):
        volume[i] *= these[i] * those[i]
    for i in range(n):
        rest[i] = 1 / (these[i] * those[i])  # one division for four dimensions
    for e in range(4):
        beside = e + 1 if e % 2 == 0 else e - 1
        fixed, own = one.precision[d + beside, 0, row] - 1, other.precision[d + beside, 0]
        others, inverse = strip.known[2 if e < 2 else 0], strip.inverse[e]
        for i in range(n):
            inverse[i] = rest[i] * others[i] * (fixed + own[i])
    for e in range(4):
        fixed, theirs = one.pull[d + e, row], other.pull[d + e]
        inverse, pull, known = strip.inverse[e], strip.pull[e], strip.known[e]
        for i in range(n):
            pull[i] = fixed + theirs[i]
        for i in range(n):
            known[i] = pull[i] * inverse[i]
        for r in range(len(other.turned)):
            turned, weighed = other.turned[r, d + e], strip.weighed[r, e]
            for i in range(n):
                weighed[i] = turned[i] * inverse[i]


@compiled(_QUICK)
def _add(n: int, one: Floats, other: Floats, d: int, out: Floats) -> None:
    """Add the products of four dimensions, `(4, n)`, and of as many from d on, `(D, n)`."""
    for e in range(0, 4, 2):  # of more arrays at a time no vector instructions are made
        x, y, theirs, others = one[e], one[e + 1], other[d + e], other[d + e + 1]
        for i in range(n):
            out[i] += x[i] * theirs[i] + y[i] * others[i]


@compiled(_QUICK)
def _add_weighed(n: int, a: float, b: float, c: float, d: float, x: Floats, out: Floats) -> None:
    """Add four dimensions, `(4, n)`, weighed by numbers."""
    y, z, v, w = x[0], x[1], x[2], x[3]
    for i in range(n):
        out[i] += a * y[i] + b * z[i] + c * v[i] + d * w[i]


@inlined(_QUICK)
def _log(x: Any) -> Any:
    """log x of a normal x > 0, to about 10⁻¹⁴ of max(1, |log x|): written out, to become vector instructions."""
    bits = np.float64(x).view(np.int64)
    power = np.float64((bits >> 52) - 1023)
    f = np.int64((bits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000).view(np.float64)  # in [1, 2)
    is_large = f > 1.4142135623730951
    f = 0.5 * f - 1.0 if is_large else f - 1.0
    r = f / (2.0 + f)  # log(1 + f) = 2 artanh(r), |r| < 0.1716
    q = r * r
    poly = 2 / 17
    poly = poly * q + 2 / 15
    poly = poly * q + 2 / 13
    poly = poly * q + 2 / 11
    poly = poly * q + 2 / 9
    poly = poly * q + 2 / 7
    poly = poly * q + 2 / 5
    poly = poly * q + 2 / 3
    poly = poly * q + 2.0
    return poly * r + (power + 1.0 if is_large else power) * _LN2


@compiled(_QUICK)
def _take_logs(n: int, strip: Strip) -> None:
    """The logarithm of the volume is added to those before; the volume begins anew."""
    volume, logs = strip.volume, strip.logs
    for i in range(n):
        logs[i] += _log(volume[i])
    volume[:] = 1


@compiled(_QUICK)
def _many(row: int, one: Known, other: Known, n: int, every: int, strip: Strip) -> None:
    """I − G diag(1/p) Gᵀ with G diag(1/p) ν beside it and −Σ ν²/p in the corner; Π p in the volume and its log."""
    ranks, small, sharp = len(one.turned), strip.small, one.turned
    rank = ranks + len(other.turned)
    small[:] = 0
    for d in range(0, len(one.pull), 4):
        _weigh(d, row, one, other, n, strip)
        for a in range(ranks):
            e, f, g, h = sharp[a, d, row], sharp[a, d + 1, row], sharp[a, d + 2, row], sharp[a, d + 3, row]
            for b in range(a, ranks):
                t, u, v, w = sharp[b, d, row], sharp[b, d + 1, row], sharp[b, d + 2, row], sharp[b, d + 3, row]
                _add_weighed(n, -e * t, -f * u, -g * v, -h * w, strip.inverse, small[a, b])
            for b in range(len(other.turned)):
                _add_weighed(n, -e, -f, -g, -h, strip.weighed[b], small[a, ranks + b])
            _add_weighed(n, e, f, g, h, strip.known, small[a, rank])
        for a in range(len(other.turned)):
            for b in range(a, len(other.turned)):
                _add(n, strip.weighed[a], other.turned[b], d, small[ranks + a, ranks + b])
            _add(n, strip.weighed[a], strip.pull, 0, small[ranks + a, rank])
        _add(n, strip.known, strip.pull, 0, small[rank, rank])
        if (d // 4 + 1) % every == 0:
            _take_logs(n, strip)
    for a in range(ranks, rank):
        for b in range(a, rank):
            for i in range(n):
                small[a, b, i] = -small[a, b, i]
    for i in range(n):
        small[rank, rank, i] = -small[rank, rank, i]
    for a in range(rank):
        for i in range(n):
            small[a, a, i] += 1


@compiled(_QUICK)
def _eliminate(n: int, strip: Strip) -> None:
    """One row after the other: the determinant goes to the volume, and minus the square is left in the corner."""
    small, volume, share = strip.small, strip.volume, strip.share
    for a in range(len(small) - 1):
        pivot = small[a, a]
        for i in range(n):
            volume[i] *= pivot[i]
        for b in range(a + 1, len(small)):
            row = small[a, b]
            for i in range(n):
                share[i] = row[i] / pivot[i]
            for e in range(b, len(small)):
                other, target = small[a, e], small[b, e]
                for i in range(n):
                    target[i] -= share[i] * other[i]


@compiled()
def turned_factors(
    first: int, last: int, one: Known, other: Known, every: int, told: Floats, out: NDArray[np.floating[Any]]
) -> None:
    """Write c + κ log BF for the rows from `first` to `last` of `out`, `(N, M)`; told: c and κ.

    Logarithms are taken of products over `every` times four dimensions at a time, which must not overflow.
    """
    is_dense = one.precision.shape[1] > 1 or len(one.pull) == 1
    rank = len(one.pull) if is_dense else len(one.turned) + len(other.turned)
    strip = Strip(
        np.empty((rank + 1, rank + 1, STRIP)),
        np.empty(STRIP),
        np.empty(STRIP),
        np.empty(STRIP),
        np.empty((4, STRIP)),
        np.empty((4, STRIP)),
        np.empty((4, STRIP)),
        np.empty((len(other.turned), 4, STRIP)),
    )
    for start in range(0, out.shape[1], STRIP):
        n = min(STRIP, out.shape[1] - start)
        here = slice(start, start + n)
        others = Known(
            other.precision[..., here].copy(),
            other.turned[..., here].copy(),
            other.pull[..., here].copy(),
            other.norm[here].copy(),
        )
        for row in range(first, last):
            strip.volume[:], strip.logs[:] = 1, 0
            if is_dense:
                _few(row, one, others, n, strip)
            else:
                _many(row, one, others, n, every, strip)
            _eliminate(n, strip)
            _take_logs(n, strip)
            square = strip.small[rank, rank]
            for i in range(n):
                factor = 0.5 * (one.norm[row] + others.norm[i] - square[i] - strip.logs[i])
                out[row, start + i] = told[0] + told[1] * factor
