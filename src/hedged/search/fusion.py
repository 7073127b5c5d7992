"""Several images of one identity as one: as a product, as a mixture, or by a vote of the nearest."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from hedged.distributions import Distribution
from hedged.errors import ValueRangeError
from hedged.match import MatchModel, log_odds

LogitsOf = Callable[[Distribution], Tensor]


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

    def against(self, images: Distribution, owner: Tensor, model: MatchModel) -> LogitsOf:
        """`logits` of any probes against the same identities; what does not depend on the probes is done once.

        Args:
            images: M embeddings.
            owner: Whose each of them is, int64 `(M,)` in 0 … G − 1.
            model: When two embeddings match.
        """
        return lambda probes: self.logits(probes, images, owner, model)

    def held_out(self, images: Distribution, owner: Tensor, tried: Tensor, model: MatchModel) -> tuple[Tensor, Tensor]:
        """Log-odds of images of a gallery and its identities, `(n, G)`: without the image, and without its identity.

        −∞ where nothing is left to compare with.

        Args:
            images: M embeddings.
            owner: Whose each of them is, int64 `(M,)` in 0 … G − 1.
            tried: Places of the n images that are tried, int64 `(n,)`.
            model: When two embeddings match.
        """
        shape = len(tried), int(owner.max()) + 1
        known, strangers = (torch.full(shape, -torch.inf, dtype=torch.float64) for _ in range(2))
        for row, i in enumerate(tried.tolist()):
            others = torch.arange(len(images)) != i
            for found, kept in ((known, others), (strangers, owner != owner[i])):
                left, numbered = np.unique(owner[kept].numpy(), return_inverse=True)  # counted without gaps
                if len(left):
                    logits = self.logits(images[i : i + 1], images[kept], torch.from_numpy(numbered), model)
                    found[row, torch.from_numpy(left)] = logits[0].double()
        return known, strangers


@final
@dataclass(frozen=True)
class ProductFusion(Fusion):
    """The images of an identity as one embedding, in the match model's own way (`MatchModel.fuse`)."""

    def logits(self, probes: Distribution, images: Distribution, owner: Tensor, model: MatchModel) -> Tensor:
        return self.against(images, owner, model)(probes)

    def against(self, images: Distribution, owner: Tensor, model: MatchModel) -> LogitsOf:
        templates = model.fuse(images, owner)
        return lambda probes: model.matrix(probes, templates)

    def held_out(self, images: Distribution, owner: Tensor, tried: Tensor, model: MatchModel) -> tuple[Tensor, Tensor]:
        """As its base, at once: an image changes the template of its own identity alone.

        Args:
            images: M embeddings.
            owner: Whose each of them is, int64 `(M,)` in 0 … G − 1.
            tried: Places of the n images that are tried, int64 `(n,)`.
            model: When two embeddings match.
        """
        probes, rows, own = images.take(tried), torch.arange(len(tried)), owner[tried]
        known = self.logits(probes, images, owner, model).double()
        known[rows, own] = -torch.inf
        strangers = known.clone()
        row, place = torch.nonzero(
            (own[:, None] == owner) & (tried[:, None] != torch.arange(len(owner))), as_tuple=True
        )
        having, which = np.unique(row.numpy(), return_inverse=True)
        if len(having):
            several = torch.from_numpy(having)
            rest = model.fuse(images.take(place), torch.from_numpy(which))
            known[several, own[several]] = model.logit(probes.take(several), rest).double()
        return known, strangers


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
