"""Batches of photos: several of each of a few identities, others at random, each varied anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hedged.data.photos.augmentation import Augmentation
from hedged.data.photos.photos import Photos
from hedged.data.sampling import ClassSampler
from hedged.data.streams import Batch


@final
@dataclass(frozen=True, eq=False)
class PhotoStream:
    """The photos that `sampler` draws, varied by `augmentation`; a batch depends on the seed and the step alone."""

    photos: Photos
    sampler: ClassSampler
    augmentation: Augmentation

    def batch(self, step: int) -> Batch:
        index, generator = self.sampler.draw(step)
        images = self.augmentation.apply(self.photos.squares(index), self.photos.size, generator)
        return Batch(images, self.photos.labels[index])
