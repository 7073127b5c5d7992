"""`Features`: vectors that another model made of known identities, split by identity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hedged.data.dataset import NamedDataset, Splits
from hedged.data.features.files import Table, read_features
from hedged.data.random import Purpose, keyed
from hedged.data.splits import SplitRule, cut, part_of_each
from hedged.errors import DataError, ShapeError

HIDDEN_SHARE = 0.5  # share of its features that a corrupt vector has lost, where no file has corrupt ones


@final
@dataclass(frozen=True, eq=False)
class Features(NamedDataset):
    """Vectors of identities, with corrupt twins: those of a second file, or with half of the features hidden.

    Args:
        vectors: float32 (n, F).
        labels: the identity of each, int64 (n,).
        names: the names of the identities, by label.
        source: where the vectors come from.
        middle: the mean vector of the training part, (F,): what hidden features are replaced by.
        twins: the same things seen worse, row by row (n, F), if there are such vectors.
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
            raise ShapeError(
                f"expected {n} labels and a mean of length {size}, got {tuple(self.labels.shape)} and "
                f"{tuple(self.middle.shape)}"
            )
        if self.twins is not None and self.twins.shape != (n, size):
            raise ShapeError(f"corrupt twins must be ({n}, {size}) as the vectors are, got {tuple(self.twins.shape)}")

    @property
    def damage(self) -> str:
        """What the corrupt twins are, in words."""
        if self.twins is None:
            return f"{HIDDEN_SHARE:.0%} of the features of each vector, drawn at random, are those of the mean vector"
        return "they are the vectors of the second file"

    @property
    def input_name(self) -> str:
        """A vector."""
        return "vector"

    @property
    def has_pictures(self) -> bool:
        """No: vectors are no pictures."""
        return False

    def clean(self, index: Tensor | None = None) -> Tensor:
        """The vectors.

        Args:
            index: which ones, (b,); all by default.
        """
        return self.vectors if index is None else self.vectors[index]

    def corrupt(self, seed: int, index: Tensor | None = None) -> Tensor:
        """Their corrupt twins; that of vector i is the same whatever else is asked for.

        Args:
            seed: draws which features are hidden; twins of a file do not depend on it.
            index: which ones, (b,); all by default.
        """
        if self.twins is not None:
            return self.twins if index is None else self.twins[index]
        hidden = keyed(seed, Purpose.TWIN).random(self.vectors.shape, dtype=np.float32) < HIDDEN_SHARE
        chosen = torch.from_numpy(hidden if index is None else hidden[index.numpy()])
        return torch.where(chosen, self.middle, self.clean(index))

    def subset(self, places: NDArray[np.intp]) -> Features:
        """Some of the vectors.

        Args:
            places: which ones, (b,).
        """
        index = torch.from_numpy(places)
        twins = None if self.twins is None else self.twins[index]
        return Features(self.vectors[index], self.labels[index], self.names, self.source, self.middle, twins)


def open_features(
    path: str | Path,
    labels: str | Path | None = None,
    corrupt: str | Path | None = None,
    rule: SplitRule = SplitRule(),  # noqa: B008 (frozen)
) -> Splits[Features]:
    """The vectors in a file (see `read_features`), split into parts that share no identity.

    Args:
        path: an .npy, .npz or .parquet file.
        labels: the file with the labels of an .npy file.
        corrupt: a file with the same rows, made of the same things seen worse: blurred, small, half hidden.
        rule: which identities are tested.
    """
    table = read_features(path, labels)
    if table.labels is None:
        raise DataError(f"{path} does not say whose each vector is: add labels, or give a file of them as data.labels")
    names, codes = np.unique(table.labels, return_inverse=True)
    part = part_of_each(table.labels, table.split, rule)
    vectors = torch.from_numpy(table.vectors)
    middle = vectors[torch.from_numpy(part == "train")].mean(0)
    twins = None if corrupt is None else torch.from_numpy(_twins(Path(corrupt), table, Path(path)))
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
