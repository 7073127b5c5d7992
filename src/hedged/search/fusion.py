"""Several images of one identity as one: their product, or their mixture."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from hedged.distributions import Distribution, Gaussian, Point
from hedged.errors import ValueRangeError
from hedged.match import MatchCurve, logit_matrix


class Fusion(ABC):
    """A way to compare probes with identities of several images each."""

    @abstractmethod
    def logits(self, probes: Distribution, images: Distribution, owner: Tensor, curve: MatchCurve) -> Tensor:
        """Log-odds that a probe matches an identity, `(N, G)`, given images and whose they are, `(M,)` in 0 … G − 1."""


@final
@dataclass(frozen=True)
class ProductFusion(Fusion):
    """Π_i N(μ_i, σ_i²) ∝ N(μ, σ²) with 1/σ² = Σ_i 1/σ_i² and μ = σ² Σ_i μ_i/σ_i²: images that all show one thing.

    The sure ones count most, and many make sure. Of mixtures, each is first taken as the Gaussian of its moments;
    of points, the product is their mean.
    """

    def logits(self, probes: Distribution, images: Distribution, owner: Tensor, curve: MatchCurve) -> Tensor:
        return logit_matrix(probes, product(images, owner), curve)


@final
@dataclass(frozen=True)
class MixtureFusion(Fusion):
    """p(m | x, identity) = (1/n) Σ_i p(m | x, x_i): the identity looks like any one of its images, equally likely."""

    def logits(self, probes: Distribution, images: Distribution, owner: Tensor, curve: MatchCurve) -> Tensor:
        log_p = logsigmoid(logit_matrix(probes, images, curve).double())
        return _odds(_log_sums(log_p, owner) - owner.bincount().log())


@final
@dataclass(frozen=True)
class NeighbourFusion(Fusion):
    """p(m | x, identity) = (1/k) Σ p(m | x, x_i) over those of the k images nearest to x that are the identity's.

    Nearest is by match probability. Identities that none of them is of have log-odds of −∞.
    """

    k: int = 5

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueRangeError(f"there is at least one neighbour, got k={self.k}")

    def logits(self, probes: Distribution, images: Distribution, owner: Tensor, curve: MatchCurve) -> Tensor:
        logits = logit_matrix(probes, images, curve).double()
        best = logits.topk(min(self.k, len(images)), dim=1)
        kept = torch.full_like(logits, -torch.inf).scatter_(1, best.indices, logsigmoid(best.values))
        return _odds(_log_sums(kept, owner) - math.log(best.values.shape[1]))


def _log_sums(log_p: Tensor, owner: Tensor) -> Tensor:
    """log Σ p over the images of each identity, `(N, G)`, from log p of all, `(N, M)`."""
    highest = log_p.new_full((len(log_p), int(owner.max()) + 1), -torch.inf)
    highest = highest.scatter_reduce_(1, owner.expand_as(log_p), log_p, "amax")
    shift = highest.clamp(min=torch.finfo(log_p.dtype).min)  # where there is nothing, no −∞ + ∞
    return shift + torch.zeros_like(highest).index_add_(1, owner, (log_p - shift[:, owner]).exp()).log()


def _odds(log_p: Tensor) -> Tensor:
    return log_p - torch.log(-torch.expm1(log_p))


def product(images: Distribution, owner: Tensor) -> Distribution:
    """The product of the images of each identity, a batch of G.

    >>> z = Gaussian(torch.tensor([[0.0], [4.0], [1.0]]), torch.tensor([[1.0], [3.0], [2.0]]))
    >>> product(z, torch.tensor([0, 0, 1])).tensors
    (tensor([[1.], [1.]]), tensor([[0.7500], [2.0000]]))
    """
    groups = int(owner.max()) + 1
    if isinstance(images, Point):
        return Point(_sums(images.mean, owner, groups) / owner.bincount().unsqueeze(1))
    precision = images.variance.reciprocal()
    variance = _sums(precision, owner, groups).reciprocal()
    return Gaussian(variance * _sums(precision * images.mean, owner, groups), variance)


def _sums(rows: Tensor, owner: Tensor, groups: int) -> Tensor:
    return rows.new_zeros(groups, rows.shape[1]).index_add_(0, owner, rows)
