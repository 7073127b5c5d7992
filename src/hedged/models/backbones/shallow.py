"""The paper's network for N-digit MNIST, and the same with one hidden layer."""

from __future__ import annotations

from typing import final

from torch import Tensor, nn

from hedged.errors import ShapeError, ValueRangeError
from hedged.models.backbones.fused import convolve, is_fused

SMALLEST = 16  # side of an image of which both layers leave something


def _convolutions(depth: int, channels: tuple[int, int]) -> nn.Sequential:
    """Two 5×5 convolutions without padding, each followed by 2×2 max pooling and ReLU.

    ReLU and pooling commute, both being monotone; after the pooling it has a quarter of the work.
    """
    layers: list[nn.Module] = []
    for width in channels:
        layers += [nn.Conv2d(depth, width, kernel_size=5), nn.MaxPool2d(2), nn.ReLU()]
        depth = width
    return nn.Sequential(*layers, nn.Flatten())


def _flat_features(shape: tuple[int, int, int], channels: tuple[int, int]) -> int:
    height, width = (((side - 4) // 2 - 4) // 2 for side in shape[1:])
    return channels[-1] * height * width


class _Images(nn.Module):
    """Anything that takes a batch of images of one shape, `(B, *shape)`, in [0, 1]."""

    def __init__(self, shape: tuple[int, int, int], channels: tuple[int, int]) -> None:
        super().__init__()
        if min(shape) < 1 or min(shape[1:]) < SMALLEST or min(channels) < 1:
            raise ValueRangeError(
                f"a shallow network takes images of at least {SMALLEST} pixels a side and has channels in each layer, "
                f"got {shape=}, {channels=}"
            )
        self.shape, self.channels = shape, channels
        self.convolutions = _convolutions(shape[0], channels)

    def _convolve(self, images: Tensor) -> Tensor:
        if tuple(images.shape[1:]) != self.shape:
            raise ShapeError(f"this network takes images of shape {self.shape}, got {tuple(images.shape[1:])}")
        layers = [layer for layer in self.convolutions if isinstance(layer, nn.Conv2d)]
        if is_fused(images, layers):
            return convolve(images, layers)
        features: Tensor = self.convolutions(images)
        return features


@final
class Shallow(_Images):
    """conv 5×5 – pool – conv 5×5 – pool, as drawn in the paper; the head is its fully connected layer."""

    def __init__(self, shape: tuple[int, int, int] = (1, 28, 56), channels: tuple[int, int] = (8, 16)) -> None:
        super().__init__(shape, channels)
        self.features = _flat_features(shape, channels)

    def forward(self, images: Tensor) -> Tensor:
        return self._convolve(images)


@final
class ShallowHidden(_Images):
    """`Shallow` and one hidden layer of `hidden` units: far fewer steps to the same accuracy."""

    def __init__(
        self,
        shape: tuple[int, int, int] = (1, 28, 56),
        channels: tuple[int, int] = (8, 16),
        hidden: int = 512,
    ) -> None:
        super().__init__(shape, channels)
        if hidden < 1:
            raise ValueRangeError(f"a hidden layer has at least one unit, got {hidden=}")
        self.features = hidden
        self.hidden = nn.Sequential(nn.Linear(_flat_features(shape, channels), hidden), nn.ReLU())

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.hidden(self._convolve(images))
        return features
