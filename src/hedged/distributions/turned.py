"""`FullGaussian` and `LowRankGaussian`: Gaussians whose coordinates covary, so that their ellipses may turn.

Both are held by factors of their covariances, so that no rounding makes one that is none.
"""

from __future__ import annotations

import math
from typing import Self, final

import torch
from torch import Tensor

from hedged.distributions._checks import require_count, require_floats, require_variance, require_width
from hedged.distributions._samples import noise, sampled_kl
from hedged.distributions.base import Distribution
from hedged.errors import ShapeError, ValueRangeError

MOST_FULL = 4
"""Dimensions up to which there are full covariances: their numbers grow like D², and the work like D³."""


@final
class FullGaussian(Distribution):
    """z ~ N(μ, L Lᵀ): a Gaussian of any covariance, in up to four dimensions.

    Args:
        mean: μ, `(..., D)`.
        factor: L, the Cholesky factor of the covariance, lower triangular with a positive diagonal, `(..., D, D)`.
            `FullGaussian.of(mean, covariance)` works it out.

    >>> z = FullGaussian.of(torch.zeros(2), torch.tensor([[4.0, 2.0], [2.0, 5.0]]))
    >>> z.factor
    tensor([[2., 0.],
            [1., 2.]])
    >>> z.variance
    tensor([4., 5.])
    """

    def __init__(self, mean: Tensor, factor: Tensor) -> None:
        require_floats("FullGaussian", mean=mean, factor=factor)
        _require_few(mean.shape[-1])
        _require_beside("FullGaussian", mean, factor, (*mean.shape, mean.shape[-1]), "(..., D, D)")
        if factor.triu(1).any():
            raise ValueRangeError(
                "the factor of a FullGaussian is lower triangular: pass torch.linalg.cholesky(covariance), or make it "
                "with FullGaussian.of(mean, covariance)"
            )
        _require_positive("diagonal of the factor", factor.diagonal(dim1=-2, dim2=-1))
        self._mean, self._factor = mean, factor

    @classmethod
    def of(cls, mean: Tensor, covariance: Tensor) -> Self:
        """The Gaussian of a covariance.

        Args:
            mean: μ, `(..., D)`.
            covariance: Σ, symmetric and positive definite, `(..., D, D)`.
        """
        require_floats("FullGaussian", mean=mean, covariance=covariance)
        _require_few(mean.shape[-1])
        _require_beside("FullGaussian", mean, covariance, (*mean.shape, mean.shape[-1]), "(..., D, D)")
        factor, failed = torch.linalg.cholesky_ex(covariance)
        if failed.any():
            raise ValueRangeError(
                f"the covariance of a FullGaussian is positive definite, and {int((failed > 0).sum())} of "
                f"{failed.numel()} are not: use Point(mean) for certainty, or add a small multiple of the identity"
            )
        return cls(mean, factor)

    @classmethod
    def _unchecked(cls, *tensors: Tensor) -> Self:
        gaussian = cls.__new__(cls)
        gaussian._mean, gaussian._factor = tensors
        return gaussian

    @property
    def mean(self) -> Tensor:
        return self._mean

    @property
    def factor(self) -> Tensor:
        """L, `(..., D, D)`."""
        return self._factor

    @property
    def variance(self) -> Tensor:
        return self._factor.square().sum(-1)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return self._mean, self._factor

    @property
    def batch_shape(self) -> torch.Size:
        return self._mean.shape[:-1]

    @property
    def rank(self) -> int:
        return self.dim

    def parts(self) -> tuple[Tensor, Tensor]:
        return self._mean.unsqueeze(-2), self.variance.unsqueeze(-2)

    def spreads(self) -> tuple[Tensor, Tensor]:
        return torch.zeros_like(self._mean).unsqueeze(-2), self._factor.mT.unsqueeze(-3)

    def sample(self, count: int, generator: torch.Generator | None = None) -> Tensor:
        """z = μ + L ε with ε ~ N(0, I): the reparametrisation trick."""
        require_count(count, components=1)
        drawn = noise((count, *self._mean.shape), self._mean, generator)
        return self._mean + (self._factor @ drawn.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, z: Tensor) -> Tensor:
        """log N(z; μ, LLᵀ) = −½ ‖L⁻¹(z − μ)‖² − Σ_d log L_dd − (D/2) log 2π."""
        gap = (z - self._mean).unsqueeze(-1)
        near: Tensor = torch.linalg.solve_triangular(self._factor.expand(*gap.shape[:-2], -1, -1), gap, upper=False)
        return -0.5 * near.square().sum((-1, -2)) - self._half_log_det() - 0.5 * self.dim * math.log(2 * math.pi)

    def kl(self, samples: int | None = None, generator: torch.Generator | None = None) -> Tensor:
        """KL(N(μ, LLᵀ) ‖ N(0, I)) = ½ (‖L‖² + ‖μ‖² − D) − Σ_d log L_dd."""
        if samples is not None:
            return sampled_kl(self, samples, generator)
        size = self._factor.square().sum((-1, -2)) + self._mean.square().sum(-1) - self.dim
        return 0.5 * size - self._half_log_det()

    def _half_log_det(self) -> Tensor:
        return self._factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def pack(self) -> Tensor:
        """The mean and the rows of L up to its diagonal, `(..., D + D (D + 1)/2)`."""
        rows, columns = torch.tril_indices(self.dim, self.dim)
        return torch.cat([self._mean, self._factor[..., rows, columns]], dim=-1)

    @classmethod
    def unpack(cls, packed: Tensor, dim: int) -> Self:
        _require_few(dim)
        rows, columns = torch.tril_indices(dim, dim)
        _require_row("FullGaussian", packed, dim, dim + len(rows))
        factor = packed.new_zeros((*packed.shape[:-1], dim, dim))
        factor[..., rows, columns] = packed[..., dim:]
        return cls(packed[..., :dim], factor)


@final
class LowRankGaussian(Distribution):
    """z ~ N(μ, diag v + FᵀF): a diagonal covariance and R factors, in any number of dimensions.

    Args:
        mean: μ, `(..., D)`.
        variance: v, what each coordinate has on its own, `(..., D)`. `z.variance` is more: the diagonal of the whole.
        factor: F, `(..., R, D)` with R ≥ 1: each row is a direction in which coordinates vary together.

    >>> z = LowRankGaussian(torch.zeros(2), torch.ones(2), torch.tensor([[3.0, 1.0]]))
    >>> z.covariances()
    tensor([[[10.,  3.],
             [ 3.,  2.]]])
    """

    def __init__(self, mean: Tensor, variance: Tensor, factor: Tensor) -> None:
        require_floats("LowRankGaussian", mean=mean, variance=variance, factor=factor)
        require_variance("LowRankGaussian", mean, variance)
        rank = factor.shape[-2] if factor.ndim > 1 else 0
        if not rank:
            raise ShapeError(
                f"the factor of a LowRankGaussian is of shape (..., R, D) with R ≥ 1, got {tuple(factor.shape)}: "
                "use Gaussian(mean, variance) where there is none"
            )
        _require_beside("LowRankGaussian", mean, factor, (*mean.shape[:-1], rank, mean.shape[-1]), "(..., R, D)")
        self._mean, self._own, self._factor = mean, variance, factor

    @classmethod
    def _unchecked(cls, *tensors: Tensor) -> Self:
        gaussian = cls.__new__(cls)
        gaussian._mean, gaussian._own, gaussian._factor = tensors
        return gaussian

    @property
    def mean(self) -> Tensor:
        return self._mean

    @property
    def factor(self) -> Tensor:
        """F, `(..., R, D)`."""
        return self._factor

    @property
    def variance(self) -> Tensor:
        return self._own + self._factor.square().sum(-2)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return self._mean, self._own, self._factor

    @property
    def batch_shape(self) -> torch.Size:
        return self._mean.shape[:-1]

    @property
    def rank(self) -> int:
        return self._factor.shape[-2]

    def parts(self) -> tuple[Tensor, Tensor]:
        return self._mean.unsqueeze(-2), self.variance.unsqueeze(-2)

    def spreads(self) -> tuple[Tensor, Tensor]:
        return self._own.unsqueeze(-2), self._factor.unsqueeze(-3)

    def sample(self, count: int, generator: torch.Generator | None = None) -> Tensor:
        """z = μ + √v ε + Fᵀ ε′ with ε, ε′ ~ N(0, I): the reparametrisation trick."""
        require_count(count, components=1)
        own = noise((count, *self._mean.shape), self._mean, generator)
        shared = noise((count, *self._factor.shape[:-1], 1), self._mean, generator)
        return self._mean + self._own.sqrt() * own + (self._factor.mT @ shared).squeeze(-1)

    def log_prob(self, z: Tensor) -> Tensor:
        """log N(z; μ, Σ), with Σ⁻¹ and |Σ| by way of K = I + F diag(1/v) Fᵀ, which is R × R (Woodbury)."""
        gap = z - self._mean
        root, half_log_det = self._small()
        pull = (self._factor @ (gap / self._own).unsqueeze(-1)).expand(*gap.shape[:-1], -1, -1)
        known: Tensor = torch.linalg.solve_triangular(root.expand(*gap.shape[:-1], -1, -1), pull, upper=False)
        square = (gap.square() / self._own).sum(-1) - known.square().sum((-1, -2))
        return -0.5 * square - half_log_det - 0.5 * self.dim * math.log(2 * math.pi)

    def kl(self, samples: int | None = None, generator: torch.Generator | None = None) -> Tensor:
        """KL(N(μ, Σ) ‖ N(0, I)) = ½ (tr Σ + ‖μ‖² − D − log |Σ|)."""
        if samples is not None:
            return sampled_kl(self, samples, generator)
        return 0.5 * (self.variance + self._mean.square() - 1).sum(-1) - self._small()[1]

    def _small(self) -> tuple[Tensor, Tensor]:
        """The Cholesky factor of K = I + F diag(1/v) Fᵀ, `(..., R, R)`, and ½ log |Σ| = ½ Σ_d log v_d + ½ log |K|."""
        weighed = self._factor / self._own.unsqueeze(-2)
        unit = torch.eye(self.rank, dtype=self.dtype, device=self.device)
        root = torch.linalg.cholesky(unit + weighed @ self._factor.mT)
        return root, 0.5 * self._own.log().sum(-1) + root.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    @classmethod
    def unpack(cls, packed: Tensor, dim: int) -> Self:
        require_width("LowRankGaussian", packed, dim, multiple=1, exact=False)
        rank = packed.shape[-1] // dim - 2
        if rank < 1:
            raise ShapeError(
                f"a packed LowRankGaussian of dimension {dim} has rows of at least {3 * dim} numbers, "
                f"got {packed.shape[-1]}"
            )
        factor = packed[..., 2 * dim :].reshape(*packed.shape[:-1], rank, dim)
        return cls(packed[..., :dim], packed[..., dim : 2 * dim], factor)


def _require_few(dim: int) -> None:
    if dim > MOST_FULL:
        raise ShapeError(
            f"a FullGaussian has at most {MOST_FULL} dimensions, got {dim}: use "
            "LowRankGaussian(mean, variance, factor), whose numbers do not grow with the square of them"
        )


def _require_beside(kind: str, mean: Tensor, tensor: Tensor, shape: tuple[int, ...], wanted: str) -> None:
    if tuple(tensor.shape) != tuple(shape) or tensor.dtype != mean.dtype:
        raise ShapeError(
            f"a {kind} with a mean of shape {tuple(mean.shape)} and {mean.dtype} takes {wanted} = {tuple(shape)} of "
            f"the same dtype beside it, got {tuple(tensor.shape)} and {tensor.dtype}"
        )


def _require_positive(name: str, values: Tensor) -> None:
    if not (values > 0).all():
        raise ValueRangeError(
            f"the {name} of a FullGaussian is positive, got a smallest value of {values.min().item():g}: "
            "use Point(mean) for certainty"
        )


def _require_row(kind: str, packed: Tensor, dim: int, width: int) -> None:
    if not isinstance(packed, Tensor) or dim < 1 or packed.ndim == 0 or packed.shape[-1] != width:
        got = tuple(packed.shape) if isinstance(packed, Tensor) else type(packed).__name__
        raise ShapeError(f"a packed {kind} of dimension {dim} has rows of {width} numbers, got {got}")
