"""Losses made of losses: sums, multiples, one for the means and one for the variances."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor, nn

from hedged.distributions import Distribution, Gaussian, Point
from hedged.errors import ShapeError, ValueRangeError
from hedged.losses.base import Loss, LossParts


class _Combined(Loss):
    """Several losses at once, with one positive weight for all of them."""

    def __init__(self, *losses: Loss) -> None:
        super().__init__()
        self.losses = nn.ModuleList(losses)

    @property
    def positive_weight(self) -> float:
        return self._each()[0].positive_weight

    @positive_weight.setter
    def positive_weight(self, value: float) -> None:
        for loss in self._each():
            loss.positive_weight = value

    def _each(self) -> list[Loss]:
        return list(self.losses)  # type: ignore[arg-type]


@final
class Sum(_Combined):
    """The sum of several losses of one batch; `one + other` makes it.

    Args:
        losses: What is added up.
    """

    def parts(self, z: Distribution, labels: Tensor) -> LossParts:
        return _added([loss.parts(z, labels) for loss in self._each()])


@final
class Scaled(_Combined):
    """A multiple of a loss; `0.1 * loss` makes it.

    Args:
        factor: How many times the loss counts, zero or positive.
        loss: The loss.
    """

    def __init__(self, factor: float, loss: Loss) -> None:
        super().__init__(loss)
        if not 0 <= factor < float("inf"):
            raise ValueRangeError(f"a loss is multiplied by a finite number that is zero or positive, got {factor}")
        self.factor = factor

    def parts(self, z: Distribution, labels: Tensor) -> LossParts:
        (loss,) = self._each()
        return LossParts(*(self.factor * part for part in loss.parts(z, labels)))


@final
class Decoupled(_Combined):
    """One loss for the means of Gaussians, as if they were points, and one for the variances given the means.

    In many dimensions noise hides how near two means are, so inputs that are not yet told apart may stay together, each
    with a wide distribution; points have no such excuse. Give the means a match curve of their own: to do without
    variances a curve has to be flat, and a flat curve leaves the variances nothing to tell.

    Args:
        means: The loss of the means; it sees `Point(μ)`.
        variances: The loss of the variances; it sees the Gaussians, but no gradient reaches their means.

    >>> from hedged import HedgedLoss, MatchCurve, SoftContrastiveLoss
    >>> from hedged.losses import MutualLikelihood
    >>> loss = Decoupled(SoftContrastiveLoss(MatchCurve()), HedgedLoss(MatchCurve()) + 0.02 * MutualLikelihood())
    >>> z = Gaussian(torch.tensor([[0.0], [0.0], [1.0]]), torch.full((3, 1), 0.01))
    >>> loss(z, torch.tensor([4, 4, 7])).item() > 0
    True
    """

    def __init__(self, means: Loss, variances: Loss) -> None:
        super().__init__(means, variances)

    def parts(self, z: Distribution, labels: Tensor) -> LossParts:
        if not isinstance(z, Gaussian):
            raise ShapeError(f"only the means of single Gaussians train as points, got {z}")
        means, variances = self._each()
        given = Gaussian(z.mean.detach(), z.variance)
        return _added([means.parts(Point(z.mean), labels), variances.parts(given, labels)])


def _added(parts: list[LossParts]) -> LossParts:
    total, positive, negative, kl = (torch.stack(column).sum() for column in zip(*parts, strict=True))
    return LossParts(total, positive, negative, kl)
