"""The cost of a pair of distributions that match, or do not: two readings of −log p(m̂ | x₁, x₂)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from hedged.distributions import Distribution
from hedged.match import Estimator, MatchCurve, cross_entropy, match_logit, sampled_logits


class Likelihood(ABC):
    """−log p(m̂ | x₁, x₂) of pairs with match m̂."""

    @abstractmethod
    def cost(self, z1: Distribution, z2: Distribution, match: Tensor, curve: MatchCurve) -> Tensor:
        """The cost of each pair, `(P,)`."""


@final
@dataclass(frozen=True)
class Marginal(Likelihood):
    """−log E[p(m̂ | z₁, z₂)]: the likelihood of the match itself. It rewards an embedding that hedges its bets."""

    estimator: Estimator | None = None

    def cost(self, z1: Distribution, z2: Distribution, match: Tensor, curve: MatchCurve) -> Tensor:
        return cross_entropy(match_logit(z1, z2, curve, self.estimator), match)


@final
@dataclass(frozen=True)
class ExpectedLog(Likelihood):
    """E[−log p(m̂ | z₁, z₂)] over K² pairs of samples: the paper's equation 8 to the letter."""

    samples: int = 8
    generator: torch.Generator | None = None

    def cost(self, z1: Distribution, z2: Distribution, match: Tensor, curve: MatchCurve) -> Tensor:
        logits = sampled_logits(z1, z2, curve, self.samples, self.generator)
        return cross_entropy(logits, match).mean((0, 1))
