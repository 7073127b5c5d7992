"""The colours of a batch of photos changed in one pass, from bytes to floats."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedged._compiled import compiled

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]


@compiled(True)
def recolour(first: int, last: int, photos: Bytes, matrix: Floats, mean: Floats, shift: Floats, out: Floats) -> None:
    """out = clip(A x + ⟨m, x̄⟩ s), pixel by pixel of photos (n, P, 3), x̄ the mean of the photo's pixels.

    A is `matrix` (n, 3, 3), m `mean` (3,), s `shift` (n, 3).
    """
    zero, one = np.float32(0), np.float32(1)
    for i in range(first, last):
        pixels, coloured, a = photos[i], out[i], matrix[i]
        red = green = blue = 0
        for p in range(len(pixels)):
            red += pixels[p, 0]
            green += pixels[p, 1]
            blue += pixels[p, 2]
        bright = np.float32((mean[0] * red + mean[1] * green + mean[2] * blue) / len(pixels))
        c0, c1, c2 = shift[i, 0] * bright, shift[i, 1] * bright, shift[i, 2] * bright
        a00, a01, a02 = a[0, 0], a[0, 1], a[0, 2]
        a10, a11, a12 = a[1, 0], a[1, 1], a[1, 2]
        a20, a21, a22 = a[2, 0], a[2, 1], a[2, 2]
        for p in range(len(pixels)):
            r, g, b = np.float32(pixels[p, 0]), np.float32(pixels[p, 1]), np.float32(pixels[p, 2])
            coloured[p, 0] = min(max(a00 * r + a01 * g + a02 * b + c0, zero), one)
            coloured[p, 1] = min(max(a10 * r + a11 * g + a12 * b + c1, zero), one)
            coloured[p, 2] = min(max(a20 * r + a21 * g + a22 * b + c2, zero), one)
