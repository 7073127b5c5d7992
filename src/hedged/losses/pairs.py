"""Which pairs of a batch count: all of them, some that are drawn, or those that a rule of your own picks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from hedged.distributions import Distribution
from hedged.errors import ValueRangeError
from hedged.match import BatchPairs


class PairSelection(ABC):
    """Which pairs of a batch count. A rule of your own may look at the embeddings, to keep hard pairs for instance."""

    takes_all = False
    """Whether it keeps every pair, which lets a loss take its fastest way to their sum."""

    @abstractmethod
    def select(self, pairs: BatchPairs, z: Distribution) -> BatchPairs:
        """The pairs to keep.

        Args:
            pairs: All pairs of distinct items.
            z: The embeddings of the batch.
        """


@final
@dataclass(frozen=True)
class AllPairs(PairSelection):
    """All B(B − 1)/2 pairs of distinct items."""

    takes_all = True

    def select(self, pairs: BatchPairs, z: Distribution) -> BatchPairs:
        return pairs


@final
@dataclass(frozen=True)
class SampledPairs(PairSelection):
    """Some matching and as many other pairs, drawn without replacement.

    Args:
        count: How many of each kind, at most.
        generator: Where they are drawn from; torch's default generator if none is given.
    """

    count: int
    generator: torch.Generator | None = None

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueRangeError(f"count must be at least 1, got {self.count}")

    def select(self, pairs: BatchPairs, z: Distribution) -> BatchPairs:
        drawn = [self._draw(pairs.match), self._draw(~pairs.match)]
        return BatchPairs(*(column[torch.cat(drawn)] for column in pairs))

    def _draw(self, mask: Tensor) -> Tensor:
        candidates = mask.nonzero().flatten()
        order = torch.randperm(len(candidates), generator=self.generator)
        return candidates[order[: self.count]]
