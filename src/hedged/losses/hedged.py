"""The loss of hedged embeddings (equation 8): the likelihood of matches, and the KL to the prior."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor

from hedged.distributions import Distribution
from hedged.errors import ValueRangeError
from hedged.losses.base import POSITIVE_WEIGHT, PairLoss
from hedged.losses.likelihood import Likelihood, Marginal
from hedged.losses.pairs import PairSelection
from hedged.match import MatchModel


@final
class HedgedLoss(PairLoss):
    """−log p(m̂ | x₁, x₂) + β [KL(p(z₁|x₁) ‖ r) + KL(p(z₂|x₂) ‖ r)] with r = N(0, I) (equation 8).

    The KL of each item enters through both items of a pair: 2β times its mean over the batch.

    A mixture that trains with a small constant `positive_weight` from the start learns a code instead, each class in
    several places at once. Start with 0.5 and let it fall: `PositiveWeight` is the schedule.

    Args:
        match_model: When two embeddings match, such as a `MatchCurve`; its parameters are learnt along.
        beta: β, the weight of the KL.
        positive_weight: w, the weight of the matching pairs against the others.
        likelihood: `Marginal()`, −log of the expected match probability, unless `ExpectedLog()`, the expectation of
            −log that the paper writes (docs/choices.md).
        pairs: Which pairs of a batch count: `AllPairs()` unless given.
        kl_samples: Samples of each item for a Monte Carlo estimate of the KL; none: in closed form.
        generator: Where these samples are drawn from.

    >>> from hedged import Gaussian, MatchCurve
    >>> z = Gaussian(torch.tensor([[0.0], [0.0], [1.0]]), torch.full((3, 1), 0.01))
    >>> loss = HedgedLoss(MatchCurve(), beta=1e-4, positive_weight=0.05)
    >>> loss(z, torch.tensor([4, 4, 7])).item() > 0
    True
    """

    def __init__(
        self,
        match_model: MatchModel,
        beta: float = 1e-4,
        positive_weight: float = POSITIVE_WEIGHT,
        likelihood: Likelihood | None = None,
        pairs: PairSelection | None = None,
        kl_samples: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(positive_weight, pairs)
        if not 0 <= beta < float("inf"):
            raise ValueRangeError(f"beta, the weight β of the KL term, must be zero or positive, got {beta}")
        self.match_model = match_model
        self.beta = beta
        self.likelihood = likelihood or Marginal()
        self.kl_samples = kl_samples
        self.generator = generator

    def cost(self, z1: Distribution, z2: Distribution, match: Tensor) -> Tensor:
        return self.likelihood.cost(z1, z2, match, self.match_model)

    def pair_costs(self, z: Distribution, labels: Tensor) -> Tensor:
        return self.likelihood.pair_costs(z, labels, self.match_model)

    def penalty(self, z: Distribution) -> tuple[float, Tensor]:
        if not self.beta:
            return super().penalty(z)
        return 2 * self.beta, z.kl(self.kl_samples, self.generator).mean()
