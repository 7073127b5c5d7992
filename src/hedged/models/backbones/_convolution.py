"""5×5 convolution, 2×2 max pooling and ReLU in one pass, and its gradient, for small networks on a CPU.

Images come in groups and lie side by side in memory, `(groups, channels, height, width · batch)`: a pixel of all images
of a group is one stretch. To shift a row of pixels is then to start reading further on, so that a row of an output
channel is a sum of a few long stretches times weights, however few channels there are. Libraries are made for many
channels and leave most of a core idle here. What a group needs stays in a core's cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedged._compiled import compiled

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]
SIDE = 5  # of the filters
EDGE = SIDE - 1


@compiled(True)
def _add_rows(
    one: Floats, two: Floats, plane: Floats, top: int, v: Floats, w: Floats, batch: int, first: int, last: int
) -> None:
    """one += Σ_kl v_kl · (row top + k of the plane, l pixels further on), and two by w; k from `first` to `last`.

    Two sums at a time: what is read from memory then serves twice.
    """
    for k in range(first, last):
        row = plane[top + k]
        r1, r2, r3, r4 = row[batch:], row[2 * batch :], row[3 * batch :], row[4 * batch :]
        v0, v1, v2, v3, v4 = v[k, 0], v[k, 1], v[k, 2], v[k, 3], v[k, 4]
        w0, w1, w2, w3, w4 = w[k, 0], w[k, 1], w[k, 2], w[k, 3], w[k, 4]
        for i in range(len(one)):
            one[i] += v0 * row[i] + v1 * r1[i] + v2 * r2[i] + v3 * r3[i] + v4 * r4[i]
            two[i] += w0 * row[i] + w1 * r1[i] + w2 * r2[i] + w3 * r3[i] + w4 * r4[i]


@compiled(True)
def _add_products(total: Floats, one: Floats, two: Floats, plane: Floats, top: int, batch: int) -> None:
    """total_0kl += ⟨one, (row top + k of the plane, l pixels further on)⟩, and total_1kl with two."""
    for k in range(SIDE):
        row = plane[top + k]
        r1, r2, r3, r4 = row[batch:], row[2 * batch :], row[3 * batch :], row[4 * batch :]
        s0 = s1 = s2 = s3 = s4 = np.float32(0)
        t0 = t1 = t2 = t3 = t4 = np.float32(0)
        for i in range(len(one)):
            g, h = one[i], two[i]
            s0 += g * row[i]
            s1 += g * r1[i]
            s2 += g * r2[i]
            s3 += g * r3[i]
            s4 += g * r4[i]
            t0 += h * row[i]
            t1 += h * r1[i]
            t2 += h * r2[i]
            t3 += h * r3[i]
            t4 += h * r4[i]
        for at, (s, t) in enumerate(((s0, t0), (s1, t1), (s2, t2), (s3, t3), (s4, t4))):
            total[0, k, at] += s
            total[1, k, at] += t


@compiled()
def _pool(upper: Floats, lower: Floats, out: Floats, place: Bytes, batch: int) -> None:
    """The largest of 2×2 pixels, at least 0, and which it was: 0 to 3, 4 for none."""
    for x in range(len(out) // batch):
        left, right = slice(2 * x * batch, (2 * x + 1) * batch), slice((2 * x + 1) * batch, (2 * x + 2) * batch)
        a, b, c, d = upper[left], upper[right], lower[left], lower[right]
        best, where = out[x * batch : (x + 1) * batch], place[x * batch : (x + 1) * batch]
        for i in range(batch):
            most, at = a[i], np.uint8(0)
            at = np.uint8(1) if b[i] > most else at
            most = max(b[i], most)
            at = np.uint8(2) if c[i] > most else at
            most = max(c[i], most)
            at = np.uint8(3) if d[i] > most else at
            most = max(d[i], most)
            where[i] = at if most > 0 else np.uint8(4)
            best[i] = max(most, np.float32(0))


@compiled()
def forward(
    first: int, last: int, x: Floats, weight: Floats, bias: Floats, out: Floats, place: Bytes, batch: int
) -> None:
    """Write ReLU(pool(x ∗ weight + bias)) of the groups from `first` to `last`, and which of 2×2 pixels it is of.

    x `(G, C, H, W·B)`, weight `(O, C, 5, 5)`, out and place `(G, O, (H − 4) // 2, (W − 4) // 2 · B)`.
    """
    rows = np.empty((2, 2, x.shape[3] - EDGE * batch), np.float32)
    for g in range(first, last):
        for o in range(0, len(weight), 2):
            other = min(o + 1, len(weight) - 1)  # if they are odd, the last is done twice
            for y in range(out.shape[2]):
                rows[0] = bias[o]
                rows[1] = bias[other]
                for c in range(x.shape[1]):
                    for half in range(2):
                        top = 2 * y + half
                        _add_rows(
                            rows[0, half], rows[1, half], x[g, c], top, weight[o, c], weight[other, c], batch, 0, SIDE
                        )
                _pool(rows[0, 0], rows[0, 1], out[g, o, y], place[g, o, y], batch)
                _pool(rows[1, 0], rows[1, 1], out[g, other, y], place[g, other, y], batch)


@compiled()
def backward(
    first: int,
    last: int,
    x: Floats,
    grad: Floats,
    place: Bytes,
    turned: Floats,
    to_weight: Floats,
    to_bias: Floats,
    to_x: Floats,
    batch: int,
) -> None:
    """Write what some groups contribute to the gradients of weight `(G, O, C, 5, 5)` and bias `(G, O)`, and that of x.

    `turned` are the filters turned round, `(C, O, 5, 5)`. Without any `to_x` (G = 0) the gradient of x is left out.
    """
    _, _, height, width = x.shape
    spread = np.zeros((place.shape[1], height + EDGE, width + EDGE * batch), np.float32)
    for g in range(first, last):
        for o in range(len(spread)):
            _unpool(grad[g, o], place[g, o], spread[o], batch)
            to_bias[g, o] = _sum(grad[g, o], place[g, o], batch)
        _to_weight(x[g], spread, to_weight[g], batch)
        if len(to_x):
            _to_x(spread, turned, to_x[g], batch)


@compiled()
def _to_weight(x: Floats, spread: Floats, out: Floats, batch: int) -> None:
    """From `spread`, the gradient of the convolution with a border of 4 zeros: `(O, H + 4, (W + 4)·B)`."""
    wide = slice(EDGE * batch, x.shape[2])
    sums = np.empty((2, SIDE, SIDE), np.float32)
    for o in range(0, len(spread), 2):
        other = min(o + 1, len(spread) - 1)
        for c in range(len(x)):
            sums[:] = np.float32(0)
            for y in range(x.shape[1] - EDGE):
                one, two = spread[o, EDGE + y][wide], spread[other, EDGE + y][wide]
                _add_products(sums, one, two, x[c], y, batch)
            out[o, c] = sums[0]
            out[other, c] = sums[1]


@compiled()
def _unpool(grad: Floats, place: Bytes, spread: Floats, batch: int) -> None:
    """Put each gradient where the largest pixel was, zeros at the other three."""
    for y in range(grad.shape[0]):
        for x in range(grad.shape[1] // batch):
            given, where = grad[y][x * batch : (x + 1) * batch], place[y][x * batch : (x + 1) * batch]
            for at in range(4):
                start = (EDGE + 2 * x + at % 2) * batch
                target = spread[EDGE + 2 * y + at // 2][start : start + batch]
                for i in range(batch):
                    target[i] = given[i] if where[i] == at else np.float32(0)


@compiled()
def _sum(grad: Floats, place: Bytes, batch: int) -> Any:
    """The sum of the gradients that reach a pixel.

    Image by image, so that it is quick in the order that is written here: with the liberty to choose another, the code
    that has just been compiled and the same code from disk chose differently, and so did the training that they served.
    """
    sums = np.zeros(batch, np.float32)
    for y in range(len(grad)):
        for x in range(grad.shape[1] // batch):
            given, where = grad[y][x * batch : (x + 1) * batch], place[y][x * batch : (x + 1) * batch]
            for i in range(batch):
                sums[i] += given[i] if where[i] < 4 else np.float32(0)
    return sums.sum()


@compiled()
def _to_x(spread: Floats, turned: Floats, out: Floats, batch: int) -> None:
    """A convolution with the filters turned round."""
    out[:] = np.float32(0)
    spare = np.empty(out.shape[2], np.float32)
    for c in range(0, len(out), 2):
        other = min(c + 1, len(out) - 1)
        for y in range(out.shape[1]):
            second = spare if other == c else out[other, y]
            top, bottom = max(EDGE - y, 0), min(SIDE, spread.shape[1] - EDGE - y)  # beyond are the border's zeros
            for o in range(len(spread)):
                _add_rows(out[c, y], second, spread[o], y, turned[c, o], turned[other, o], batch, top, bottom)
