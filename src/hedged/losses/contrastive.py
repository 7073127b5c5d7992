"""Losses of points: contrastive, with a margin, and soft contrastive, with a match curve."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor

from hedged.distributions import Distribution
from hedged.errors import ValueRangeError
from hedged.losses.base import POSITIVE_WEIGHT, PairLoss
from hedged.losses.pairs import PairSelection
from hedged.match import MatchCurve, cross_entropy, distance


@final
class ContrastiveLoss(PairLoss):
    """‖z₁ − z₂‖² if match, max(M − ‖z₁ − z₂‖, 0)² if not (equation 1), between the means.

    Args:
        margin: M.
        positive_weight: w, the weight of the matching pairs against the others.
        pairs: Which pairs of a batch count: `AllPairs()` unless given.

    >>> from hedged import Point
    >>> loss = ContrastiveLoss(margin=1.0, positive_weight=0.5)
    >>> loss(Point(torch.tensor([[0.0], [0.0], [1.0]])), torch.tensor([4, 4, 7]))
    tensor(0.)
    """

    def __init__(
        self, margin: float = 1.0, positive_weight: float = POSITIVE_WEIGHT, pairs: PairSelection | None = None
    ) -> None:
        super().__init__(positive_weight, pairs)
        if not 0 < margin < float("inf"):
            raise ValueRangeError(f"margin must be positive and finite, got {margin}")
        self.margin = margin

    def cost(self, z1: Distribution, z2: Distribution, match: Tensor) -> Tensor:
        difference = z1.mean - z2.mean
        hinge = (self.margin - distance(z1.mean, z2.mean)).clamp(min=0)
        return torch.where(match, difference.square().sum(-1), hinge.square())


@final
class SoftContrastiveLoss(PairLoss):
    """−log p(m̂ | z₁, z₂) with p(m | z₁, z₂) = σ(b − a‖z₁ − z₂‖), between the means (equation 3).

    Args:
        curve: The match curve; its parameters are learnt along.
        positive_weight: w, the weight of the matching pairs against the others.
        pairs: Which pairs of a batch count: `AllPairs()` unless given.

    >>> from hedged import Point
    >>> loss = SoftContrastiveLoss(MatchCurve(), positive_weight=0.5).requires_grad_(False)
    >>> loss(Point(torch.tensor([[0.0], [0.0], [1.0]])), torch.tensor([4, 4, 7]))
    tensor(0.0247)
    """

    def __init__(
        self, curve: MatchCurve, positive_weight: float = POSITIVE_WEIGHT, pairs: PairSelection | None = None
    ) -> None:
        super().__init__(positive_weight, pairs)
        self.curve = curve

    def cost(self, z1: Distribution, z2: Distribution, match: Tensor) -> Tensor:
        return cross_entropy(self.curve.logit_at(distance(z1.mean, z2.mean)), match)
