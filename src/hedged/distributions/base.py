"""`Distribution`: what all embeddings answer, and how batches of them are joined."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self, TypeVar

import torch
from numpy.typing import NDArray
from torch import Tensor

from hedged.errors import ShapeError, ValueRangeError


class Distribution(ABC):
    """A batch of distributions over ℝᴰ. Subclasses hold tensors whose last axis is D, means first, and are final.

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
        """Means and variances of the components, each `(..., C, D)`; C = 1 unless it is a mixture.

        Where covariances are not diagonal, these are their diagonals.
        """

    def spreads(self) -> tuple[Tensor, Tensor]:
        """v and F of the covariances diag v + FᵀF of the components, `(..., C, D)` and `(..., C, R, D)`.

        R = 0 where covariances are diagonal.
        """
        variance = self.parts()[1]
        return variance, variance.new_zeros((*variance.shape[:-1], 0, variance.shape[-1]))

    def covariances(self) -> Tensor:
        """The covariances of the components, `(..., C, D, D)`."""
        diagonal, factor = self.spreads()
        return diagonal.diag_embed() + factor.mT @ factor

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
        """All numbers of each distribution as one row, `(..., P)`, the means first: of a Gaussian, 2·D of them."""
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
    def rank(self) -> int:
        """R, how many factors turn the covariances away from the axes (`spreads`); 0 where they are diagonal."""
        return 0

    @property
    def is_diagonal(self) -> bool:
        """Whether coordinates do not covary."""
        return self.rank == 0

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
            rank = len(self.batch_shape)
            return self._map(lambda t: t[(*keys, *[slice(None)] * (t.ndim - rank))])
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

        NumPy has no bfloat16, which becomes float32.

        >>> from hedged import Gaussian
        >>> mean, variance = Gaussian(torch.zeros(3, 2), torch.ones(3, 2)).numpy()
        >>> mean.shape, variance.dtype
        ((3, 2), dtype('float32'))
        """
        tensors = (t.detach().cpu() for t in self.tensors)
        return tuple((t.float() if t.dtype == torch.bfloat16 else t).numpy() for t in tensors)

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
"""Any kind of distribution: what goes in is what comes out."""


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
