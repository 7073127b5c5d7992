"""Two-stream batches: images at random, plus several images of each of a few classes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
import torch

from hedged.data.dataset import Batch
from hedged.data.ndigit.dataset import NDigit, side_by_side
from hedged.data.ndigit.occlusion import check_chance, occlude
from hedged.data.sampling import ClassSampler
from hedged.errors import ValueRangeError


@final
@dataclass(frozen=True, eq=False)
class TwoStream:
    """Batches with "plenty of positive pairs" (section 2.3), composed and occluded on the fly.

    Each has `images_per_class` images of each of `classes_per_batch` classes, filled up to `batch_size` with
    images at random. No image is twice in a batch: paired with itself it would teach false certainty.
    Classes come in a new random order each pass, so that a pass reaches every one.

    A batch depends on the seed and the step alone: to resume is to ask for the next step.

    Args:
        data: what to draw from.
        batch_size: images of a batch.
        classes_per_batch: classes of the second stream, in each batch.
        images_per_class: images of each of these.
        occlusion: the chance that a digit is occluded.
        seed: draws batches and occlusion, together with the step.

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
        check_chance(self.occlusion)
        if self.images_per_class > (fewest := min(map(len, self._sampler.members))):
            raise ValueRangeError(
                f"images_per_class must be at most {fewest}, the images of the smallest class, "
                f"got {self.images_per_class}"
            )

    @property
    def steps_per_pass(self) -> int:
        """Steps after which every class has been in the second stream."""
        return self._sampler.steps_per_pass

    def batch(self, step: int) -> Batch:
        """The batch of a step, in random order.

        Args:
            step: from 0.
        """
        index, generator = self._sampler.draw(step)
        tiles = occlude(self.data.tiles(index), self.occlusion, generator)
        images = side_by_side(tiles).unsqueeze(1).numpy() / np.float32(255)
        return Batch(torch.from_numpy(images), self.data.labels[index])

    @cached_property
    def _sampler(self) -> ClassSampler:
        return ClassSampler(self.data.labels, self.batch_size, self.classes_per_batch, self.images_per_class, self.seed)
