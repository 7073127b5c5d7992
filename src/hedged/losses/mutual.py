"""The mutual likelihood: a loss that teaches variances how far from an input its own kind lies."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor

from hedged.distributions import Distribution, Gaussian
from hedged.errors import ShapeError, ValueRangeError
from hedged.losses.base import POSITIVE_WEIGHT, PairLoss
from hedged.losses.pairs import PairSelection


@final
class MutualLikelihood(PairLoss):
    """−log N(μ₁ − μ₂; 0, k (Σ₁ + Σ₂)) of matching pairs: variances learn how far from an input its own kind lies.

    Given the means, the likelihood of matches says little to a variance in many dimensions, where noise only adds to a
    distance: it grows with the strangers near an input, and not with the distance to its own kind. With k = 1 this is
    the mutual likelihood of Shi and Jain (2019). Of the squared distance of two of a kind, variances then account for
    1/k: the rest is between any two, and the match curve has it.

    Args:
        stretch: k.
        positive_weight: w, the weight of the matching pairs; the others cost nothing.
        pairs: Which pairs of a batch count: `AllPairs()` unless given.
    """

    def __init__(
        self, stretch: float = 4.0, positive_weight: float = POSITIVE_WEIGHT, pairs: PairSelection | None = None
    ) -> None:
        super().__init__(positive_weight, pairs)
        if not 0 < stretch < float("inf"):
            raise ValueRangeError(f"stretch must be positive and finite, got {stretch}")
        self.stretch = stretch

    def cost(self, z1: Distribution, z2: Distribution, match: Tensor) -> Tensor:
        if z1.is_point or z2.is_point:
            raise ShapeError(f"MutualLikelihood takes Gaussians, whose variances it teaches, got {z1} and {z2}")
        if not (z1.is_diagonal and z2.is_diagonal):
            raise ShapeError(f"MutualLikelihood teaches diagonal covariances, got {z1} and {z2}")
        summed = self.stretch * (z1.variance + z2.variance)
        return torch.where(match, -Gaussian(z1.mean, summed).log_prob(z2.mean), 0)
