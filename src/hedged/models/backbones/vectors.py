"""Backbones for vectors that another model made: all that is left to do is to bring them to one scale."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, final

import torch
from torch import Tensor, nn

from hedged._section import Width
from hedged.errors import ShapeError, ValueRangeError
from hedged.models.backbones.backbone import Backbone
from hedged.models.config import ModelConfig

FLAT = 1e-6  # a feature whose deviation is less than this share of the largest says nothing


class _Standardized(Backbone):
    """x ↦ (x − m) / s feature by feature, with m and s of the training vectors: not learned, but saved."""

    standardises: ClassVar[bool] = True
    mean: Tensor
    deviation: Tensor

    def __init__(self, size: int, features: int) -> None:
        if size < 1:
            raise ValueRangeError(f"a vector has at least one feature, got {size}")
        super().__init__((size,), features)
        self.size = size
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("deviation", torch.ones(size))

    @torch.no_grad()
    def fit(self, inputs: Tensor) -> None:
        """Take m and s from training vectors; a feature that is the same in all of them is left as it is.

        Args:
            inputs: `(n, F)`, two or more.
        """
        if inputs.ndim != 2 or inputs.shape[1] != self.size or len(inputs) < 2:
            raise ShapeError(
                f"mean and deviation are of two vectors or more, (n, {self.size}), got {tuple(inputs.shape)}"
            )
        deviation, mean = torch.std_mean(inputs.double(), dim=0, correction=0)
        flat = deviation <= FLAT * deviation.max()
        self.mean.copy_(mean)
        self.deviation.copy_(torch.where(flat, 1.0, deviation))

    def _standardize(self, vectors: Tensor) -> Tensor:
        if vectors.ndim != 2 or vectors.shape[1] != self.size:
            raise ShapeError(f"this network takes vectors of shape (B, {self.size}), got {tuple(vectors.shape)}")
        return (vectors - self.mean) / self.deviation


@final
class Standardize(_Standardized):
    """x ↦ (x − m) / s: vectors `(B, F)` of any model, feature by feature. The head is all that is trained.

    Args:
        size: F, the length of a vector.

    >>> backbone = Standardize(size=2)
    >>> backbone.fit(torch.tensor([[0.0, 10.0], [2.0, 30.0]]))
    >>> backbone(torch.tensor([[1.0, 30.0]]))
    tensor([[0., 1.]])
    """

    def __init__(self, size: int) -> None:
        super().__init__(size, features=size)

    def forward(self, inputs: Tensor) -> Tensor:
        return self._standardize(inputs)

    def settings(self) -> dict[str, Any]:
        return {"backbone": "frozen"}


@final
class StandardizeHidden(_Standardized):
    """`Standardize` and one hidden layer, for a variance that is no linear function of the features.

    Args:
        size: F, the length of a vector.
        hidden: units of the hidden layer, which are the features of the head.
    """

    def __init__(self, size: int, hidden: int = 512) -> None:
        super().__init__(size, features=hidden)
        if hidden < 1:
            raise ValueRangeError(f"a hidden layer has at least one unit, got {hidden=}")
        self.hidden = nn.Sequential(nn.Linear(size, hidden), nn.ReLU())

    def forward(self, inputs: Tensor) -> Tensor:
        features: Tensor = self.hidden(self._standardize(inputs))
        return features

    def settings(self) -> dict[str, Any]:
        return {"backbone": "frozen-hidden", "hidden": self.features}


@final
class FrozenConfig(ModelConfig):
    """backbone = "frozen": vectors of a model that is not trained any more, standardized."""

    takes: ClassVar[Literal["vectors"]] = "vectors"
    backbone: Literal["frozen"] = "frozen"

    def build(self, shape: tuple[int, ...]) -> Standardize:
        return Standardize(shape[0])


@final
class FrozenHiddenConfig(ModelConfig):
    """backbone = "frozen-hidden": the same with one hidden layer.

    Args:
        hidden: units of the hidden layer.
    """

    takes: ClassVar[Literal["vectors"]] = "vectors"
    backbone: Literal["frozen-hidden"] = "frozen-hidden"
    hidden: Width = 512

    def build(self, shape: tuple[int, ...]) -> StandardizeHidden:
        return StandardizeHidden(shape[0], self.hidden)
