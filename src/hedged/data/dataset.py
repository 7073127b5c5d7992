"""What a model is trained and measured on, whatever it is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, final

from torch import Tensor


class Dataset(Protocol):
    """Images with labels, clean and as corrupt twins; `source` says where they come from, for outputs to name."""

    @property
    def labels(self) -> Tensor: ...

    @property
    def n_classes(self) -> int: ...

    @property
    def source(self) -> str: ...

    @property
    def subject(self) -> str:
        """What two images of one class share: "number", "identity"."""
        ...

    @property
    def damage(self) -> str:
        """What was done to the corrupt twins, in words."""
        ...

    def __len__(self) -> int: ...

    def name(self, label: int) -> str:
        """A class as people write it."""
        ...

    def clean(self, index: Tensor | None = None) -> Tensor:
        """The images at `index` (all by default), as an `Embedder` takes them."""
        ...

    def corrupt(self, seed: int, index: Tensor | None = None) -> Tensor:
        """Their corrupt twins."""
        ...


class Splits(Protocol):
    """The parts of a set: `test` has one or more test sets by name, the first of them the usual one."""

    @property
    def train(self) -> Dataset: ...

    @property
    def validation(self) -> Dataset | None: ...

    @property
    def test(self) -> Mapping[Any, Dataset]: ...


@final
@dataclass(frozen=True, eq=False)
class Batch:
    """What a training step sees: `images` float32 (B, C, H, W) in [0, 1] and `labels` int64 (B,)."""

    images: Tensor
    labels: Tensor


class Batches(Protocol):
    """The batches of a run. Each depends on the step alone, so that to resume is to ask for the next."""

    def batch(self, step: int) -> Batch: ...
