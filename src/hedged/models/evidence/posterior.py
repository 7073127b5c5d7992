"""A head that is trained with its network: what an input tells of the identity that it shows."""

from __future__ import annotations

from typing import ClassVar, Self, final

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from hedged.distributions import Gaussian
from hedged.models.evidence.head import Directions
from hedged.models.heads import GaussianHead, Head

LOG_NOISE = -4.0  # of the noise that all Gaussians have beside their own variance; training moves it


@final
class PosteriorHead(Head, kind="posterior"):
    """N(μ, σ²) with σ² = 1/(1 + λ) and μ = (1 − σ²)·m: m = W h + c is seen, with evidence λ = λ₀/(1 + exp(V h + d)).

    It is the posterior of an identity z ~ N(0, I) of which m = z + noise of variance 1/λ has been seen, so it is never
    wider than the prior, as `Evidence` needs it. λ₀ is the most that any input tells; e^(Vh + d) is the noise of this
    one beside the noise of all. From a random start it learns to be silent, λ = 0: start it from
    what has been trained, with one of the methods below.

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
    def start_from_plda(self, found: Directions, points: nn.Linear | None = None) -> None:
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

    @torch.no_grad()
    def start_from_gaussians(self, head: GaussianHead, mean: Tensor, sd: Tensor) -> None:
        """Let the head see the means of Gaussians, standardised, with evidence λ = sd²/(σ² + e⁻⁴).

        e⁻⁴ is a noise that all inputs have; without it the Gaussians of a match curve claim too much.

        Args:
            head: What makes Gaussians of features.
            mean: Of their means, `(D,)`.
            sd: The standard deviation of their means, `(D,)`.
        """
        self.seen.weight.copy_(head.mean.weight / sd[:, None])
        self.seen.bias.copy_((head.mean.bias - mean) / sd)
        self.log_evidence.copy_(2 * sd.log() - LOG_NOISE)
        self.noise.weight.copy_(head.log_variance.weight)
        self.noise.bias.copy_(head.log_variance.bias - LOG_NOISE)

    def distribution(self, features: Tensor) -> Gaussian:
        log_evidence = self.log_evidence - softplus(self.noise(features))
        return Gaussian(self.seen(features) * log_evidence.sigmoid(), (-log_evidence).sigmoid())
