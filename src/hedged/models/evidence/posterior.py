"""A head that is trained with its network: what an input tells of the identity that it shows."""

from __future__ import annotations

from typing import ClassVar, Self, final

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from hedged.distributions import Gaussian
from hedged.models.evidence.head import Directions
from hedged.models.heads import Head


@final
class PosteriorHead(Head, kind="posterior"):
    """N(μ, σ²) with σ² = 1/(1 + λ) and μ = (1 − σ²)·m: m = W h + c is seen, with evidence λ = λ₀/(1 + exp(V h + d)).

    It is the posterior of an identity z ~ N(0, I) of which m = z + noise of variance 1/λ has been seen, so it is never
    wider than the prior, as `Evidence` needs it. λ₀ is the most that any input tells; e^(Vh + d) is the noise of this
    one beside the noise of all. From a random start it learns to be silent, λ = 0: see `start_from`.

    Args:
        features: F, the number of features.
        dim: D, the dimensions of the embedding space.

    >>> PosteriorHead(features=16, dim=2)(torch.randn(8, 16)).variance.max().item() < 1
    True
    """

    is_posterior: ClassVar[bool] = True

    def __init__(self, features: int, dim: int) -> None:
        super().__init__(features, dim)
        self.seen = nn.Linear(features, dim)
        self.log_evidence = nn.Parameter(torch.zeros(dim))
        self.noise = nn.Linear(features, dim)
        nn.init.zeros_(self.noise.weight)
        nn.init.zeros_(self.noise.bias)

    @classmethod
    def build(cls, features: int, dim: int, components: int) -> Self:
        return cls(features, dim)

    @torch.no_grad()
    def start_from(self, found: Directions, points: nn.Linear | None = None) -> None:
        """Let the head say of every input what PLDA says, with as much noise of its own as all inputs have.

        Args:
            found: D directions in the space of the features, or of points.
            points: The layer that makes points of features, if directions are in their space.
        """
        weight, evidence, centre = (torch.tensor(a.copy()) for a in (found.weight, found.evidence, found.centre))
        onto = (weight / evidence.sqrt()).T  # from what is centred to what is seen of z
        self.seen.bias.copy_(-onto @ centre if points is None else onto @ (points.bias.double() - centre))
        self.seen.weight.copy_(onto if points is None else onto @ points.weight.double())
        self.log_evidence.copy_((2 * evidence).log())

    def distribution(self, features: Tensor) -> Gaussian:
        log_evidence = self.log_evidence - softplus(self.noise(features))
        return Gaussian(self.seen(features) * log_evidence.sigmoid(), (-log_evidence).sigmoid())
