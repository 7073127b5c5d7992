"""What all losses share: means over the pairs of a batch, and the batches that have none."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor, nn

from hedged.distributions import Distribution
from hedged.errors import ShapeError, ValueRangeError
from hedged.losses.selection import PairSelection, pairs_of


class LossParts(NamedTuple):
    """The parts of a loss, each a scalar: total = w·positive + (1 − w)·negative + 2β·kl, kl the mean KL of an item."""

    total: Tensor
    positive: Tensor
    negative: Tensor
    kl: Tensor


class PairLoss(nn.Module, ABC):
    """A mean over pairs of a batch: w · (mean cost of matching pairs) + (1 − w) · (mean cost of the others)."""

    def __init__(self, positive_weight: float, pairs: PairSelection) -> None:
        super().__init__()
        if not 0 < positive_weight < 1:
            raise ValueRangeError(f"positive_weight lies between 0 and 1, got {positive_weight}")
        self.positive_weight = positive_weight
        self.pairs = pairs

    @property
    def scaffold(self) -> nn.ModuleList:
        """What trains along with the embedder and is left behind when training ends: nothing, for most losses."""
        return nn.ModuleList()

    kl_weight = 0.0  # 2β: the KL of an item enters through both items of a pair

    @abstractmethod
    def cost(self, z1: Distribution, z2: Distribution, match: Tensor) -> Tensor:
        """The cost of each pair, `(P,)`."""

    def kl(self, z: Distribution) -> Tensor:
        """The mean KL of an item to the prior, a scalar; zero where it has no weight."""
        return torch.zeros((), dtype=z.dtype, device=z.device)

    def parts(self, z: Distribution, labels: Tensor) -> LossParts:
        """The loss of a batch of B distributions with labels `(B,)`, and what it is made of."""
        _check_batch(z, labels)
        positive, negative = self.mean_costs(z, labels)
        kl = self.kl(z)
        total = self.positive_weight * positive + (1 - self.positive_weight) * negative + self.kl_weight * kl
        return LossParts(total, positive, negative, kl)

    def mean_costs(self, z: Distribution, labels: Tensor) -> tuple[Tensor, Tensor]:
        """The mean cost of the matching pairs that count, and of the others."""
        first, second, match = self.pairs.select(pairs_of(labels))
        costs = self.cost(z.take(first), z.take(second), match)
        return _mean_where(match, costs), _mean_where(~match, costs)

    def forward(self, z: Distribution, labels: Tensor) -> Tensor:
        return self.parts(z, labels).total


def _mean_where(mask: Tensor, values: Tensor) -> Tensor:
    return torch.where(mask, values, 0).sum() / mask.sum()


def _check_batch(z: Distribution, labels: Tensor) -> None:
    if not isinstance(z, Distribution) or not isinstance(labels, Tensor):
        raise ShapeError(
            f"a loss takes a distribution, such as Point(z), and a tensor of labels, "
            f"got {type(z).__name__} and {type(labels).__name__}"
        )
    if len(z.batch_shape) != 1 or labels.shape != z.batch_shape:
        raise ShapeError(
            f"a loss takes a batch of B embeddings and B labels, got embeddings of batch shape "
            f"{tuple(z.batch_shape)} and labels of shape {tuple(labels.shape)}"
        )
    classes = len(labels.unique())  # type: ignore[no-untyped-call]
    for kind, present in (("matching", classes < len(z)), ("non-matching", classes > 1)):
        if not present:
            raise ValueRangeError(
                f"this batch of {len(z)} has no {kind} pair, so its loss is undefined: draw at least two images of one "
                "class and two classes a batch (hedged.data.TwoStream does)"
            )
