"""What an embedding is: a `Point`, a `Gaussian` with diagonal covariance, or a `Mixture` of C equal Gaussians.

All three answer the same questions for a whole batch at once: moments, samples, density, KL(p ‖ N(0, I)), and the
housekeeping of tensors (indexing, stacking, moving, packing into one tensor and back). Batch dimensions come first
and the D dimensions of the embedding space last, `(..., D)`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self, TypeVar, final

import torch
from numpy.typing import NDArray
from torch import Tensor

from hedged.errors import ShapeError, ValueRangeError


class Distribution(ABC):
    """A batch of distributions over ℝᴰ. Subclasses hold tensors whose last axis is D and are final.

    The `kind` of a distribution is the name of its class in lower case: what files and stores remember of it.
    """

    kind: ClassVar[str]
    _kinds: ClassVar[dict[str, type[Distribution]]] = {}

    def __init_subclass__(cls, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        cls.kind = cls.__name__.lower()
        Distribution._kinds[cls.kind] = cls

    @staticmethod
    def named(kind: str) -> type[Distribution]:
        """The class of a kind of distribution.

        Args:
            kind: Such as `gaussian`.

        >>> Distribution.named("gaussian").__name__
        'Gaussian'
        """
        kinds = Distribution._kinds
        if kind not in kinds:
            raise ValueRangeError(f"unknown kind of distribution {kind!r}, expected one of: {', '.join(sorted(kinds))}")
        return kinds[kind]

    @property
    @abstractmethod
    def mean(self) -> Tensor:
        """E[z], `(..., D)`."""

    @property
    @abstractmethod
    def variance(self) -> Tensor:
        """Var[z] of each coordinate, `(..., D)`; for a mixture, of the mixture as a whole."""

    @property
    @abstractmethod
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors that define the batch, as the constructor takes them."""

    @abstractmethod
    def parts(self) -> tuple[Tensor, Tensor]:
        """Means and variances of the components, each `(..., C, D)`; C = 1 unless it is a mixture."""

    @abstractmethod
    def sample(self, count: int, generator: torch.Generator | None = None) -> Tensor:
        """`count` samples of each distribution, `(count, ..., D)`, differentiable in the parameters.

        Args:
            count: How many; of a mixture, a multiple of its components.
            generator: Where they are drawn from; torch's default generator if none is given.
        """

    @abstractmethod
    def log_prob(self, z: Tensor) -> Tensor:
        """log p(z), `(...)`.

        Args:
            z: Where, broadcastable to `(..., D)`.
        """

    @abstractmethod
    def kl(self, samples: int | None = None, generator: torch.Generator | None = None) -> Tensor:
        """KL(p ‖ N(0, I)), `(...)`: in closed form, or estimated from samples; of a mixture, an upper bound.

        Args:
            samples: How many samples of each distribution to estimate it from; None: in closed form.
            generator: Where they are drawn from; torch's default generator if none is given.
        """

    @classmethod
    @abstractmethod
    def unpack(cls, packed: Tensor, dim: int) -> Self:
        """The inverse of `pack`.

        Args:
            packed: The rows, `(..., P)`.
            dim: D, the dimension of the embedding space.
        """

    def pack(self) -> Tensor:
        """All numbers of each distribution as one row, `(..., P)`, the means first: D, 2·D or 2·C·D of them."""
        rows = [t.flatten(len(self.batch_shape)) for t in self.tensors]
        return torch.cat(rows, dim=-1)

    @property
    def dim(self) -> int:
        """D, the dimension of the embedding space."""
        return int(self.tensors[0].shape[-1])

    @property
    @abstractmethod
    def batch_shape(self) -> torch.Size:
        """The dimensions in front: `(...)`."""

    @property
    def n_components(self) -> int:
        """C, how many Gaussians it is a mixture of; 1 unless it is a mixture."""
        return 1

    @property
    def is_point(self) -> bool:
        """Whether all probability is at one place."""
        return False

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of its tensors."""
        return self.tensors[0].dtype

    @property
    def device(self) -> torch.device:
        """The device of its tensors."""
        return self.tensors[0].device

    def __len__(self) -> int:
        if not self.batch_shape:
            raise TypeError(f"a single {type(self).__name__} has no len(); index or stack batches of them")
        return self.batch_shape[0]

    def __getitem__(self, index: Any) -> Self:
        """Index the batch dimensions as a tensor would be; the embedding space itself cannot be indexed.

        Args:
            index: What a tensor of the batch shape could be indexed with.
        """
        try:
            torch.zeros((), device=self.device).expand(self.batch_shape)[index]
        except IndexError as error:
            raise IndexError(f"{index!r} does not index a batch of shape {tuple(self.batch_shape)}") from error
        keys = index if isinstance(index, tuple) else (index,)
        if any(key is ... for key in keys):  # it stands for batch dimensions only
            inner = [slice(None)] * (self.tensors[0].ndim - len(self.batch_shape))
            return self._map(lambda t: t[(*keys, *inner)])
        return self._map(lambda t: t[index])

    def take(self, rows: Tensor) -> Self:
        """`z[rows]` along the first batch dimension, several times faster.

        Args:
            rows: Which ones, non-negative integers `(R,)`.
        """
        return self._map(lambda t: t.index_select(0, rows))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(batch={tuple(self.batch_shape)}, dim={self.dim}, dtype={self.dtype})"

    def to(self, target: torch.dtype | torch.device | str, dtype: torch.dtype | None = None) -> Self:
        """The same distributions in another dtype, on another device, or both: `z.to("cuda", torch.float16)`.

        Args:
            target: The dtype or the device.
            dtype: The dtype, where `target` is a device; None: as it is.
        """
        moved = self._map(lambda t: t.to(target) if dtype is None else t.to(target, dtype))  # type: ignore[arg-type]
        return type(self)(*moved.tensors) if moved.dtype != self.dtype else moved  # rounding may break a promise

    def cpu(self) -> Self:
        """The same distributions in the memory of the CPU."""
        return self.to("cpu")

    def numpy(self) -> tuple[NDArray[Any], ...]:
        """The tensors that define the batch as NumPy arrays, without gradients: `mean, variance = z.numpy()`.

        >>> mean, variance = Gaussian(torch.zeros(3, 2), torch.ones(3, 2)).numpy()
        >>> mean.shape, variance.dtype
        ((3, 2), dtype('float32'))
        """
        return tuple(t.detach().cpu().numpy() for t in self.tensors)

    def detach(self) -> Self:
        """The same distributions, cut off from what they were computed from: no gradient flows back."""
        return self._map(Tensor.detach)

    def unsqueeze(self, axis: int) -> Self:
        """The same distributions with a batch dimension of size one more, for broadcasting.

        Args:
            axis: Where it goes, zero or positive.
        """
        if not 0 <= axis <= len(self.batch_shape):
            raise ShapeError(f"axis {axis} is not one of 0 to {len(self.batch_shape)}: only batch dimensions are added")
        return self._map(lambda t: t.unsqueeze(axis))

    def _map(self, change: Callable[[Tensor], Tensor]) -> Self:
        """Apply a change of layout to every tensor; values were checked when the batch was made."""
        return self._unchecked(*(change(t) for t in self.tensors))

    @classmethod
    @abstractmethod
    def _unchecked(cls, *tensors: Tensor) -> Self: ...


AnyDistribution = TypeVar("AnyDistribution", bound=Distribution)


@final
class Point(Distribution):
    """z = μ: all probability at one place.

    Args:
        mean: μ, `(..., D)`.

    >>> Point(torch.zeros(5, 2)).variance.sum().item()
    0.0
    """

    def __init__(self, mean: Tensor) -> None:
        _require_floats("Point", mean=mean)
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
        _require_count(count, components=1)
        return self._mean.expand(count, *self._mean.shape)

    def log_prob(self, z: Tensor) -> Tensor:
        raise ValueRangeError("a Point has no density: log_prob needs a Gaussian or a Mixture")

    def kl(self, samples: int | None = None, generator: torch.Generator | None = None) -> Tensor:
        raise ValueRangeError(
            "the KL divergence of a Point to N(0, I) is infinite: train points with SoftContrastiveLoss, or set beta=0"
        )

    @classmethod
    def unpack(cls, packed: Tensor, dim: int) -> Self:
        _require_width("Point", packed, dim, multiple=1, exact=True)
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
        _require_floats("Gaussian", mean=mean, variance=variance)
        if variance.shape == (*mean.shape[:-1], 1):
            variance = variance.expand_as(mean)
        _require_variance("Gaussian", mean, variance)
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
        _require_count(count, components=1)
        noise = _noise((count, *self._mean.shape), self._mean, generator)
        return self._mean + self._variance.sqrt() * noise

    def log_prob(self, z: Tensor) -> Tensor:
        """log N(z; μ, σ²) = −½ Σ_d [(z_d − μ_d)²/σ_d² + log 2πσ_d²]."""
        terms = (z - self._mean).square() / self._variance + self._variance.log() + math.log(2 * math.pi)
        return -0.5 * terms.sum(-1)

    def kl(self, samples: int | None = None, generator: torch.Generator | None = None) -> Tensor:
        """KL(N(μ, σ²) ‖ N(0, I)) = ½ Σ_d (σ_d² + μ_d² − 1 − log σ_d²)."""
        if samples is not None:
            return _sampled_kl(self, samples, generator)
        return self.kl_per_dim().sum(-1)

    def kl_per_dim(self) -> Tensor:
        """KL(N(μ_d, σ_d²) ‖ N(0, 1)) = ½ (σ_d² + μ_d² − 1 − log σ_d²) of each dimension, `(..., D)`."""
        return 0.5 * (self._variance + self._mean.square() - 1 - self._variance.log())

    @classmethod
    def unpack(cls, packed: Tensor, dim: int) -> Self:
        _require_width("Gaussian", packed, dim, multiple=2, exact=True)
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
        _require_floats("Mixture", mean=mean, variance=variance)
        if mean.ndim < 2 or mean.shape[-2] == 0:
            raise ShapeError(
                f"Mixture takes a mean of shape (..., C, D) with C ≥ 1, got {tuple(mean.shape)}: "
                "use Gaussian(mean, variance) for a single component, or mean.unsqueeze(-2)"
            )
        _require_variance("Mixture", mean, variance)
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
        _require_count(count, self.n_components)
        drawn = self._components.sample(count // self.n_components, generator)  # (count / C, ..., C, D)
        return drawn.movedim(-2, 0).flatten(0, 1)

    def log_prob(self, z: Tensor) -> Tensor:
        each = self._components.log_prob(z.unsqueeze(-2))
        return each.logsumexp(-1) - math.log(each.shape[-1])

    def kl(self, samples: int | None = None, generator: torch.Generator | None = None) -> Tensor:
        """KL(p ‖ N(0, I)) ≤ (1/C) Σ_c KL(N_c ‖ N(0, I)), by convexity; with `samples`, a Monte Carlo estimate."""
        if samples is not None:
            return _sampled_kl(self, samples, generator)
        return self._components.kl().mean(-1)

    @classmethod
    def unpack(cls, packed: Tensor, dim: int) -> Self:
        _require_width("Mixture", packed, dim, multiple=2, exact=False)
        mean, variance = packed.reshape(*packed.shape[:-1], 2, packed.shape[-1] // (2 * dim), dim).unbind(-3)
        return cls(mean, variance)


def stack(distributions: Sequence[AnyDistribution]) -> AnyDistribution:
    """Equal batches joined along a new first batch dimension, as `torch.stack` does.

    Args:
        distributions: The batches, of one kind and shape.
    """
    return _join(torch.stack, distributions)


def concatenate(distributions: Sequence[AnyDistribution]) -> AnyDistribution:
    """Batches joined along their first dimension, as `torch.cat` does.

    Args:
        distributions: The batches, of one kind.
    """
    if any(not z.batch_shape for z in distributions):
        raise ShapeError("single distributions have no batch dimension to be joined along: use stack")
    return _join(torch.cat, distributions)


def _join(how: Callable[[list[Tensor]], Tensor], distributions: Sequence[AnyDistribution]) -> AnyDistribution:
    kinds = {type(z).__name__ for z in distributions}
    if len(kinds) != 1:
        raise ShapeError(f"one kind of distribution can be joined at a time, got {sorted(kinds) or 'none'}")
    columns = zip(*(z.tensors for z in distributions), strict=True)
    try:
        return distributions[0]._unchecked(*(how(list(column)) for column in columns))
    except RuntimeError as error:
        shapes = [tuple(z.tensors[0].shape) for z in distributions]
        raise ShapeError(f"distributions of shapes {shapes} cannot be joined: {error}") from error


def _sampled_kl(z: Distribution, samples: int, generator: torch.Generator | None) -> Tensor:
    """E_p[log p(z) − log r(z)] over samples of p, r = N(0, I)."""
    drawn = z.sample(samples, generator)
    log_r = -0.5 * (drawn.square() + math.log(2 * math.pi)).sum(-1)
    return (z.log_prob(drawn) - log_r).mean(0)


def _noise(shape: tuple[int, ...], like: Tensor, generator: torch.Generator | None) -> Tensor:
    return torch.randn(shape, dtype=like.dtype, device=like.device, generator=generator)


def _require_floats(kind: str, **tensors: Tensor) -> None:
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            given = type(tensor).__name__
            raise ShapeError(f"{kind} takes tensors, got a {given} as {name}: wrap it in torch.as_tensor(...)")
        if not tensor.is_floating_point() or tensor.ndim == 0 or tensor.shape[-1] == 0:
            raise ShapeError(
                f"{kind} takes a floating-point {name} of shape (..., D) with D ≥ 1, "
                f"got {tensor.dtype} of shape {tuple(tensor.shape)}"
            )
        if not torch.isfinite(tensor).all():
            bad = int((~torch.isfinite(tensor)).sum())
            raise ValueRangeError(
                f"the {name} of this {kind} has {bad} of {tensor.numel()} values that are NaN or infinite"
            )


def _require_variance(kind: str, mean: Tensor, variance: Tensor) -> None:
    if mean.shape != variance.shape or mean.dtype != variance.dtype:
        raise ShapeError(
            f"{kind} takes a mean and a variance of one shape and dtype, got {tuple(mean.shape)} {mean.dtype} "
            f"and {tuple(variance.shape)} {variance.dtype}: use variance.expand_as(mean) or .to(mean.dtype)"
        )
    if not (variance > 0).all():
        raise ValueRangeError(
            f"the variance of a {kind} is positive, got a smallest value of {variance.min().item():g}: "
            "use Point(mean) for certainty, or pass exp(log_variance)"
        )


def _require_count(count: int, components: int) -> None:
    if count < 1 or count % components:
        raise ValueRangeError(
            f"{count} samples cannot be shared equally by {components} component(s): "
            f"ask for a positive multiple of {components}"
        )


def _require_width(kind: str, packed: Tensor, dim: int, multiple: int, exact: bool) -> None:
    if not isinstance(packed, Tensor):
        raise ShapeError(f"{kind}.unpack takes a tensor, got a {type(packed).__name__}")
    width = packed.shape[-1] if packed.ndim else 0
    if dim < 1 or width == 0 or width % (multiple * dim) or (exact and width != multiple * dim):
        wanted = f"{multiple * dim}" if exact else f"a multiple of {multiple * dim}"
        raise ShapeError(f"a packed {kind} of dimension {dim} has rows of {wanted} numbers, got {width}")
