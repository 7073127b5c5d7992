"""Backbones for vectors that another model made: what is left to do is to bring them to one scale."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor, nn

from hedged.errors import ShapeError, ValueRangeError

FLAT = 1e-6  # a feature whose deviation is less than this share of the largest says nothing


class _Standardised(nn.Module):
    """x ↦ (x − m) / s feature by feature, with m and s of the training features: not learned, but saved."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        if size < 1:
            raise ValueRangeError(f"a vector has at least one feature, got {size}")
        self.size = size
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("deviation", torch.ones(size))

    @torch.no_grad()
    def fit(self, vectors: Tensor) -> None:
        """Take m and s from vectors `(n, F)`; a feature that is the same in all of them is left as it is."""
        if vectors.ndim != 2 or vectors.shape[1] != self.size or len(vectors) < 2:
            raise ShapeError(
                f"mean and deviation are of two vectors or more, (n, {self.size}), got {tuple(vectors.shape)}"
            )
        deviation, mean = torch.std_mean(vectors.double(), dim=0, correction=0)
        flat = deviation <= FLAT * deviation.max()
        self.mean.copy_(mean)
        self.deviation.copy_(torch.where(flat, 1.0, deviation))

    def _standardise(self, vectors: Tensor) -> Tensor:
        if vectors.ndim != 2 or vectors.shape[1] != self.size:
            raise ShapeError(f"this network takes vectors of shape (B, {self.size}), got {tuple(vectors.shape)}")
        return (vectors - self.mean) / self.deviation


@final
class Frozen(_Standardised):
    """Vectors `(B, F)` of any model, standardised: the head is all that is trained.

    >>> backbone = Frozen(size=2)
    >>> backbone.fit(torch.tensor([[0.0, 10.0], [2.0, 30.0]]))
    >>> backbone(torch.tensor([[1.0, 30.0]]))
    tensor([[0., 1.]])
    """

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.features = size

    def forward(self, vectors: Tensor) -> Tensor:
        return self._standardise(vectors)


@final
class FrozenHidden(_Standardised):
    """`Frozen` and one hidden layer of `hidden` units, for a variance that is no linear function of the features."""

    def __init__(self, size: int, hidden: int = 512) -> None:
        super().__init__(size)
        if hidden < 1:
            raise ValueRangeError(f"a hidden layer has at least one unit, got {hidden=}")
        self.features = hidden
        self.hidden = nn.Sequential(nn.Linear(size, hidden), nn.ReLU())

    def forward(self, vectors: Tensor) -> Tensor:
        features: Tensor = self.hidden(self._standardise(vectors))
        return features
