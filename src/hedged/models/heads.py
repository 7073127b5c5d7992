"""From features to a distribution: the last linear layer of the network, one branch for each quantity it predicts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self, final

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from hedged._precision import Change, at_least_single
from hedged.distributions import (
    MOST_FULL,
    Distribution,
    FullGaussian,
    Gaussian,
    LowRankGaussian,
    Mixture,
    Point,
)
from hedged.errors import ConfigError, ShapeError, ValueRangeError

INITIAL_LOG_VARIANCE = -4.0
LARGEST_LOG_VARIANCE = 12.0  # in absolute value: a variance branch can neither vanish nor overflow


class Head(nn.Module, ABC):
    """Features `(B, F)` to a batch of B distributions over ℝᴰ.

    A subclass that is defined with a name, `class MyHead(Head, kind="mine")`, can be named in a config and is found
    again when a model that has it is loaded.

    Args:
        features: F, the number of features.
        dim: D, the dimensions of the embedding space.
    """

    kinds: ClassVar[dict[str, type[Head]]] = {}  # by name; filled as they are defined
    kind: ClassVar[str | None] = None
    has_components: ClassVar[bool] = False  # whether a distribution has several, as a mixture does
    has_rank: ClassVar[bool] = False  # whether its covariances are of a rank that can be chosen
    most_dims: ClassVar[int | None] = None  # D, at most; None: any
    is_posterior: ClassVar[bool] = False  # whether distributions are no wider than the prior N(0, I) of an identity
    components: int = 1
    """C, the Gaussians of a mixture; 1 for all others."""
    rank: int | None = None
    """R, the factors of a low-rank covariance; None for all others."""

    def __init_subclass__(cls, kind: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.kind = kind
        if kind is not None:
            Head.kinds[kind] = cls

    def __init__(self, features: int, dim: int) -> None:
        super().__init__()
        for name, value in (("features", features), ("dim", dim)):
            if value < 1:
                raise ValueRangeError(f"a head has at least one of {name}, got {name}={value}")
        self.features, self.dim = features, dim

    @classmethod
    @abstractmethod
    def build(cls, features: int, dim: int, components: int) -> Self:
        """The head that a config or a saved model describes.

        Args:
            features: F, the number of features.
            dim: D, the dimensions of the embedding space.
            components: C, the Gaussians of a mixture; 1 for all others.
        """

    @classmethod
    def build_of_rank(cls, features: int, dim: int, rank: int) -> Self:
        """The head of a rank that a config or a saved model describes; refused where covariances have none.

        Args:
            features: F, the number of features.
            dim: D, the dimensions of the embedding space.
            rank: R, the factors of a covariance.
        """
        raise ConfigError(f'rank = {rank} is for head = "low-rank", got head = "{cls.kind}"')

    @abstractmethod
    def distribution(self, features: Tensor) -> Distribution:
        """A batch of B distributions.

        Args:
            features: `(B, F)`.
        """

    def forward(self, features: Tensor) -> Distribution:
        """A batch of B distributions, after a look at the shape of what is given.

        Args:
            features: `(B, F)`.
        """
        if features.ndim != 2 or features.shape[1] != self.features:
            raise ShapeError(f"this head takes features of shape (B, {self.features}), got {tuple(features.shape)}")
        like = next(self.parameters(), features)
        return self.distribution(features.to(like.dtype))

    def _apply(self, fn: Change, recurse: bool = True) -> Self:
        return super()._apply(at_least_single(fn), recurse)  # type: ignore[no-any-return, no-untyped-call]

    def settings(self) -> dict[str, Any]:
        """The keys of [model] from which `build` makes this head again."""
        if self.kind is None:
            raise ConfigError(
                f"{type(self).__name__} has no name to be saved under: define it with one, "
                f'class {type(self).__name__}(Head, kind="...")'
            )
        rank = {} if self.rank is None else {"rank": self.rank}
        return {"head": self.kind, "dim": self.dim, "components": self.components, **rank}


@final
class PointHead(Head, kind="point"):
    """z = W h + c: an embedding without uncertainty.

    Args:
        features: F, the number of features.
        dim: D, the dimensions of the embedding space.
    """

    def __init__(self, features: int, dim: int) -> None:
        super().__init__(features, dim)
        self.mean = nn.Linear(features, dim)

    @classmethod
    def build(cls, features: int, dim: int, components: int) -> Self:
        return cls(features, dim)

    def distribution(self, features: Tensor) -> Point:
        return Point(self.mean(features))


@final
class GaussianHead(Head, kind="gaussian"):
    """μ(x) = W h + c and log σ²(x) = V h + d, 2·D outputs on shared features (section 2.2).

    Args:
        features: F, the number of features.
        dim: D, the dimensions of the embedding space.

    >>> import torch
    >>> GaussianHead(features=16, dim=2)(torch.randn(8, 16))
    Gaussian(batch=(8,), dim=2, dtype=torch.float32)
    """

    def __init__(self, features: int, dim: int) -> None:
        super().__init__(features, dim)
        self.mean = nn.Linear(features, dim)
        self.log_variance = _log_variance_branch(features, dim)

    @classmethod
    def build(cls, features: int, dim: int, components: int) -> Self:
        return cls(features, dim)

    def distribution(self, features: Tensor) -> Gaussian:
        mean, log_variance = _both(features, self.mean, self.log_variance)
        return Gaussian(mean, _variance(log_variance))


@final
class MixtureHead(Head, kind="mixture"):
    """μ(x, c) and log σ²(x, c) for C Gaussians of equal weight, a linear branch each (section 2.2).

    Args:
        features: F, the number of features.
        dim: D, the dimensions of the embedding space.
        components: C, the number of Gaussians.
    """

    has_components: ClassVar[bool] = True

    def __init__(self, features: int, dim: int, components: int) -> None:
        super().__init__(features, dim)
        if components < 1:
            raise ValueRangeError(f"a mixture has at least one component, got components={components}")
        self.components = components
        self.mean = nn.Linear(features, components * dim)
        self.log_variance = _log_variance_branch(features, components * dim)

    @classmethod
    def build(cls, features: int, dim: int, components: int) -> Self:
        return cls(features, dim, components)

    def distribution(self, features: Tensor) -> Mixture:
        shape = (-1, self.components, self.dim)
        mean, log_variance = _both(features, self.mean, self.log_variance)
        return Mixture(mean.reshape(shape), _variance(log_variance.reshape(shape)))


@final
class FullHead(Head, kind="full"):
    """μ(x) = W h + c and a covariance L Lᵀ that may turn, in up to four dimensions.

    L = diag(σ) (I + U): log σ²(x) is linear in h as in `GaussianHead`, and so is U(x), strictly lower triangular. It
    starts without U, as a diagonal Gaussian does.

    Args:
        features: F, the number of features.
        dim: D, the dimensions of the embedding space.

    >>> import torch
    >>> FullHead(features=16, dim=2)(torch.randn(8, 16)).covariances().shape
    torch.Size([8, 1, 2, 2])
    """

    most_dims: ClassVar[int | None] = MOST_FULL

    def __init__(self, features: int, dim: int) -> None:
        super().__init__(features, dim)
        if dim > MOST_FULL:
            raise ValueRangeError(
                f"a full covariance is for up to {MOST_FULL} dimensions, got dim={dim}: use LowRankHead(features, dim)"
            )
        self.mean = nn.Linear(features, dim)
        self.log_variance = _log_variance_branch(features, dim)
        self.turn = nn.Linear(features, dim * (dim - 1) // 2)
        nn.init.zeros_(self.turn.weight)
        nn.init.zeros_(self.turn.bias)

    @classmethod
    def build(cls, features: int, dim: int, components: int) -> Self:
        return cls(features, dim)

    def distribution(self, features: Tensor) -> FullGaussian:
        mean, log_variance = _both(features, self.mean, self.log_variance)
        below = torch.eye(self.dim, dtype=mean.dtype, device=mean.device).repeat(len(features), 1, 1)
        rows, columns = torch.tril_indices(self.dim, self.dim, offset=-1)
        below[:, rows, columns] = self.turn(features)
        return FullGaussian(mean, _variance(log_variance).sqrt().unsqueeze(-1) * below)


@final
class LowRankHead(Head, kind="low-rank"):
    """μ(x) = W h + c and a covariance diag v + FᵀF with R factors, in any number of dimensions.

    log v(x) is linear in h as in `GaussianHead`, and so is U(x) of F = U diag √v, `(R, D)`. U does not start at zero,
    where it would have no slope.

    Args:
        features: F, the number of features.
        dim: D, the dimensions of the embedding space.
        rank: R, the factors of a covariance.

    >>> import torch
    >>> LowRankHead(features=16, dim=8, rank=2)(torch.randn(8, 16)).factor.shape
    torch.Size([8, 2, 8])
    """

    has_rank: ClassVar[bool] = True
    rank: int

    def __init__(self, features: int, dim: int, rank: int = 1) -> None:
        super().__init__(features, dim)
        if not 1 <= rank < dim:
            raise ValueRangeError(
                f"a covariance in {dim} dimensions has at least one factor and fewer than {dim}, got rank={rank}"
            )
        self.rank = rank
        self.mean = nn.Linear(features, dim)
        self.log_variance = _log_variance_branch(features, dim)
        self.turn = nn.Linear(features, rank * dim)

    @classmethod
    def build(cls, features: int, dim: int, components: int) -> Self:
        return cls(features, dim)

    @classmethod
    def build_of_rank(cls, features: int, dim: int, rank: int) -> Self:
        return cls(features, dim, rank)

    def distribution(self, features: Tensor) -> LowRankGaussian:
        mean, log_variance = _both(features, self.mean, self.log_variance)
        variance = _variance(log_variance)
        factor = self.turn(features).reshape(len(features), self.rank, self.dim) * variance.sqrt().unsqueeze(-2)
        return LowRankGaussian(mean, variance, factor)


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
