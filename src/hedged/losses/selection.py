"""Which pairs of a batch count: all of them, or some that are drawn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from torch import Tensor

from hedged.errors import ValueRangeError


class BatchPairs(NamedTuple):
    """Pairs of items of one batch: indices `first` < `second` and whether they match, each `(P,)`."""

    first: Tensor
    second: Tensor
    match: Tensor


class PairSelection(ABC):
    """Which pairs of a batch count."""

    @abstractmethod
    def select(self, pairs: BatchPairs) -> BatchPairs:
        """The pairs to keep, of all pairs of distinct items."""


@final
@dataclass(frozen=True)
class AllPairs(PairSelection):
    """All B(B − 1)/2 pairs of distinct items."""

    def select(self, pairs: BatchPairs) -> BatchPairs:
        return pairs


@final
@dataclass(frozen=True)
class SampledPairs(PairSelection):
    """Up to `count` matching and as many other pairs, drawn without replacement."""

    count: int
    generator: torch.Generator | None = None

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueRangeError(f"at least one pair of each kind is drawn, got count={self.count}")

    def select(self, pairs: BatchPairs) -> BatchPairs:
        drawn = [self._draw(pairs.match), self._draw(~pairs.match)]
        return BatchPairs(*(column[torch.cat(drawn)] for column in pairs))

    def _draw(self, mask: Tensor) -> Tensor:
        candidates = mask.nonzero().flatten()
        order = torch.randperm(len(candidates), generator=self.generator)
        return candidates[order[: self.count]]


def pairs_of(labels: Tensor) -> BatchPairs:
    """All pairs of distinct items of a batch with these labels."""
    first, second = torch.triu_indices(len(labels), len(labels), offset=1, device=labels.device)
    return BatchPairs(first, second, labels[first] == labels[second])
