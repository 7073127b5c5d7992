"""`Point`, `Gaussian` and `Mixture`: embeddings whose coordinates do not covary."""

from __future__ import annotations

import math
from typing import Self, final

import torch
from torch import Tensor

from hedged.distributions._checks import require_count, require_floats, require_variance, require_width
from hedged.distributions._samples import noise, sampled_kl
from hedged.distributions.base import Distribution
from hedged.errors import ShapeError, ValueRangeError


@final
class Point(Distribution):
    """z = μ: all probability at one place.

    Args:
        mean: μ, `(..., D)`.

    >>> Point(torch.zeros(5, 2)).variance.sum().item()
    0.0
    """

    def __init__(self, mean: Tensor) -> None:
        require_floats("Point", mean=mean)
        self._mean = mean

    @classmethod
    def _unchecked(cls, *tensors: Tensor) -> Self:
        point = cls.__new__(cls)
        (point._mean,) = tensors
        return point

    @property
    def mean(self) -> Tensor:
        return self._mean

    @property
    def is_point(self) -> bool:
        return True

    @property
    def variance(self) -> Tensor:
        return torch.zeros_like(self._mean)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return (self._mean,)

    @property
    def batch_shape(self) -> torch.Size:
        return self._mean.shape[:-1]

    def parts(self) -> tuple[Tensor, Tensor]:
        return self.mean.unsqueeze(-2), self.variance.unsqueeze(-2)

    def sample(self, count: int, generator: torch.Generator | None = None) -> Tensor:
        require_count(count, components=1)
        return self._mean.expand(count, *self._mean.shape)

    def log_prob(self, z: Tensor) -> Tensor:
        raise ValueRangeError("a Point has no density: log_prob needs a Gaussian or a Mixture")

    def kl(self, samples: int | None = None, generator: torch.Generator | None = None) -> Tensor:
        raise ValueRangeError(
            "the KL divergence of a Point to N(0, I) is infinite: train points with SoftContrastiveLoss, or set beta=0"
        )

    @classmethod
    def unpack(cls, packed: Tensor, dim: int) -> Self:
        require_width("Point", packed, dim, multiple=1, exact=True)
        return cls(packed)


@final
class Gaussian(Distribution):
    """z ~ N(μ, diag σ²).

    Args:
        mean: μ, `(..., D)`.
        variance: σ², `(..., D)`; or `(..., 1)`, one for all dimensions.

    >>> z = Gaussian(torch.zeros(3, 2), torch.ones(3, 1))
    >>> z.kl()
    tensor([0., 0., 0.])
    >>> z[0].sample(8, torch.Generator().manual_seed(0)).shape
    torch.Size([8, 2])
    """

    def __init__(self, mean: Tensor, variance: Tensor) -> None:
        require_floats("Gaussian", mean=mean, variance=variance)
        if variance.shape == (*mean.shape[:-1], 1):
            variance = variance.expand_as(mean)
        require_variance("Gaussian", mean, variance)
        self._mean, self._variance = mean, variance

    @classmethod
    def _unchecked(cls, *tensors: Tensor) -> Self:
        gaussian = cls.__new__(cls)
        gaussian._mean, gaussian._variance = tensors
        return gaussian

    @property
    def mean(self) -> Tensor:
        return self._mean

    @property
    def variance(self) -> Tensor:
        return self._variance

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return self._mean, self._variance

    @property
    def batch_shape(self) -> torch.Size:
        return self._mean.shape[:-1]

    def parts(self) -> tuple[Tensor, Tensor]:
        return self._mean.unsqueeze(-2), self._variance.unsqueeze(-2)

    def sample(self, count: int, generator: torch.Generator | None = None) -> Tensor:
        """z = μ + σ ε with ε ~ N(0, I): the reparametrisation trick."""
        require_count(count, components=1)
        drawn = noise((count, *self._mean.shape), self._mean, generator)
        return self._mean + self._variance.sqrt() * drawn

    def log_prob(self, z: Tensor) -> Tensor:
        """log N(z; μ, σ²) = −½ Σ_d [(z_d − μ_d)²/σ_d² + log 2πσ_d²]."""
        terms = (z - self._mean).square() / self._variance + self._variance.log() + math.log(2 * math.pi)
        return -0.5 * terms.sum(-1)

    def kl(self, samples: int | None = None, generator: torch.Generator | None = None) -> Tensor:
        """KL(N(μ, σ²) ‖ N(0, I)) = ½ Σ_d (σ_d² + μ_d² − 1 − log σ_d²)."""
        if samples is not None:
            return sampled_kl(self, samples, generator)
        return self.kl_per_dim().sum(-1)

    def kl_per_dim(self) -> Tensor:
        """KL(N(μ_d, σ_d²) ‖ N(0, 1)) = ½ (σ_d² + μ_d² − 1 − log σ_d²) of each dimension, `(..., D)`."""
        return 0.5 * (self._variance + self._mean.square() - 1 - self._variance.log())

    @classmethod
    def unpack(cls, packed: Tensor, dim: int) -> Self:
        require_width("Gaussian", packed, dim, multiple=2, exact=True)
        return cls(packed[..., :dim], packed[..., dim:])


@final
class Mixture(Distribution):
    """z ~ (1/C) Σ_c N(μ_c, diag σ_c²).

    Args:
        mean: μ_c of the components, `(..., C, D)`.
        variance: σ_c² of the components, `(..., C, D)`.

    >>> z = Mixture(torch.tensor([[-1.0], [1.0]]), torch.full((2, 1), 0.25))
    >>> z.mean, z.variance
    (tensor([0.]), tensor([1.2500]))
    """

    def __init__(self, mean: Tensor, variance: Tensor) -> None:
        require_floats("Mixture", mean=mean, variance=variance)
        if mean.ndim < 2 or mean.shape[-2] == 0:
            raise ShapeError(
                f"Mixture takes a mean of shape (..., C, D) with C ≥ 1, got {tuple(mean.shape)}: "
                "use Gaussian(mean, variance) for a single component, or mean.unsqueeze(-2)"
            )
        require_variance("Mixture", mean, variance)
        self._components = Gaussian._unchecked(mean, variance)

    @classmethod
    def _unchecked(cls, *tensors: Tensor) -> Self:
        mixture = cls.__new__(cls)
        mixture._components = Gaussian._unchecked(*tensors)
        return mixture

    @property
    def components(self) -> Gaussian:
        """The C Gaussians as a batch of shape `(..., C)`."""
        return self._components

    @property
    def n_components(self) -> int:
        return self._components.batch_shape[-1]

    @property
    def mean(self) -> Tensor:
        return self._components.mean.mean(-2)

    @property
    def variance(self) -> Tensor:
        """Mean of the variances plus variance of the means."""
        return self._components.variance.mean(-2) + (self._components.mean - self.mean.unsqueeze(-2)).square().mean(-2)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return self._components.tensors

    @property
    def batch_shape(self) -> torch.Size:
        return self._components.mean.shape[:-2]

    def parts(self) -> tuple[Tensor, Tensor]:
        return self._components.mean, self._components.variance

    def sample(self, count: int, generator: torch.Generator | None = None) -> Tensor:
        """Stratified: count / C samples from each component, one component after the other."""
        require_count(count, self.n_components)
        drawn = self._components.sample(count // self.n_components, generator)  # (count / C, ..., C, D)
        return drawn.movedim(-2, 0).flatten(0, 1)

    def log_prob(self, z: Tensor) -> Tensor:
        each = self._components.log_prob(z.unsqueeze(-2))
        return each.logsumexp(-1) - math.log(each.shape[-1])

    def kl(self, samples: int | None = None, generator: torch.Generator | None = None) -> Tensor:
        """KL(p ‖ N(0, I)) ≤ (1/C) Σ_c KL(N_c ‖ N(0, I)), by convexity; with `samples`, a Monte Carlo estimate."""
        if samples is not None:
            return sampled_kl(self, samples, generator)
        return self._components.kl().mean(-1)

    @classmethod
    def unpack(cls, packed: Tensor, dim: int) -> Self:
        require_width("Mixture", packed, dim, multiple=2, exact=False)
        mean, variance = packed.reshape(*packed.shape[:-1], 2, packed.shape[-1] // (2 * dim), dim).unbind(-3)
        return cls(mean, variance)
