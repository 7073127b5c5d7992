"""Poorer vectors made of vectors, where nobody has real ones: features dropped, and noise.

Each row loses a random share of its features, up to `MOST_DROPPED`, to the mean of all rows, and gets noise of up to
`MOST_NOISE` of each feature's deviation. This teaches a head that a vector can say little; it does not know how blur,
occlusion or missing words really show. Real poorer views are better: give them as `poor`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MOST_DROPPED = 0.8  # share of features
MOST_NOISE = 1.0  # standard deviations


def poorer_vectors(x: NDArray[np.float32], seed: int) -> NDArray[np.float32]:
    """A poorer view of every row.

    Args:
        x: vectors, (n, F).
        seed: of what is dropped and of the noise.

    >>> poorer_vectors(np.eye(4, dtype=np.float32), seed=0).shape
    (4, 4)
    """
    rng = np.random.default_rng(seed)
    strength = rng.random((len(x), 1), dtype=np.float32)
    dropped = rng.random(x.shape, dtype=np.float32) < MOST_DROPPED * strength
    noise = MOST_NOISE * strength * x.std(0) * rng.standard_normal(x.shape, dtype=np.float32)
    return np.asarray(np.where(dropped, x.mean(0), x) + noise, np.float32)
