"""Vectors of made-up identities, some of them seen badly: what the tests of `Retrofit` are fitted to."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


class People(NamedTuple):
    """Vectors, poorer views of them, their identities, and which vectors were seen badly to begin with."""

    x: Floats
    poor: Floats
    y: NDArray[np.int64]
    is_bad: NDArray[Any]


def people(identities: int, each: int = 6, features: int = 24, seed: int = 0) -> People:
    """Identities differ in some directions more than in others, and views in others still.

    A third of the vectors has four times the noise, and is shorter: something that its quality can be told by.
    """
    space = np.random.default_rng(99)
    between = space.normal(size=(features, features)) * np.linspace(2, 0.05, features)[:, None]
    within = 0.7 * space.normal(size=(features, features)) * np.linspace(0.05, 1.5, features)[:, None]
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(identities), each)
    is_bad = rng.random(len(y)) < 1 / 3
    centre = (rng.normal(size=(identities, features)) @ between)[y]
    x = _seen(centre, np.where(is_bad, 1.0, 0.25), within, rng)
    poor = _seen(centre, np.full(len(y), 1.2), within, rng)
    return People(x, poor, y, is_bad)


def _seen(centre: NDArray[Any], noise: NDArray[Any], within: NDArray[Any], rng: np.random.Generator) -> Floats:
    views = centre + 4 * noise[:, None] * (rng.normal(size=centre.shape) @ within)
    return np.asarray(views / (1 + 2 * noise[:, None]), np.float32)
