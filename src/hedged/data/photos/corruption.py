"""The corrupt twins of test photos: too few pixels, or something in the way, as happens in real life."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import interpolate

Damage = NDArray[np.int64]  # (n, 5): top, left, bottom, right of what is hidden, and the side it is reduced to (0: not)
HIDDEN_SIDES = (0.4, 0.8)  # of each side of a photo
REDUCED_SIDES = (1 / 8, 1 / 4)  # side of the reduced photo, as a share
GREY = 128
DAMAGE = (
    "either a grey rectangle hides 40 to 80 % of the height and of the width, or the photo is reduced to between 1/8 "
    "and 1/4 of its pixels a side and enlarged again"
)


def draw_damage(count: int, size: int, generator: np.random.Generator) -> Damage:
    """For each photo, with equal chance, a rectangle to hide or a low resolution.

    Args:
        count: photos.
        size: pixels a side of a photo.
        generator: draws the damage.

    >>> damage = draw_damage(1000, size=96, generator=np.random.default_rng(0))
    >>> bool(((damage[:, 4] > 0) != (damage[:, 2] > damage[:, 0])).all())
    True
    """
    reduced = generator.random(count) < 0.5
    sides = generator.uniform(*HIDDEN_SIDES, (count, 2)) * size
    lengths = sides.round().astype(np.int64) * ~reduced[:, None]
    corner = generator.integers(0, size - lengths + 1)
    low, high = (max(1, round(share * size)) for share in REDUCED_SIDES)
    small = generator.integers(low, high + 1, count) * reduced
    return np.concatenate([corner, corner + lengths, small[:, None]], axis=1)


def corrupted(photos: Tensor, damage: Damage) -> Tensor:
    """Photos with damage done to them.

    Args:
        photos: uint8 (b, 3, S, S), left as they are.
        damage: (b, 5), as `draw_damage` gives it.
    """
    spoilt = photos.clone()
    for i, (top, left, bottom, right, small) in enumerate(damage.tolist()):
        spoilt[i, :, top:bottom, left:right] = GREY
        if small:
            spoilt[i] = reduced_to(photos[i : i + 1], small)[0]
    return spoilt


def reduced_to(photos: Tensor, side: int) -> Tensor:
    """Photos as if they had been taken with `side` × `side` pixels and enlarged again.

    Args:
        photos: (b, 3, S, S).
        side: pixels a side that are left.
    """
    small = interpolate(photos, (side, side), mode="bilinear", antialias=True)
    return interpolate(small, tuple(photos.shape[-2:]), mode="bilinear")
