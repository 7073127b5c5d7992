"""What all losses share: they add up, they scale, and most are means over the pairs of a batch."""

from __future__ import annotations

import reprlib
import warnings
from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor, nn

from hedged._tracing import untraced
from hedged.distributions import Distribution
from hedged.errors import ShapeError, ValueRangeError
from hedged.losses.pairs import AllPairs, PairSelection
from hedged.match import pair_costs, pairs_of

POSITIVE_WEIGHT = 0.05  # of the matching pairs, unless given: the others are many more


class LossParts(NamedTuple):
    """A loss and what it is made of, each a scalar: total = w·positive + (1 − w)·negative + the weighted KL.

    Args:
        total: The loss.
        positive: The mean cost of the matching pairs.
        negative: The mean cost of the other pairs.
        kl: The mean KL of an item.
    """

    total: Tensor
    positive: Tensor
    negative: Tensor
    kl: Tensor


class Loss(nn.Module, ABC):
    """From a batch of distributions and its labels to one number to minimise.

    Losses compose: `one + other` is their sum, `0.1 * one` a tenth of it. A loss owns what is learnt along with the
    embedding, its match model among it: `loss.parameters()` is the one door. Where an embedder has the same match
    model, `nn.ModuleList([embedder, loss]).parameters()` has every parameter once.
    """

    @property
    @abstractmethod
    def positive_weight(self) -> float:
        """w, the weight of the matching pairs, in (0, 1). It can be set, to follow a `PositiveWeight` schedule."""

    @positive_weight.setter
    @abstractmethod
    def positive_weight(self, value: float) -> None: ...

    @abstractmethod
    def parts(self, z: Distribution, labels: Tensor) -> LossParts:
        """The loss of a batch and what it is made of.

        Args:
            z: B embeddings.
            labels: Their classes, `(B,)`.
        """

    def forward(self, z: Distribution, labels: Tensor) -> Tensor:
        """The loss of a batch, a scalar.

        Args:
            z: B embeddings.
            labels: Their classes, `(B,)`.
        """
        return self.parts(z, labels).total

    def __add__(self, other: Loss) -> Loss:
        from hedged.losses.combined import Sum  # late: it is made of losses

        return Sum(self, other)

    def __rmul__(self, factor: float) -> Loss:
        from hedged.losses.combined import Scaled

        return Scaled(factor, self)


class PairLoss(Loss, ABC):
    """w · (mean cost of the matching pairs) + (1 − w) · (mean cost of the others), over pairs of distinct items.

    A batch that lacks one kind of pairs, as the last of a `DataLoader` may, costs what its other pairs cost, and a
    warning says so once.

    Args:
        positive_weight: w, the weight of the matching pairs against the others, in (0, 1).
        pairs: Which pairs of a batch count: `AllPairs()` unless given.
    """

    def __init__(self, positive_weight: float = POSITIVE_WEIGHT, pairs: PairSelection | None = None) -> None:
        super().__init__()
        self._positive_weight = _checked_weight(positive_weight)
        self.pairs = AllPairs() if pairs is None else pairs

    @property
    def positive_weight(self) -> float:
        return self._positive_weight

    @positive_weight.setter
    def positive_weight(self, value: float) -> None:
        self._positive_weight = _checked_weight(value)

    @abstractmethod
    def cost(self, z1: Distribution, z2: Distribution, match: Tensor) -> Tensor:
        """The cost of each pair, `(P,)`.

        Args:
            z1: The first embeddings of P pairs.
            z2: The second ones.
            match: Whether they match, `(P,)`.
        """

    def pair_costs(self, z: Distribution, labels: Tensor) -> Tensor:
        """The summed costs of all matching pairs of a batch and of all others, `(2,)`.

        A loss that knows a faster way than pair by pair overrides this.

        Args:
            z: B embeddings.
            labels: Their classes, `(B,)`.
        """
        return pair_costs(self.cost, z, labels)

    def penalty(self, z: Distribution) -> tuple[float, Tensor]:
        """What is added for each item, whatever the pairs: its weight, and its mean over the batch.

        Args:
            z: B embeddings.
        """
        return 0.0, torch.zeros((), dtype=z.dtype, device=z.device)

    @untraced
    def parts(self, z: Distribution, labels: Tensor) -> LossParts:
        _check_batch(z, labels)
        _, classes, sizes = labels.unique(return_inverse=True, return_counts=True)  # type: ignore[no-untyped-call]
        _warn_of_missing_pairs(len(z), len(sizes))
        positive, negative = self._mean_costs(z, classes, sizes)
        weight, kl = self.penalty(z)
        w = self.positive_weight
        return LossParts(w * positive + (1 - w) * negative + weight * kl, positive, negative, kl)

    def _mean_costs(self, z: Distribution, classes: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
        """The mean cost of a matching pair and of any other, given each item's class and each class's size."""
        if self.pairs.takes_all:
            matching = int((sizes * (sizes - 1)).sum()) // 2
            positive, negative = self.pair_costs(z, classes)
            others = len(z) * (len(z) - 1) // 2 - matching
            return positive / max(matching, 1), negative / max(others, 1)
        first, second, match = self.pairs.select(pairs_of(classes), z)
        costs = self.cost(z.take(first), z.take(second), match)
        return _mean_where(match, costs), _mean_where(~match, costs)


def _mean_where(mask: Tensor, values: Tensor) -> Tensor:
    return torch.where(mask, values, 0).sum() / mask.sum().clamp(min=1)


def _checked_weight(weight: float) -> float:
    if not 0 < weight < 1:
        raise ValueRangeError(f"positive_weight must be between 0 and 1, got {weight}")
    return weight


def _check_batch(z: Distribution, labels: Tensor) -> None:
    if not isinstance(z, Distribution) or not isinstance(labels, Tensor):
        raise ShapeError(
            f"a loss takes a distribution, such as Point(z), and a tensor of labels, "
            f"got {type(z).__name__} and {type(labels).__name__}: torch.as_tensor(labels) makes a tensor of numbers, "
            "torch.as_tensor(numpy.unique(names, return_inverse=True)[1]) of names"
        )
    if len(z.batch_shape) != 1 or labels.shape != z.batch_shape:
        raise ShapeError(
            f"a loss takes a batch of B embeddings and B labels, got embeddings of batch shape "
            f"{tuple(z.batch_shape)} and labels of shape {tuple(labels.shape)}"
        )
    if not len(z):
        raise ShapeError("a loss takes a batch of one embedding or more, got none: leave out empty batches")
    if labels.is_complex() or (labels.is_floating_point() and bool(labels.isnan().any())):
        raise ValueRangeError(
            f"labels are numbers of classes, none of them NaN, got {labels.dtype} {reprlib.repr(labels.tolist())}: "
            "leave out the items that have no label"
        )


def _warn_of_missing_pairs(items: int, classes: int) -> None:
    for kind, present in (("matching", classes < items), ("non-matching", classes > 1)):
        if not present:
            warnings.warn(
                f"a batch has no {kind} pair and teaches nothing about them: draw at least two items of one class and "
                "two classes a batch (hedged.data.ClassSampler does)",
                stacklevel=4,
            )
