"""N-digit MNIST: images of N digits side by side, whose class is the number they read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hedged.data.dataset import Dataset, PaperTask
from hedged.data.ndigit.mnist import MNIST, STAND_IN, Digits
from hedged.data.ndigit.occlusion import cover, draw_boxes
from hedged.data.random import Purpose, keyed
from hedged.errors import DataError, ValueRangeError

Ids = NDArray[np.int64]

MAX_DIGITS = 18  # a number must fit an int64


@final
@dataclass(frozen=True, eq=False)
class NDigit(Dataset):
    """Images of N digits side by side, composed when asked for; labels are read off the digits.

    Args:
        digits: the single digits.
        image_ids: int64 (n, N); row i numbers the digits of image i, from left to right.

    >>> from hedged.data import offline_digits
    >>> pair = NDigit(offline_digits("train"), torch.tensor([[4, 7], [0, 0]]))
    >>> pair.labels, pair.clean().shape
    (tensor([47,  0]), torch.Size([2, 28, 56]))
    """

    digits: Digits
    image_ids: Tensor

    def __post_init__(self) -> None:
        """Refuse ids that name no digit."""
        ids = self.image_ids
        if ids.ndim != 2 or not 1 <= ids.shape[1] <= MAX_DIGITS or ids.dtype != torch.int64:
            raise DataError(
                f"image_ids must be int64 (n, N) with N from 1 to {MAX_DIGITS}, got {ids.dtype} {tuple(ids.shape)}"
            )
        if ids.numel() and (int(ids.min()) < 0 or int(ids.max()) >= len(self.digits)):
            raise DataError(
                f"image_ids go from {ids.min()} to {ids.max()}, but the {self.source} digits are "
                f"numbered 0 to {len(self.digits) - 1}"
            )

    def __len__(self) -> int:
        return len(self.image_ids)

    @property
    def n_digits(self) -> int:
        """N, the digits of an image."""
        return self.image_ids.shape[1]

    @property
    def source(self) -> str:
        """Where the digits come from."""
        return self.digits.source

    @property
    def subject(self) -> str:
        """What images of one class share."""
        return "number"

    @property
    def contents(self) -> str:
        """How many digits and classes."""
        return f"{self.n_digits} digits, {self.n_classes} classes"

    @property
    def paper_task(self) -> PaperTask:
        """The paper reports numbers for N-digit MNIST."""
        if self.source == MNIST:
            return PaperTask(self.n_digits)
        stand_in = self.source == STAND_IN
        return PaperTask(
            self.n_digits, "This is the offline stand-in, not MNIST." if stand_in else "These digits are not MNIST."
        )

    @property
    def damage(self) -> str:
        """What was done to the corrupt twins, in words."""
        return "a random rectangle of every digit is black"

    @cached_property
    def labels(self) -> Tensor:
        """The number that each image reads, (n,)."""
        place = 10 ** torch.arange(self.n_digits).flip(0)
        return (self.digits.labels[self.image_ids] * place).sum(-1)

    @cached_property
    def numbers(self) -> Tensor:
        """The numbers of the classes, ascending, (n_classes,)."""
        return torch.from_numpy(np.unique(self.labels.numpy()))

    def name(self, label: int) -> str:
        """A number as it is written, with its leading zeros.

        Args:
            label: the number.
        """
        return f"{label:0{self.n_digits}d}"

    def tiles(self, index: Tensor | None = None) -> Tensor:
        """The digits of images, before composing: uint8 (b, N, 28, 28).

        Args:
            index: which images, (b,); all by default.
        """
        ids = self.image_ids if index is None else self.image_ids[index]
        # NumPy copies bytes in blocks, torch one by one: here it is ten times as fast, and on one thread.
        return torch.from_numpy(self.digits.images.numpy()[ids.numpy()])

    def clean(self, index: Tensor | None = None) -> Tensor:
        """The images: uint8 (b, 28, 28N).

        Args:
            index: which images, (b,); all by default.
        """
        return side_by_side(self.tiles(index))

    def corrupt(self, seed: int, index: Tensor | None = None) -> Tensor:
        """The twins of `clean`, every digit occluded; that of image i is the same whatever else is asked for.

        Args:
            seed: draws the occlusion.
            index: which images, (b,); all by default.
        """
        boxes = draw_boxes((len(self), self.n_digits), chance=1.0, generator=keyed(seed, Purpose.TWIN))
        return side_by_side(cover(self.tiles(index), boxes if index is None else boxes[index.numpy()]))


def side_by_side(tiles: Tensor) -> Tensor:
    """(b, N, 28, 28) → (b, 28, 28N).

    Args:
        tiles: the digits of each image.

    >>> side_by_side(torch.arange(8).reshape(1, 2, 2, 2))
    tensor([[[0, 1, 4, 5], [2, 3, 6, 7]]])
    """
    return torch.from_numpy(np.concatenate(tiles.unbind(-3), axis=-1))


def build_ndigit(
    digits: Digits,
    n_digits: int,
    numbers: Sequence[int],
    samples_per_number: int,
    generator: np.random.Generator,
) -> NDigit:
    """`samples_per_number` images of each number, of digits drawn at random.

    As in google/n-digit-mnist, no digit is twice at the same place of the same number, unless there are fewer
    of its kind than samples.

    Args:
        digits: what to compose of.
        n_digits: N, the digits of an image.
        numbers: the classes.
        samples_per_number: images of each class.
        generator: draws the digits.

    >>> from hedged.data import offline_digits
    >>> build_ndigit(offline_digits("train"), 2, [7, 42], 3, np.random.default_rng(0)).labels
    tensor([ 7,  7,  7, 42, 42, 42])
    """
    if not 1 <= n_digits <= MAX_DIGITS:
        raise ValueRangeError(f"n_digits must be from 1 to {MAX_DIGITS}, got {n_digits}")
    if not numbers or min(numbers) < 0 or max(numbers) >= 10**n_digits:
        raise ValueRangeError(f"numbers of {n_digits} digits are from 0 to {10**n_digits - 1}, at least one")
    if samples_per_number < 1:
        raise ValueRangeError(f"samples_per_number must be at least 1, got {samples_per_number}")
    pools = [np.flatnonzero(digits.labels.numpy() == digit) for digit in range(10)]
    rows = []
    for number in numbers:
        wanted = [int(digit) for digit in f"{number:0{n_digits}d}"]
        places = [_draw(pools, digit, samples_per_number, generator) for digit in wanted]
        rows.append(np.stack(places, axis=-1))
    return NDigit(digits, torch.from_numpy(np.concatenate(rows)))


def _draw(pools: list[Ids], digit: int, samples: int, generator: np.random.Generator) -> Ids:
    if not len(pools[digit]):
        raise DataError(f"there is no image of the digit {digit} to compose numbers from")
    rounds = -(-samples // len(pools[digit]))
    return np.concatenate([generator.permutation(pools[digit]) for _ in range(rounds)])[:samples]
