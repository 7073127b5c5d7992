"""Training augmentation: it keeps the identity, and takes away detail that the model must then be uncertain about.

Written out here, so that torchvision stays optional.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import conv2d, pad

from hedged._decode import Pixels
from hedged._parallel import share
from hedged.data.photos.corruption import reduced_to
from hedged.errors import ValueRangeError

LUMINANCE = torch.tensor([0.299, 0.587, 0.114])  # brightness of red, green and blue
BLUR_DEVIATIONS = (0.6, 2.5)  # standard deviation in pixels
BLUR_RADIUS = 5
REDUCED_SIDES = (1 / 8, 1 / 2)  # side of a photo of low resolution, as a share
ERASED_SIDES = (0.15, 0.6)  # each side of what is erased, as a share


@final
@dataclass(frozen=True)
class Augmentation:
    """A random crop of every photo, and other changes by chance.

    Args:
        flip: the chance that left and right are swapped.
        colour: how far brightness, contrast, saturation and the three channels may go from 1, in [0, 1].
        blur: the chance of a Gaussian blur.
        erase: the chance that a rectangle is replaced by one colour.
        low_resolution: the chance that a photo is reduced and enlarged again.
    """

    flip: float = 0.5
    colour: float = 0.3
    blur: float = 0.1
    erase: float = 0.3
    low_resolution: float = 0.2

    def __post_init__(self) -> None:
        """Refuse what is no chance."""
        for field in fields(self):
            if not 0 <= getattr(self, field.name) <= 1:
                raise ValueRangeError(f"{field.name} must be in [0, 1], got {getattr(self, field.name)}")

    def apply(self, squares: Pixels, size: int, generator: np.random.Generator) -> Tensor:
        """Augmented photos, float32 (b, 3, size, size) in [0, 1], each in its own way.

        Args:
            squares: the photos, uint8 (b, S, S, 3).
            size: pixels a side of the result.
            generator: draws all changes.

        >>> squares = np.zeros((4, 40, 40, 3), np.uint8)
        >>> Augmentation().apply(squares, 32, np.random.default_rng(0)).shape
        torch.Size([4, 3, 32, 32])
        """
        crops = crop(squares, size, self.flip, generator)
        photos = torch.from_numpy(crops).permute(0, 3, 1, 2)
        for i in _chosen(len(photos), self.low_resolution, generator):
            side = round(generator.uniform(*REDUCED_SIDES) * size)
            photos[i : i + 1] = reduced_to(photos[i : i + 1], max(side, 1))
        pixels = recolour(photos, self.colour, generator)
        blurred = _chosen(len(pixels), self.blur, generator)
        if len(blurred):
            pixels[blurred] = blur(pixels[blurred], generator.uniform(*BLUR_DEVIATIONS, len(blurred)))
        _erase(pixels, _chosen(len(pixels), self.erase, generator), generator)
        return pixels


def _chosen(count: int, chance: float, generator: np.random.Generator) -> NDArray[np.intp]:
    return np.flatnonzero(generator.random(count) < chance)


def crop(squares: Pixels, size: int, flip: float, generator: np.random.Generator) -> Pixels:
    """A random part of each square, (b, size, size, 3), some mirrored.

    Args:
        squares: uint8 (b, S, S, 3).
        size: pixels a side of the result.
        flip: the chance that left and right are swapped.
        generator: draws places and flips.
    """
    corners = generator.integers(0, squares.shape[1] - size + 1, (len(squares), 2)).tolist()
    mirrored = generator.random(len(squares)) < flip
    crops = np.empty((len(squares), size, size, 3), np.uint8)
    for i, (top, left) in enumerate(corners):
        part = squares[i, top : top + size, left : left + size]
        crops[i] = part[:, ::-1] if mirrored[i] else part
    return crops


def recolour(photos: Tensor, strength: float, generator: np.random.Generator) -> Tensor:
    """x ↦ clip(A x + c): brightness, contrast, saturation and channels in one matrix A (3, 3) and shift c a photo.

    The result is float32 in [0, 1], in the same layout.

    Args:
        photos: uint8 (b, 3, H, W), channels last.
        strength: how far factors may go from 1.
        generator: draws the factors.
    """
    from hedged.data.photos._colour import recolour as loop  # late: numba is slow to import

    count, _, height, width = photos.shape
    bright, contrast, saturation = torch.from_numpy(_around_one(strength, (3, count), generator)).unbind()
    channels = torch.from_numpy(_around_one(strength / 3, (count, 3), generator))
    gain = channels * (bright / 255)[:, None]
    # Saturation mixes each channel with the brightness; contrast pulls from the mean brightness of the photo.
    mixing = torch.eye(3) * saturation[:, None, None] + (1 - saturation)[:, None, None] * LUMINANCE.expand(3, 3)
    matrix = (mixing * contrast[:, None, None] * gain[:, :, None]).contiguous()
    shift = (1 - contrast)[:, None] * gain
    coloured = torch.empty(count, height * width, 3)
    flat = photos.permute(0, 2, 3, 1).reshape(count, -1, 3)
    share(loop, count, 1, flat, matrix, LUMINANCE, shift, coloured)
    return coloured.view(count, height, width, 3).permute(0, 3, 1, 2)


def _around_one(strength: float, shape: tuple[int, ...], generator: np.random.Generator) -> NDArray[np.float32]:
    return generator.uniform(1 - strength, 1 + strength, shape).astype(np.float32)


def blur(photos: Tensor, spread: NDArray[np.float64]) -> Tensor:
    """Photos under a Gaussian blur, each with its own standard deviation.

    Args:
        photos: (b, 3, H, W).
        spread: the standard deviations in pixels, (b,).
    """
    offset = torch.arange(-BLUR_RADIUS, BLUR_RADIUS + 1, dtype=torch.float32)
    weights = torch.exp(-(offset**2) / (2 * torch.from_numpy(spread).float()[:, None] ** 2))
    weights = (weights / weights.sum(1, keepdim=True)).repeat_interleave(3, 0)
    flat = photos.reshape(1, -1, *photos.shape[2:])
    framed = pad(flat, (BLUR_RADIUS, BLUR_RADIUS, BLUR_RADIUS, BLUR_RADIUS), mode="replicate")
    across = conv2d(framed, weights[:, None, None, :], groups=len(weights))
    # Weights add up to 1 only as nearly as floats do.
    return conv2d(across, weights[:, None, :, None], groups=len(weights)).clamp_(0, 1).view(photos.shape)


def _erase(pixels: Tensor, chosen: NDArray[np.intp], generator: np.random.Generator) -> None:
    """Put one colour in the place of a random rectangle."""
    height, width = pixels.shape[2:]
    for i in chosen:
        tall, wide = generator.uniform(*ERASED_SIDES, 2)
        rows, columns = max(1, round(tall * height)), max(1, round(wide * width))
        top, left = generator.integers(0, height - rows + 1), generator.integers(0, width - columns + 1)
        colour = torch.from_numpy(generator.random(3, dtype=np.float32))
        pixels[i, :, top : top + rows, left : left + columns] = colour[:, None, None]
