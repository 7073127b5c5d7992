"""Identities or inputs dealt out to folds, so that no head is judged by what it has seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.intp]
Flags = NDArray[np.bool_]


def identity_folds(y: Ints, count: int, seed: int) -> Iterator[Flags]:
    """For each of `count` folds, which rows are held out: all of some identities, each identity once.

    Args:
        y: identities of the rows, (n,), numbered from 0 without gaps.
        count: how many folds; at most one for two identities.
        seed: which identities go together.

    >>> [held.sum() for held in identity_folds(np.repeat(np.arange(4), 3), count=2, seed=0)]
    [np.int64(6), np.int64(6)]
    """
    identities = int(y.max()) + 1
    fold = np.random.default_rng(seed).permutation(identities) % max(min(count, identities // 2), 1)
    for k in range(int(fold.max()) + 1):
        yield fold[y] == k


def input_folds(y: Ints, count: int, seed: int) -> Iterator[Flags]:
    """For each of `count` folds, which rows are held out: a share of each identity, each row once.

    Args:
        y: identities of the rows, (n,), numbered from 0 without gaps.
        count: how many folds.
        seed: which rows go together.

    >>> [held.sum() for held in input_folds(np.repeat(np.arange(4), 3), count=3, seed=0)]
    [np.int64(4), np.int64(4), np.int64(4)]
    """
    order = np.random.default_rng(seed).permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    fold = np.empty(len(y), dtype=np.intp)
    fold[order] = np.arange(len(y)) % count
    for k in range(count):
        yield fold == k


def numbered(y: NDArray[Any]) -> Ints:
    """Identities of any kind as numbers from 0 without gaps."""
    return np.unique(y, return_inverse=True)[1].reshape(-1).astype(np.intp)
