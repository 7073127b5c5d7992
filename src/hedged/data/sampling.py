"""Which inputs make a batch: several of each of a few classes, and others at random."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hedged.data.random import Purpose, keyed
from hedged.errors import DataError, ValueRangeError

Ids = NDArray[np.int64]


class Draw(NamedTuple):
    """The positions of a batch's images, (B,), and the generator that goes on to augment them."""

    places: Tensor
    generator: np.random.Generator


@final
@dataclass(frozen=True, eq=False)
class ClassSampler:
    """`images_per_class` images of each of `classes_per_batch` classes, filled up to `batch_size` at random.

    No image is twice in a batch. A class that has fewer images gives all it has; one with fewer than `fewest` has no
    turn. Classes come in a new random order each pass, so that a pass reaches every one. A draw depends on the seed
    and the step alone.

    Args:
        labels: the class of each image, (n,).
        batch_size: images of a batch.
        classes_per_batch: how many classes give several images to each batch.
        images_per_class: how many images each of these gives.
        seed: draws the batches, together with the step.
        fewest: classes with fewer images have no turn.

    >>> sampler = ClassSampler(torch.tensor([0, 0, 0, 1, 1, 2]), 4, classes_per_batch=2, images_per_class=2, fewest=2)
    >>> sampler.draw(step=0).places.shape, sampler.n_classes
    (torch.Size([4]), 2)
    """

    labels: Tensor
    batch_size: int
    classes_per_batch: int
    images_per_class: int
    seed: int = 0
    fewest: int = 1

    def __post_init__(self) -> None:
        """Refuse what no batch could be made of."""
        second = self.classes_per_batch * self.images_per_class
        if self.classes_per_batch < 1 or self.images_per_class < 1:
            raise ValueRangeError("classes_per_batch and images_per_class must be at least 1")
        if not second <= self.batch_size <= len(self.labels):
            raise ValueRangeError(
                f"batch_size must be from classes_per_batch × images_per_class = {second} to the "
                f"{len(self.labels):,} images there are, got {self.batch_size}"
            )
        if not self.n_classes:
            raise DataError(f"no class has {self.fewest} images: there is no matching pair to learn from")
        if self.classes_per_batch > self.n_classes:
            raise ValueRangeError(
                f"classes_per_batch must be at most the {self.n_classes} classes there are"
                f"{f' with {self.fewest} images' if self.fewest > 1 else ''}, got {self.classes_per_batch}"
            )

    @property
    def n_classes(self) -> int:
        """How many classes have a turn."""
        return len(self.members)

    @property
    def steps_per_pass(self) -> int:
        """Steps after which every class had its turn."""
        return -(-self.n_classes // self.classes_per_batch)

    def draw(self, step: int) -> Draw:
        """The images of a step, in random order.

        Args:
            step: from 0.
        """
        generator = keyed(self.seed, Purpose.BATCH, step)
        chosen = self._of_few_classes(step, generator)
        # As many as the whole batch: however many of these are chosen already, enough others remain.
        others = generator.choice(len(self.labels), self.batch_size, replace=False).tolist()
        distinct = list(dict.fromkeys(chosen + others))[: self.batch_size]
        return Draw(torch.from_numpy(generator.permutation(distinct)), generator)

    def _of_few_classes(self, step: int, generator: np.random.Generator) -> list[int]:
        turn, place = divmod(step, self.steps_per_pass)
        order = keyed(self.seed, Purpose.PASS, turn).permutation(self.n_classes)
        places = np.arange(self.classes_per_batch) + place * self.classes_per_batch
        few = order.take(places, mode="wrap")  # the last step of a pass is filled up with its first classes
        return [image for c in few for image in self._some_of(self.members[c], generator)]

    def _some_of(self, members: Ids, generator: np.random.Generator) -> list[int]:
        count = min(self.images_per_class, len(members))
        images: list[int] = members[generator.choice(len(members), count, replace=False, shuffle=False)].tolist()
        return images

    @cached_property
    def members(self) -> list[Ids]:
        """The positions of the images of each class that has a turn."""
        labels = self.labels.numpy()
        by_class = np.argsort(labels, kind="stable")
        classes = np.split(by_class, np.flatnonzero(np.diff(labels[by_class])) + 1)
        return [members for members in classes if len(members) >= self.fewest]


@final
@dataclass(frozen=True)
class BatchPlan:
    """How large batches are and how they are drawn, whatever they are drawn from.

    Args:
        size: inputs of a batch.
        classes: how many classes give several inputs to each batch.
        per_class: how many inputs each of these gives.
        seed: draws the batches, together with the step.
    """

    size: int
    classes: int
    per_class: int
    seed: int = 0

    def sampler(self, labels: Tensor, fewest: int = 1) -> ClassSampler:
        """The sampler that draws such batches.

        Args:
            labels: the class of each input, (n,).
            fewest: classes with fewer inputs have no turn.
        """
        return ClassSampler(labels, self.size, self.classes, self.per_class, self.seed, fewest)
