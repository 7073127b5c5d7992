"""From features to a distribution: the last linear layer of the network, one branch for each quantity it predicts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from hedged.distributions import Distribution, Gaussian, Mixture, Point
from hedged.errors import ShapeError, ValueRangeError

INITIAL_LOG_VARIANCE = -4.0
LARGEST_LOG_VARIANCE = 12.0  # in absolute value: a variance branch can neither vanish nor overflow


class Head(nn.Module, ABC):
    """Features `(B, F)` to a batch of B distributions over ℝᴰ, D = `dim`."""

    def __init__(self, features: int, dim: int) -> None:
        super().__init__()
        for name, value in (("features", features), ("dim", dim)):
            if value < 1:
                raise ValueRangeError(f"a head has at least one of {name}, got {name}={value}")
        self.features, self.dim = features, dim

    @abstractmethod
    def distribution(self, features: Tensor) -> Distribution: ...

    def forward(self, features: Tensor) -> Distribution:
        if features.ndim != 2 or features.shape[1] != self.features:
            raise ShapeError(f"this head takes features of shape (B, {self.features}), got {tuple(features.shape)}")
        return self.distribution(features)


@final
class PointHead(Head):
    """z = W h + c."""

    def __init__(self, features: int, dim: int) -> None:
        super().__init__(features, dim)
        self.mean = nn.Linear(features, dim)

    def distribution(self, features: Tensor) -> Point:
        return Point(self.mean(features))


@final
class GaussianHead(Head):
    """μ(x) and log σ²(x), 2·D outputs on shared features (section 2.2).

    >>> import torch
    >>> GaussianHead(features=16, dim=2)(torch.randn(8, 16))
    Gaussian(batch=(8,), dim=2, dtype=torch.float32)
    """

    def __init__(self, features: int, dim: int) -> None:
        super().__init__(features, dim)
        self.mean = nn.Linear(features, dim)
        self.log_variance = _log_variance_branch(features, dim)

    def distribution(self, features: Tensor) -> Gaussian:
        mean, log_variance = _both(features, self.mean, self.log_variance)
        return Gaussian(mean, _variance(log_variance))


@final
class MixtureHead(Head):
    """μ(x, c) and log σ²(x, c) for C = `components` Gaussians of equal weight, a linear branch each (section 2.2)."""

    def __init__(self, features: int, dim: int, components: int) -> None:
        super().__init__(features, dim)
        if components < 1:
            raise ValueRangeError(f"a mixture has at least one component, got components={components}")
        self.components = components
        self.mean = nn.Linear(features, components * dim)
        self.log_variance = _log_variance_branch(features, components * dim)

    def distribution(self, features: Tensor) -> Mixture:
        shape = (len(features), self.components, self.dim)
        mean, log_variance = _both(features, self.mean, self.log_variance)
        return Mixture(mean.reshape(shape), _variance(log_variance.reshape(shape)))


def _log_variance_branch(features: int, outputs: int) -> nn.Linear:
    """A linear layer that starts at one small variance for every input, and learns to tell inputs apart."""
    branch = nn.Linear(features, outputs)
    nn.init.zeros_(branch.weight)
    nn.init.constant_(branch.bias, INITIAL_LOG_VARIANCE)
    return branch


def _both(features: Tensor, one: nn.Linear, other: nn.Linear) -> tuple[Tensor, Tensor]:
    """What two branches of as many outputs make of the same features, in one product: two take twice as long."""
    weight, bias = torch.cat([one.weight, other.weight]), torch.cat([one.bias, other.bias])
    mean, log_variance = linear(features, weight, bias).chunk(2, dim=-1)
    return mean, log_variance


def _variance(log_variance: Tensor) -> Tensor:
    """exp of the log-variance, softly bounded on both sides."""
    bound = LARGEST_LOG_VARIANCE
    variance: Tensor = (bound * (log_variance / bound).tanh()).exp()
    return variance
