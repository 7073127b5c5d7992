"""Two-stream batches: images at random, plus several images of each of a few classes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hedged.data.ndigit import NDigit, side_by_side
from hedged.data.occlusion import check_chance, occlude
from hedged.data.randomness import Purpose, keyed
from hedged.errors import ValueRangeError

Ids = NDArray[np.int64]


@final
@dataclass(frozen=True, eq=False)
class Batch:
    """What a training step sees: `images` float32 (B, 1, 28, 28N) in [0, 1] and `labels` int64 (B,)."""

    images: Tensor
    labels: Tensor


@final
@dataclass(frozen=True, eq=False)
class TwoStream:
    """Batches with "plenty of positive pairs" (section 2.3), composed and occluded on the fly.

    Each has `images_per_class` images of each of `classes_per_batch` classes, filled up to `batch_size` with
    images at random. No image is twice in a batch: paired with itself it would teach false certainty.
    Classes come in a new random order each pass, so that a pass reaches every one.

    A batch depends on the seed and the step alone: to resume is to ask for the next step.

    >>> from hedged.data import build_ndigit, offline_digits
    >>> data = build_ndigit(offline_digits("train"), 2, range(20), 30, np.random.default_rng(0))
    >>> batch = TwoStream(data, seed=1).batch(step=500)
    >>> batch.images.shape, batch.labels.shape
    (torch.Size([128, 1, 28, 56]), torch.Size([128]))
    """

    data: NDigit
    batch_size: int = 128
    classes_per_batch: int = 8
    images_per_class: int = 8
    occlusion: float = 0.2
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what no batch could be made of."""
        second = self.classes_per_batch * self.images_per_class
        check_chance(self.occlusion)
        if self.classes_per_batch < 1 or self.images_per_class < 1:
            raise ValueRangeError("classes_per_batch and images_per_class must be at least 1")
        if not second <= self.batch_size <= len(self.data):
            raise ValueRangeError(
                f"batch_size must be from classes_per_batch × images_per_class = {second} to the "
                f"{len(self.data):,} images there are, got {self.batch_size}"
            )
        if self.classes_per_batch > self.data.n_classes:
            raise ValueRangeError(
                f"classes_per_batch must be at most the {self.data.n_classes} classes there are, "
                f"got {self.classes_per_batch}"
            )
        if self.images_per_class > (fewest := min(map(len, self._members))):
            raise ValueRangeError(
                f"images_per_class must be at most {fewest}, the images of the smallest class, "
                f"got {self.images_per_class}"
            )

    @property
    def steps_per_pass(self) -> int:
        """Steps after which every class has been in the second stream."""
        return -(-self.data.n_classes // self.classes_per_batch)

    def batch(self, step: int) -> Batch:
        """The batch of this step, in random order."""
        generator = keyed(self.seed, Purpose.BATCH, step)
        chosen = self._of_few_classes(step, generator)
        # As many as the whole batch: however many of these are chosen already, enough others remain.
        others = generator.choice(len(self.data), self.batch_size, replace=False).tolist()
        distinct = list(dict.fromkeys(chosen + others))[: self.batch_size]
        index = torch.from_numpy(generator.permutation(distinct))
        tiles = occlude(self.data.tiles(index), self.occlusion, generator)
        images = side_by_side(tiles).unsqueeze(1).numpy() / np.float32(255)
        return Batch(torch.from_numpy(images), self.data.labels[index])

    def _of_few_classes(self, step: int, generator: np.random.Generator) -> list[int]:
        turn, place = divmod(step, self.steps_per_pass)
        order = keyed(self.seed, Purpose.PASS, turn).permutation(self.data.n_classes)
        places = np.arange(self.classes_per_batch) + place * self.classes_per_batch
        few = order.take(places, mode="wrap")  # the last step of a pass is filled up with its first classes
        return [image for c in few for image in self._some_of(self._members[c], generator)]

    def _some_of(self, members: Ids, generator: np.random.Generator) -> list[int]:
        picks = generator.choice(len(members), self.images_per_class, replace=False, shuffle=False)
        images: list[int] = members[picks].tolist()
        return images

    @cached_property
    def _members(self) -> list[Ids]:
        """The positions of the images of each class."""
        labels = self.data.labels.numpy()
        by_class = np.argsort(labels, kind="stable")
        return np.split(by_class, np.flatnonzero(np.diff(labels[by_class])) + 1)
