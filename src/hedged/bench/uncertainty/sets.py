"""What ways are tried on: vectors of known identities, the same inputs seen worse, and inputs of another kind."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from hedged.data.arrays import read_npz
from hedged.errors import DataError

Floats = NDArray[np.float32]
Ints = NDArray[np.intp]
OFFLINE = "digits"
ARRAYS = ("X", "poor", "y", "test")
VALIDATION = 4  # one identity in so many is for tuning
MOST_NOISE = 1.0  # of the offline digits, in standard deviations of a pixel


@final
@dataclass(frozen=True, eq=False)
class Vectors:
    """Inputs as vectors, and the same inputs seen worse, row by row.

    Args:
        clean: (n, F).
        poor: (n, F).
        y: identities, (n,).
        is_closed: whether others to come show the same identities.
    """

    clean: Floats
    poor: Floats
    y: Ints
    is_closed: bool = False

    def of(self, rows: NDArray[Any]) -> Vectors:
        """Some of the rows."""
        return Vectors(self.clean[rows], self.poor[rows], self.y[rows], self.is_closed)

    def mixed(self, seed: int) -> Floats:
        """Each input as it is or seen worse, by the toss of a coin, (n, F).

        Args:
            seed: of the coin.
        """
        is_poor = np.random.default_rng(seed).random(len(self.y)) < 0.5
        return np.where(is_poor[:, None], self.poor, self.clean)


@final
@dataclass(frozen=True, eq=False)
class TrialSet:
    """One set of the fight.

    Args:
        name: of the set.
        train: to learn from.
        test: to be measured on; the identities are others, unless the vectors are closed.
        novel: inputs of another kind, (m, F), or None.
    """

    name: str
    train: Vectors
    test: Vectors
    novel: Floats | None

    @cached_property
    def for_tuning(self) -> TrialSet:
        """A part of the training set in the place of the test set, without novel inputs.

        Whole identities are held out, or, where classes are the same in the test, rows.
        """
        rng = np.random.default_rng(0)
        if self.train.is_closed:
            held = rng.random(len(self.train.y)) < 1 / VALIDATION
        else:
            names = rng.permutation(np.unique(self.train.y))
            held = np.isin(self.train.y, names[: max(len(names) // VALIDATION, 2)])
        return TrialSet(self.name, self.train.of(~held), self.train.of(held), None)


def read_set(path: Path) -> TrialSet:
    """A set from a file of `tools/make_vectors.py`: arrays X, poor, y and test, and novel if there is any.

    Args:
        path: an .npz file; its name is that of the set.
    """
    try:
        content = read_npz(path, (*ARRAYS, "novel"))
    except ValueError as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    missing = [name for name in ARRAYS if name not in content]
    if missing:
        raise DataError(f"{path} has no array {missing[0]!r}: make it with tools/make_vectors.py")
    x, poor, is_test = content["X"].astype(np.float32), content["poor"].astype(np.float32), content["test"].astype(bool)
    y = np.unique(content["y"], return_inverse=True)[1].reshape(-1)
    both = Vectors(x, poor, y, bool(np.isin(y[is_test], y[~is_test]).all()))
    novel = content["novel"].astype(np.float32) if "novel" in content else None
    return TrialSet(path.stem.removesuffix("-v"), both.of(~is_test), both.of(is_test), novel)


def offline_digits(seed: int = 0) -> TrialSet:
    """1,797 scanned digits of 8 × 8 pixels, as scikit-learn has them; seen worse: with noise; novel: on their side.

    Args:
        seed: of the split and the noise.
    """
    from sklearn.datasets import load_digits  # type: ignore[import-untyped]

    pixels, y = load_digits(return_X_y=True)
    x = (pixels / 16).astype(np.float32)
    rng = np.random.default_rng(seed)
    strength = MOST_NOISE * rng.random((len(x), 1), dtype=np.float32)
    poor = x + strength * x.std() * 2 * rng.standard_normal(x.shape, dtype=np.float32)
    is_test = rng.random(len(x)) < 0.4
    turned = np.ascontiguousarray(x.reshape(-1, 8, 8).transpose(0, 2, 1)[:, ::-1]).reshape(len(x), -1)
    asymmetric = is_test & ~np.isin(y, [0, 8])  # a 0 and an 8 on their side are no novelty
    both = Vectors(x, poor, y.astype(np.intp), is_closed=True)
    return TrialSet(OFFLINE, both.of(~is_test), both.of(is_test), turned[asymmetric])
