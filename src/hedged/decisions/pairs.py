"""Labelled pairs to calibrate on: the model's log-odds of a match, and which identities each pair is of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedged.errors import DataError, ValueRangeError

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Flags = NDArray[np.bool_]

LEAST_IDENTITIES = 10  # two for each fold of a cross-fit, and enough for resampling to mean anything


@final
@dataclass(frozen=True, eq=False)
class ScoredPairs:
    """Pairs with their scores and identities; a pair whose two identities are the same is a match.

    Args:
        logit: The model's log-odds of a match, `(n,)`.
        first: Number of the first identity of each pair, `(n,)`, from 0 to `identities` − 1.
        second: Number of the second, `(n,)`.
        identities: How many identities there are.

    >>> pairs = ScoredPairs.of([2.0, -1.0, 0.5], ["ann", "ann", "bob"], ["ann", "bob", "bob"])
    >>> pairs.matches, pairs.identities
    (array([ True, False,  True]), 2)
    """

    logit: Floats
    first: Ints
    second: Ints
    identities: int

    @classmethod
    def of(cls, logit: ArrayLike, first: ArrayLike, second: ArrayLike) -> Self:
        """From scores and the names of the identities on both sides.

        Args:
            logit: The model's log-odds of a match, `(n,)`.
            first: Name of the first identity of each pair, `(n,)`: text or numbers.
            second: Name of the second, `(n,)`.
        """
        scores = np.asarray(logit, dtype=np.float64)
        left, right = np.asarray(first), np.asarray(second)
        if scores.ndim != 1 or not scores.shape == left.shape == right.shape:
            raise DataError(
                f"scores {scores.shape} and identities {left.shape} and {right.shape} differ in shape: pass one score "
                "and two identities a pair, each (n,)"
            )
        if np.isnan(scores).any():
            raise ValueRangeError(f"{np.isnan(scores).sum()} of {scores.size} scores are NaN: they cannot be ranked")
        names, numbers = np.unique(np.concatenate([left, right]), return_inverse=True)
        return cls(scores, numbers[: len(left)], numbers[len(left) :], len(names))

    def __len__(self) -> int:
        return len(self.logit)

    @property
    def matches(self) -> Flags:
        """Whether the two are of one identity, (n,)."""
        same: Flags = self.first == self.second
        return same

    @property
    def weights(self) -> Floats:
        """A weight for each pair, (n,), so that matches and non-matches weigh ½ each: their sum is one."""
        matches = self.matches
        count = int(matches.sum())
        weights: Floats = np.where(matches, 0.5 / max(count, 1), 0.5 / max(len(self) - count, 1))
        return weights

    def within(self, chosen: Flags) -> ScoredPairs:
        """The pairs of which both identities are chosen; identities keep their numbers.

        Args:
            chosen: Whether each identity is chosen, `(identities,)`.
        """
        return self._rows(chosen[self.first] & chosen[self.second])

    def of_kind(self, matching: bool) -> ScoredPairs:
        """The pairs that match, or those that do not.

        Args:
            matching: Which of the two.
        """
        return self._rows(self.matches == matching)

    def _rows(self, kept: Flags) -> ScoredPairs:
        return ScoredPairs(self.logit[kept], self.first[kept], self.second[kept], self.identities)

    def require_enough(self) -> None:
        """Refuse pairs from which nothing can be learnt."""
        matches = int(self.matches.sum())
        if self.identities < LEAST_IDENTITIES or not matches or matches == len(self):
            raise DataError(
                f"{matches} matching and {len(self) - matches} other pairs of {self.identities} identities are too few "
                f"to decide from: give both kinds, of at least {LEAST_IDENTITIES} identities"
            )


def folds(pairs: ScoredPairs, count: int, seed: int = 0) -> Ints:
    """A random fold for each identity, 0 … count − 1, of sizes that differ by at most one: `(identities,)`.

    Args:
        pairs: Of the identities.
        count: How many folds.
        seed: The seed.
    """
    order = np.random.default_rng(seed).permutation(pairs.identities)
    fold = np.empty(pairs.identities, dtype=np.intp)
    fold[order] = np.arange(pairs.identities) % count
    return fold


def identities_of_list(first: ArrayLike, second: ArrayLike, same: ArrayLike) -> tuple[Ints, Ints]:
    """The identities behind a list of pairs of items of which only "the same" or "not the same" is known.

    Items that a chain of matches joins are of one identity; every other item is an identity of its own.

    Args:
        first: Name of the first item of each pair, `(n,)`.
        second: Name of the second, `(n,)`.
        same: Whether the two match, `(n,)`.

    >>> identities_of_list(["a", "b", "c"], ["b", "c", "d"], [True, True, False])
    (array([0, 0, 0]), array([0, 0, 1]))
    """
    flags = np.asarray(same, dtype=np.bool_)
    names, numbers = np.unique(np.concatenate([np.asarray(first), np.asarray(second)]), return_inverse=True)
    left, right = numbers[: len(flags)], numbers[len(flags) :]
    component = _components(len(names), left[flags], right[flags])
    contradicted = ~flags & (component[left] == component[right])
    if contradicted.any():
        k = int(np.flatnonzero(contradicted)[0])
        raise DataError(
            f"pair {k + 1} of the list, {names[left[k]]} and {names[right[k]]}, is said not to match, but other pairs "
            "say that it does: correct the list"
        )
    return component[left], component[right]


def _components(count: int, left: Ints, right: Ints) -> Ints:
    """The connected component of each of `count` nodes."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges = coo_array((np.ones(len(left)), (left, right)), shape=(count, count))
    found: Any = connected_components(edges, directed=False)
    component: Ints = found[1].astype(np.intp)
    return component
