"""Batches of photos: several of each of a few identities, others at random, each augmented anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hedged.data.dataset import Batch
from hedged.data.photos.augmentation import Augmentation
from hedged.data.photos.dataset import Photos
from hedged.data.sampling import ClassSampler


@final
@dataclass(frozen=True, eq=False)
class PhotoStream:
    """The photos that a sampler draws, augmented. A batch depends on the seed and the step alone.

    Args:
        photos: what to draw from.
        sampler: which photos make a batch.
        augmentation: how they are augmented.
    """

    photos: Photos
    sampler: ClassSampler
    augmentation: Augmentation

    def batch(self, step: int) -> Batch:
        """The batch of a step.

        Args:
            step: from 0.
        """
        index, generator = self.sampler.draw(step)
        images = self.augmentation.apply(self.photos.squares(index), self.photos.size, generator)
        return Batch(images, self.photos.labels[index])
