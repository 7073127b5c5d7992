"""Occlusion: the corruption of the paper's appendix "N-digit MNIST Dataset"."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hedged.data.ndigit.mnist import SIDE
from hedged.errors import ShapeError, ValueRangeError

Boxes = NDArray[np.int64]


def occlude(digits: Tensor, chance: float, generator: np.random.Generator) -> Tensor:
    """Blacken a random rectangle of each digit, independently with the given chance.

    Height and width are uniform over 0, 1, …, 28 and the corner is uniform over where the rectangle fits, so
    that a patch may be empty or the whole digit.

    Args:
        digits: (..., 28, 28), left as they are.
        chance: that a digit is occluded.
        generator: draws the rectangles.

    >>> white = torch.full((5, 2, 28, 28), 255, dtype=torch.uint8)
    >>> occluded = occlude(white, chance=1.0, generator=np.random.default_rng(0))
    >>> occluded.shape, bool((occluded < white).any())
    (torch.Size([5, 2, 28, 28]), True)
    """
    if digits.shape[-2:] != (SIDE, SIDE):
        raise ShapeError(f"digits must be (..., {SIDE}, {SIDE}), got {tuple(digits.shape)}; occlude before composing")
    return cover(digits, draw_boxes(digits.shape[:-2], chance, generator))


def check_chance(chance: float) -> None:
    """Refuse what is no probability.

    Args:
        chance: must be in [0, 1].
    """
    if not 0 <= chance <= 1:
        raise ValueRangeError(f"the chance of occlusion must be in [0, 1], got {chance}")


def draw_boxes(shape: tuple[int, ...], chance: float, generator: np.random.Generator) -> Boxes:
    """Boxes (*shape, 4) of top, left, bottom, right, the last two exclusive; empty where nothing is to be occluded.

    Args:
        shape: of the digits, without height and width.
        chance: that a box is not empty by intention.
        generator: draws the boxes.

    >>> top, left, bottom, right = draw_boxes((), chance=1.0, generator=np.random.default_rng(0))
    >>> bool(0 <= top <= bottom <= 28), bool(0 <= left <= right <= 28)
    (True, True)
    """
    check_chance(chance)
    flags = generator.random((*shape, 1)) < chance
    sides = generator.integers(0, SIDE + 1, (*shape, 2)) * flags
    corner = generator.integers(0, SIDE - sides + 1)
    return np.concatenate([corner, corner + sides], axis=-1)


def cover(digits: Tensor, boxes: Boxes) -> Tensor:
    """Black out a box of each digit.

    Args:
        digits: (..., 28, 28), left as they are.
        boxes: (..., 4), as `draw_boxes` gives them.

    >>> int(cover(torch.ones(28, 28), np.array([0, 0, 28, 27])).sum())
    28
    """
    covered = digits.numpy().copy()
    hit = boxes[..., 2] > boxes[..., 0]  # in a training batch most boxes are empty: leave those digits alone
    covered[hit] *= _outside(boxes[hit])
    return torch.from_numpy(covered)


def _outside(boxes: Boxes) -> NDArray[np.bool_]:
    """Whether a pixel of (n, 28, 28) is outside its box of (n, 4)."""
    pixel = np.arange(SIDE)
    top, left, bottom, right = boxes.T[..., None]
    above_or_below = (pixel < top) | (pixel >= bottom)
    beside = (pixel < left) | (pixel >= right)
    outside: NDArray[np.bool_] = above_or_below[:, :, None] | beside[:, None, :]
    return outside
