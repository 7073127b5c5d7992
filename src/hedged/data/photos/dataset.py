"""Photos of identities: a set that batches are drawn from and a model is measured on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hedged.data.decode import Pixels
from hedged.data.photos.corruption import DAMAGE, corrupted, draw_damage
from hedged.data.random import Purpose, keyed
from hedged.errors import ShapeError

Rows = NDArray[np.int64]


@final
@dataclass(frozen=True, eq=False)
class Photos:
    """Photo i is row `rows[i]` of `pixels` uint8 (m, S, S, 3) and shows `names[labels[i]]`; a network sees the
    middle `size` × `size` of it, a training step a random part of that size.
    """

    pixels: Pixels
    rows: Rows
    labels: Tensor
    names: Sequence[str]
    paths: Sequence[Path]
    size: int
    source: str

    def __post_init__(self) -> None:
        """Refuse parts that do not belong together."""
        n, side = len(self.rows), self.pixels.shape[1]
        if self.pixels.shape[1:] != (side, side, 3) or not self.size <= side:
            raise ShapeError(
                f"photos are squares (n, S, S, 3) of at least size = {self.size} pixels, got {self.pixels.shape}"
            )
        if self.labels.shape != (n,) or len(self.paths) != n:
            raise ShapeError(f"{n} photos need as many labels and paths, got {len(self.labels)} and {len(self.paths)}")

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def n_classes(self) -> int:
        """How many identities there are."""
        return len(np.unique(self.labels.numpy()))

    @property
    def subject(self) -> str:
        """What photos of one class share, for outputs to name."""
        return "identity"

    @property
    def damage(self) -> str:
        """What is done to corrupt twins, for outputs to tell."""
        return DAMAGE

    def name(self, label: int) -> str:
        """The identity of a label."""
        return self.names[label]

    def squares(self, index: Tensor | None = None) -> Pixels:
        """The cached squares of the photos at `index` (all by default): uint8 (b, S, S, 3)."""
        rows = self.rows if index is None else self.rows[index.numpy()]
        return np.asarray(self.pixels[rows])

    def clean(self, index: Tensor | None = None) -> Tensor:
        """The middle of the photos at `index` (all by default): uint8 (b, 3, size, size)."""
        edge = (self.pixels.shape[1] - self.size) // 2
        rows = self.rows if index is None else self.rows[index.numpy()]
        middle = self.pixels[rows, edge : edge + self.size, edge : edge + self.size]
        return torch.from_numpy(np.asarray(middle)).permute(0, 3, 1, 2)

    def corrupt(self, seed: int, index: Tensor | None = None) -> Tensor:
        """The twins of `clean`, each of low resolution or with a part hidden; photo i is the same whatever is asked."""
        damage = draw_damage(len(self), self.size, keyed(seed, Purpose.TWIN))
        wanted = np.arange(len(self)) if index is None else index.numpy()
        return corrupted(self.clean(index), damage[wanted])

    def subset(self, places: NDArray[np.intp]) -> Photos:
        """The photos at these places."""
        paths = [self.paths[i] for i in places]
        labels = self.labels[torch.from_numpy(places)]
        return Photos(self.pixels, self.rows[places], labels, self.names, paths, self.size, self.source)
