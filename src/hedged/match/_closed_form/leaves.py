"""Points in leaves of points near each other, so that what is far can be passed over leaf by leaf."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

SAMPLE = 256  # points by which a part is judged


def in_leaves(points: NDArray[Any], size: int) -> NDArray[np.int64]:
    """An order of points `(M, K)` in which runs of `size` are near each other: a k-d tree, cut at medians.

    >>> in_leaves(np.array([[5.0], [1.0], [6.0], [2.0]]), size=2).reshape(2, 2).tolist()
    [[1, 3], [0, 2]]
    """
    order = np.arange(len(points))
    parts = [(0, len(points))]
    while parts:
        low, high = parts.pop()
        part = order[low:high]
        if high - low <= size:
            part.sort()
            continue
        some = points[part[:: max((high - low) // SAMPLE, 1)]]
        axis = np.argmax(some.max(0) - some.min(0))
        middle = (high - low + size) // (2 * size) * size
        part[:] = part[np.argpartition(points[part, axis], middle)]
        parts += [(low, low + middle), (low + middle, high)]
    return order
