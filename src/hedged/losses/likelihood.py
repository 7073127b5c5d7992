"""The cost of a pair of distributions that match, or do not: two readings of −log p(m̂ | x₁, x₂)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import final

import torch
from torch import Tensor

from hedged.distributions import Distribution
from hedged.match import Estimator, MatchModel, cross_entropy, match_logit, pair_costs


class Likelihood(ABC):
    """−log p(m̂ | x₁, x₂) of pairs with match m̂."""

    @abstractmethod
    def cost(self, z1: Distribution, z2: Distribution, match: Tensor, model: MatchModel) -> Tensor:
        """The cost of each pair, `(P,)`.

        Args:
            z1: The first embeddings of P pairs.
            z2: The second ones.
            match: Whether they match, `(P,)`.
            model: When two embeddings match.
        """

    def pair_costs(self, z: Distribution, labels: Tensor, model: MatchModel) -> Tensor:
        """The summed costs of all matching pairs of a batch and of all others, `(2,)`.

        Args:
            z: B embeddings.
            labels: Their classes, int64 `(B,)`.
            model: When two embeddings match.
        """
        return pair_costs(partial(self.cost, model=model), z, labels)


@final
@dataclass(frozen=True)
class Marginal(Likelihood):
    """−log E[p(m̂ | z₁, z₂)]: the likelihood of the match itself. It rewards an embedding that hedges its bets.

    Args:
        estimator: How to integrate a `MatchCurve`, if not in its own way.
    """

    estimator: Estimator | None = None

    def cost(self, z1: Distribution, z2: Distribution, match: Tensor, model: MatchModel) -> Tensor:
        return cross_entropy(match_logit(z1, z2, model, self.estimator), match)

    def pair_costs(self, z: Distribution, labels: Tensor, model: MatchModel) -> Tensor:
        model = model if self.estimator is None else model.with_estimator(self.estimator)
        return model.pair_costs(z, labels)


@final
@dataclass(frozen=True)
class ExpectedLog(Likelihood):
    """E[−log p(m̂ | z₁, z₂)] over K² pairs of samples: the paper's equation 8 to the letter, for a `MatchCurve`.

    Args:
        samples: K.
        generator: Where they are drawn from; torch's default generator if none is given.
    """

    samples: int = 8
    generator: torch.Generator | None = None

    def cost(self, z1: Distribution, z2: Distribution, match: Tensor, model: MatchModel) -> Tensor:
        logits = model.sampled_logits(z1, z2, self.samples, self.generator)
        return cross_entropy(logits, match).mean((0, 1))
