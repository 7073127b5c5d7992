"""Which pairs a verification metric is measured on. A pair is two distinct items, by index."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedged.errors import DataError, ValueRangeError
from hedged.metrics._arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    check_at_least,
    check_same_length,
    numbers,
    vector,
)

Seed = int | np.random.Generator


@final
@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of items.

    Args:
        first: Index of the first item of each pair, `(n,)`.
        second: Index of the second item, `(n,)`.
        matches: Whether the two are of one class, `(n,)`.
    """

    first: IntArray
    second: IntArray
    matches: BoolArray

    def __post_init__(self) -> None:
        check_same_length(first=self.first, second=self.second, matches=self.matches)

    def __len__(self) -> int:
        return len(self.first)


def balanced_pairs(labels: ArrayLike, count: int = 10_000, seed: Seed = 0) -> Pairs:
    """count/2 pairs drawn uniformly from {i ≠ j, y_i = y_j}, then count/2 from {y_i ≠ y_j}.

    The pairs of the paper's verification task. Every matching pair is as likely as every other, so a class
    of n items weighs n(n − 1); so are non-matching pairs. Draws are independent: a pair may come twice.

    Args:
        labels: Class of each item, `(m,)`.
        count: How many pairs, an even number.
        seed: A seed or a generator.

    >>> pairs = balanced_pairs(["cat", "dog", "cat", "dog", "emu"], count=6)
    >>> pairs.matches
    array([ True,  True,  True, False, False, False])
    """
    if count < 2 or count % 2:
        raise ValueRangeError(f"count is {count}; half the pairs match, so expected an even number from 2 up")
    y = vector("labels", labels)
    _, group, sizes = np.unique(y, return_inverse=True, return_counts=True)
    # Items laid out class after class: the partners of an item are its own block, or all but its block.
    items = np.argsort(group, kind="stable")
    size, start = sizes[group[items]], (np.cumsum(sizes) - sizes)[group[items]]
    if sizes.max() < 2 or len(sizes) < 2:
        raise DataError(
            f"{len(y)} items of {len(sizes)} classes, at most {sizes.max()} a class, hold no matching or no "
            "non-matching pair; expected two classes or more, and one of them with two items or more"
        )
    rng = np.random.default_rng(seed)
    same, rank = _draw(size - 1, count // 2, rng)
    match = start[same] + rank
    match += match >= same  # an item is not its own partner
    unlike, rank = _draw(len(y) - size, count // 2, rng)
    stranger = np.where(rank < start[unlike], rank, rank + size[unlike])  # over its own block
    return _pairs(y, items[np.concatenate([same, unlike])], items[np.concatenate([match, stranger])])


def random_pairs(labels: ArrayLike, count: int = 200_000, seed: Seed = 0) -> Pairs:
    """`count` pairs drawn uniformly from {i ≠ j}: most do not match.

    Args:
        labels: Class of each item, `(m,)`.
        count: How many pairs.
        seed: A seed or a generator.

    >>> bool(random_pairs([7] * 5 + [8] * 5, count=1000).matches.mean() < 0.5)
    True
    """
    y = _at_least_two(labels)
    check_at_least("count", count, 1)
    first, second = _draw(np.full(len(y), len(y) - 1), count, np.random.default_rng(seed))
    return _pairs(y, first, second + (second >= first))


def all_pairs(labels: ArrayLike) -> Pairs:
    """All n(n − 1)/2 pairs i < j, as in the pet experiment: 8,576 images make 37 million pairs, 600 MB.

    Args:
        labels: Class of each item, `(n,)`.

    >>> len(all_pairs([1, 1, 2, 3]))
    6
    """
    y = _at_least_two(labels)
    first, second = np.triu_indices(len(y), k=1)
    return _pairs(y, first, second)


def score_pairs(pairs: Pairs, score: Callable[[IntArray, IntArray], ArrayLike], chunk: int = 65_536) -> FloatArray:
    """s_k = score(first_k, second_k), asked for `chunk` pairs at a time so that memory stays bounded.

    Args:
        pairs: The pairs.
        score: From the indices of some pairs, `(c,)` each, to their scores, `(c,)`.
        chunk: How many pairs to score at a time.

    >>> x = np.array([0.0, 0.1, 2.0])
    >>> score_pairs(all_pairs([1, 1, 2]), lambda i, j: -abs(x[i] - x[j]))
    array([-0.1, -2. , -1.9])
    """
    check_at_least("chunk", chunk, 1)
    parts = (slice(start, start + chunk) for start in range(0, len(pairs), chunk))
    scores = numbers("scores", np.concatenate([score(pairs.first[part], pairs.second[part]) for part in parts]))
    check_same_length(scores=scores, pairs=pairs.first)
    return scores


def _draw(partners: IntArray, count: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """An item and the rank of its partner, uniform over all (item, partner) when item i has `partners[i]`.

    Ordered pairs are numbered item after item: one uniform integer is one pair, exactly, without rejection.
    """
    ends = np.cumsum(partners)
    number = rng.integers(ends[-1], size=count)
    item = np.searchsorted(ends, number, side="right")
    return item, number - (ends - partners)[item]


def _pairs(labels: NDArray[Any], first: IntArray, second: IntArray) -> Pairs:
    return Pairs(first, second, labels[first] == labels[second])


def _at_least_two(labels: ArrayLike) -> NDArray[Any]:
    array = vector("labels", labels)
    if len(array) < 2:
        raise DataError("one item makes no pair; expected the labels of two items or more")
    return array
