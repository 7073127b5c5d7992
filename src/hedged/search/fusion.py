"""Several images of one identity as one: as a product, as a mixture, or by a vote of the nearest."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from hedged.distributions import Distribution
from hedged.errors import ValueRangeError
from hedged.match import MatchModel, log_odds


class Fusion(ABC):
    """A way to compare probes with identities of several images each."""

    @abstractmethod
    def logits(self, probes: Distribution, images: Distribution, owner: Tensor, model: MatchModel) -> Tensor:
        """Log-odds that a probe matches an identity, `(N, G)`.

        Args:
            probes: N embeddings.
            images: M embeddings.
            owner: Whose each of them is, int64 `(M,)` in 0 … G − 1.
            model: When two embeddings match.
        """


@final
@dataclass(frozen=True)
class ProductFusion(Fusion):
    """The images of an identity as one embedding, in the match model's own way (`MatchModel.fuse`)."""

    def logits(self, probes: Distribution, images: Distribution, owner: Tensor, model: MatchModel) -> Tensor:
        return model.matrix(probes, model.fuse(images, owner))


@final
@dataclass(frozen=True)
class MixtureFusion(Fusion):
    """p(m | x, identity) = (1/n) Σ_i p(m | x, x_i): the identity looks like any one of its images, equally likely."""

    def logits(self, probes: Distribution, images: Distribution, owner: Tensor, model: MatchModel) -> Tensor:
        log_p = logsigmoid(model.matrix(probes, images).double())
        return log_odds(_log_sums(log_p, owner) - owner.bincount().log())


@final
@dataclass(frozen=True)
class NeighbourFusion(Fusion):
    """p(m | x, identity) = (1/k) Σ p(m | x, x_i) over those of the k images nearest to x that are the identity's.

    Nearest is by match probability. Identities that have none of the k images get log-odds of −∞.

    Args:
        k: How many images vote.
    """

    k: int = 5

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueRangeError(f"the number of neighbours must be at least 1, got k={self.k}")

    def logits(self, probes: Distribution, images: Distribution, owner: Tensor, model: MatchModel) -> Tensor:
        logits = model.matrix(probes, images).double()
        best = logits.topk(min(self.k, len(images)), dim=1)
        kept = torch.full_like(logits, -torch.inf).scatter_(1, best.indices, logsigmoid(best.values))
        return log_odds(_log_sums(kept, owner) - math.log(best.values.shape[1]))


def _log_sums(log_p: Tensor, owner: Tensor) -> Tensor:
    """log Σ p over the images of each identity, `(N, G)`, from log p of all, `(N, M)`."""
    highest = log_p.new_full((len(log_p), int(owner.max()) + 1), -torch.inf)
    highest = highest.scatter_reduce_(1, owner.expand_as(log_p), log_p, "amax")
    shift = highest.clamp(min=torch.finfo(log_p.dtype).min)  # where there is nothing, no −∞ + ∞
    return shift + torch.zeros_like(highest).index_add_(1, owner, (log_p - shift[:, owner]).exp()).log()
