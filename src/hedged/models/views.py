"""What a model looks at when it embeds an input: the input alone, or several views of it, such as its mirror image.

Views are for test time. Training sees one view of each input, and so does `Embedder.forward`; `Embedder.embed` looks at
all of them and gives one distribution for what is known from them together.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any, ClassVar, final

import torch
from torch import Tensor

from hedged.distributions import AnyDistribution, Gaussian, Mixture, Point
from hedged.errors import ShapeError, ValueRangeError


class Views(ABC):
    """Which views of an input `Embedder.embed` looks at, and what it makes of them.

    A subclass is defined with the name under which it is saved: `class MyViews(Views, kind="mine")`.
    """

    kinds: ClassVar[dict[str, type[Views]]] = {}  # by name; filled as they are defined
    kind: ClassVar[str]

    def __init_subclass__(cls, kind: str, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.kind = kind
        Views.kinds[kind] = cls

    @abstractmethod
    def of(self, inputs: Tensor) -> list[Tensor]:
        """The views of a batch of inputs, each a batch of the same size.

        Args:
            inputs: `(B, ...)`.
        """

    @abstractmethod
    def join(self, views: Sequence[AnyDistribution]) -> AnyDistribution:
        """One distribution for each input.

        Args:
            views: the distributions of the views, in the order of `of`.
        """

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """The arguments that make it again, as plain numbers."""

    def describe(self) -> dict[str, Any]:
        """What a saved model keeps of it: the kind and its settings."""
        return {"kind": self.kind, **self.settings()}

    @staticmethod
    def restore(described: Mapping[str, Any]) -> Views:
        """The views that `describe` described.

        Args:
            described: the kind and its settings.

        >>> Views.restore({"kind": "mirrored", "disagreement": 0.25})
        Mirrored(disagreement=0.25)
        """
        settings = dict(described) if isinstance(described, Mapping) else {"kind": described}
        kind = settings.pop("kind", None)
        if not isinstance(kind, str) or kind not in Views.kinds:
            raise ValueRangeError(f"views are one of {', '.join(Views.kinds)}, got {kind!r}")
        known = signature(Views.kinds[kind]).parameters.keys()
        if not settings.keys() <= known:
            raise ValueRangeError(f"{kind} views have the settings {', '.join(known) or 'none'}, got {settings}")
        return Views.kinds[kind](**settings)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Views) and self.describe() == other.describe()

    def __hash__(self) -> int:
        return hash(tuple(self.describe().items()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in self.settings().items())})"


@final
class OneView(Views, kind="one"):
    """The input as it is: `Embedder.embed` gives what `Embedder.forward` gives."""

    def of(self, inputs: Tensor) -> list[Tensor]:
        return [inputs]

    def join(self, views: Sequence[AnyDistribution]) -> AnyDistribution:
        return views[0]

    def settings(self) -> dict[str, Any]:
        return {}


@final
class Mirrored(Views, kind="mirrored"):
    """An image and its mirror image: for images that show the same identity either way round, at twice the cost.

    Args:
        disagreement: the share of the variance between the two means that counts as variance of a Gaussian embedding;
            1 matches the moments of both together. See `blend`. None: what the two tell of an identity adds up,
            as that of posteriors does (`add_evidence`).

    >>> Mirrored(disagreement=0.25)
    Mirrored(disagreement=0.25)
    """

    def __init__(self, disagreement: float | None = 1.0) -> None:
        is_number = isinstance(disagreement, int | float)
        if disagreement is not None and not (is_number and 0 <= disagreement < math.inf):
            raise ValueRangeError(f"a share of the disagreement is at least 0, such as 1.0, got {disagreement!r}")
        self.disagreement = None if disagreement is None else float(disagreement)

    def of(self, inputs: Tensor) -> list[Tensor]:
        if inputs.ndim != 4:
            raise ShapeError(f"images (B, C, H, W) have mirror images, got inputs of shape {tuple(inputs.shape)}")
        return [inputs, inputs.flip(-1)]

    def join(self, views: Sequence[AnyDistribution]) -> AnyDistribution:
        return add_evidence(views) if self.disagreement is None else blend(views, self.disagreement)

    def settings(self) -> dict[str, Any]:
        return {"disagreement": self.disagreement}


def blend(views: Sequence[AnyDistribution], disagreement: float = 1.0) -> AnyDistribution:
    """One distribution for V views of the same inputs, of the kind that theirs are.

    A Gaussian has the mean of the means, m = (1/V) Σ_v m_v, and the variance (1/V) Σ_v (s_v + d (m_v − m)²), so that an
    input whose views disagree is uncertain; with d = 1 these are mean and variance of the mixture of the views. For
    mixtures it is that mixture, (1/V) Σ_v p_v(z), whatever d is. For points, which have no variance, it is their mean.

    Args:
        views: V batches of distributions of one kind.
        disagreement: d, the share of the variance between the views that counts.

    >>> here, there = torch.tensor([[0.0]]), torch.tensor([[2.0]])
    >>> z = blend([Gaussian(here, torch.ones(1, 1)), Gaussian(there, torch.ones(1, 1))], disagreement=0.25)
    >>> z.mean, z.variance
    (tensor([[1.]]), tensor([[1.2500]]))
    """
    if not all(z.is_diagonal for z in views):
        raise ShapeError(f"views of diagonal covariances are joined, got {views[0]!r}: use OneView()")
    means, variances = (torch.cat(part, -2) for part in zip(*(z.parts() for z in views), strict=True))  # (..., V·C, D)
    between = means.var(-2, correction=0)
    tensors = {
        Point: (means.mean(-2),),
        Gaussian: (means.mean(-2), variances.mean(-2) + disagreement * between),
        Mixture: (means, variances),
    }
    kind = type(views[0])
    return kind._unchecked(*tensors[kind])


def add_evidence(views: Sequence[AnyDistribution]) -> AnyDistribution:
    """What V views tell of one identity z ~ N(0, I) together, as `Evidence.fuse` has it.

    Of Gaussians, 1/s − 1 = Σ_v (1/s_v − 1) and m/s = Σ_v m_v/s_v: evidence adds up, and the surer a view is, the more
    it counts. All else is as in `blend`.

    Args:
        views: V batches of distributions of one kind; Gaussians no wider than the prior.

    >>> here, there = torch.tensor([[0.0]]), torch.tensor([[2.0]])
    >>> z = add_evidence([Gaussian(here, torch.full((1, 1), 0.5)), Gaussian(there, torch.full((1, 1), 0.5))])
    >>> z.mean, z.variance
    (tensor([[1.3333]]), tensor([[0.3333]]))
    """
    kind = type(views[0])
    if kind is not Gaussian:
        return blend(views)
    variance = 1 / (1 + torch.stack([1 / z.variance - 1 for z in views]).sum(0))
    return kind._unchecked(variance * torch.stack([z.mean / z.variance for z in views]).sum(0), variance)
