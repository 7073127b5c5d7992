"""Vectors that another model made of things with identities: sets of them, their parts, and their batches."""

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

from hedged.data.dataset import Batch, NamedDataset, Splits
from hedged.data.features.files import Table, read_features
from hedged.data.random import Purpose, keyed
from hedged.data.sampling import ClassSampler
from hedged.data.splits import SplitRule, cut, part_of_each
from hedged.errors import DataError, ShapeError, ValueRangeError

HIDDEN = 0.5  # share of its features that a corrupt vector has lost, where no file has corrupt ones


@final
@dataclass(frozen=True, eq=False)
class Features(NamedDataset):
    """Row i of `vectors` float32 (n, F) is of `names[labels[i]]`; row i of `twins`, if given, is the same seen worse.

    Without twins, a corrupt vector has half of its features hidden: they are those of `middle` (F,).
    """

    vectors: Tensor
    labels: Tensor
    names: Sequence[str]
    source: str
    middle: Tensor
    twins: Tensor | None = None

    def __post_init__(self) -> None:
        """Refuse parts that do not belong together."""
        n, size = self.vectors.shape
        if self.labels.shape != (n,) or self.middle.shape != (size,):
            raise ShapeError(f"{n} vectors of {size} need as many labels, and a middle of {size}")
        if self.twins is not None and self.twins.shape != (n, size):
            raise ShapeError(f"corrupt twins of {n} × {size} vectors are as many, got {tuple(self.twins.shape)}")

    @property
    def damage(self) -> str:
        """What corrupt twins are, for outputs to tell."""
        if self.twins is None:
            return f"{HIDDEN:.0%} of the features of each vector, drawn at random, are those of the mean vector"
        return "they are the vectors of the second file"

    @property
    def has_pictures(self) -> bool:
        """No: vectors are no pictures."""
        return False

    def clean(self, index: Tensor | None = None) -> Tensor:
        """The vectors at `index` (all by default)."""
        return self.vectors if index is None else self.vectors[index]

    def corrupt(self, seed: int, index: Tensor | None = None) -> Tensor:
        """Their twins; vector i is the same whatever else is asked for."""
        if self.twins is not None:
            return self.twins if index is None else self.twins[index]
        hidden = keyed(seed, Purpose.TWIN).random(self.vectors.shape, dtype=np.float32) < HIDDEN
        chosen = torch.from_numpy(hidden if index is None else hidden[index.numpy()])
        return torch.where(chosen, self.middle, self.clean(index))

    def subset(self, places: NDArray[np.intp]) -> Features:
        """The vectors at these places."""
        index = torch.from_numpy(places)
        twins = None if self.twins is None else self.twins[index]
        return Features(self.vectors[index], self.labels[index], self.names, self.source, self.middle, twins)


def open_features(
    path: Path,
    labels: Path | None = None,
    corrupt: Path | None = None,
    rule: SplitRule = SplitRule(),  # noqa: B008 (frozen)
) -> Splits[Features]:
    """The parts of the vectors in a file (see `read_features`), which share no identity.

    `corrupt` is a file with the same rows, made of the same things seen worse: blurred, small, half hidden.
    """
    table = read_features(path, labels)
    if table.labels is None:
        raise DataError(f"{path} does not say whose each vector is: add labels, or give a file of them as data.labels")
    names, codes = np.unique(table.labels, return_inverse=True)
    part = part_of_each(table.labels, table.split, rule)
    vectors = torch.from_numpy(table.vectors)
    middle = vectors[torch.from_numpy(part == "train")].mean(0)
    twins = None if corrupt is None else torch.from_numpy(_twins(corrupt, table, path))
    source = f"vectors in {path}"
    whole = Features(vectors, torch.from_numpy(codes.astype(np.int64)), names.tolist(), source, middle, twins)
    return cut(whole, part, rule)


def _twins(path: Path, table: Table, of: Path) -> NDArray[np.float32]:
    """The vectors of a second file, checked to be of the same rows as far as that can be told."""
    found = read_features(path)
    if found.vectors.shape != table.vectors.shape:
        rows, size = found.vectors.shape
        raise DataError(f"{path} has {rows:,} rows of {size}, {of} has {table.vectors.shape}: they go row by row")
    for name in ("labels", "ids"):
        mine, other = getattr(table, name), getattr(found, name)
        if mine is not None and other is not None and (mine != other).any():
            raise DataError(f"{path} has other {name} than {of}: both hold the same things in the same order")
    return found.vectors


@final
@dataclass(frozen=True, eq=False)
class FeatureStream:
    """The vectors that `sampler` draws, each corrupt with the chance `corruption`, and all with noise.

    A corrupt vector is its twin, else it loses features at random; `noise` is in units of each feature's deviation.
    A batch depends on the seed and the step alone.
    """

    features: Features
    sampler: ClassSampler
    corruption: float = 0.5
    noise: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what is no chance and no deviation."""
        if not 0 <= self.corruption <= 1 or not 0 <= self.noise < float("inf"):
            raise ValueRangeError(f"corruption is in [0, 1] and noise at least 0, got {self.corruption}, {self.noise}")

    def batch(self, step: int) -> Batch:
        index, generator = self.sampler.draw(step)
        vectors, data = self.features.clean(index), self.features
        chosen = generator.random((len(index), 1)) < self.corruption
        if data.twins is not None:
            vectors = torch.where(torch.from_numpy(chosen), data.twins[index], vectors)
        else:
            hidden = chosen & (generator.random(vectors.shape) < HIDDEN)
            vectors = torch.where(torch.from_numpy(hidden), data.middle, vectors)
        if self.noise:
            random = torch.from_numpy(generator.standard_normal(vectors.shape, dtype=np.float32))
            vectors = vectors + self.noise * self._deviation * random
        return Batch(vectors, data.labels[index])

    @cached_property
    def _deviation(self) -> Tensor:
        return self.features.vectors.std(0, correction=0)
