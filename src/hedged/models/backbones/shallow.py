"""The paper's network for N-digit MNIST, and the same with one hidden layer."""

from __future__ import annotations

from typing import Annotated, Any, Literal, final

import torch
from torch import Tensor, nn

from hedged._section import Width
from hedged.errors import ShapeError, ValueRangeError
from hedged.models.backbones.backbone import Backbone
from hedged.models.config import LISTED, ModelConfig

SMALLEST = 16  # side of an image of which both layers leave something


@final
class _MaxPool2d(nn.MaxPool2d):
    """Max pooling of 2×2 pixels; where no gradient is asked for, row by row, which is ten times as fast on a CPU."""

    def forward(self, input: Tensor) -> Tensor:
        if torch.is_grad_enabled():
            return torch.nn.functional.max_pool2d(input, self.kernel_size)
        height, width = (side // 2 * 2 for side in input.shape[-2:])
        rows = torch.maximum(input[..., :height:2, :width], input[..., 1:height:2, :width])
        return torch.maximum(rows[..., ::2], rows[..., 1::2])


def _convolutions(depth: int, channels: tuple[int, int]) -> nn.Sequential:
    """Two 5×5 convolutions without padding, each followed by 2×2 max pooling and ReLU.

    ReLU and pooling commute, both being monotone; after the pooling it has a quarter of the work.
    """
    layers: list[nn.Module] = []
    for width in channels:
        layers += [nn.Conv2d(depth, width, kernel_size=5), _MaxPool2d(2), nn.ReLU()]
        depth = width
    return nn.Sequential(*layers, nn.Flatten())


def _flat_features(shape: tuple[int, ...], channels: tuple[int, int]) -> int:
    height, width = (((side - 4) // 2 - 4) // 2 for side in shape[1:])
    return channels[-1] * height * width


class _Convolutions(Backbone):
    """Two layers of convolution and pooling on images of one shape, `(B, *shape)`, in [0, 1]."""

    def __init__(self, shape: tuple[int, ...], channels: tuple[int, int], features: int | None = None) -> None:
        if len(shape) != 3 or min(shape) < 1 or min(shape[1:]) < SMALLEST or min(channels) < 1:
            raise ValueRangeError(
                f"a shallow network takes images of at least {SMALLEST} pixels a side and has channels in each layer, "
                f"got {shape=}, {channels=}"
            )
        super().__init__(shape, _flat_features(shape, channels) if features is None else features)
        self.channels = channels
        self.convolutions = _convolutions(shape[0], channels)

    def _convolve(self, images: Tensor) -> Tensor:
        if tuple(images.shape[1:]) != self.shape:
            raise ShapeError(f"this network takes images of shape {self.shape}, got {tuple(images.shape[1:])}")
        features: Tensor = self.convolutions(images)
        return features


@final
class Shallow(_Convolutions):
    """conv 5×5 – pool – conv 5×5 – pool, as drawn in the paper; the head is its fully connected layer.

    Args:
        shape: (channels, height, width) of an image.
        channels: of the first and the second convolution.
    """

    def __init__(self, shape: tuple[int, ...] = (1, 28, 56), channels: tuple[int, int] = (8, 16)) -> None:
        super().__init__(shape, channels)

    def forward(self, inputs: Tensor) -> Tensor:
        return self._convolve(inputs)

    def settings(self) -> dict[str, Any]:
        return {"backbone": "shallow", "channels": self.channels}


@final
class ShallowHidden(_Convolutions):
    """`Shallow` and one hidden layer: far fewer steps to the same accuracy.

    Args:
        shape: (channels, height, width) of an image.
        channels: of the first and the second convolution.
        hidden: units of the hidden layer, which are the features of the head.
    """

    def __init__(
        self,
        shape: tuple[int, ...] = (1, 28, 56),
        channels: tuple[int, int] = (8, 16),
        hidden: int = 512,
    ) -> None:
        super().__init__(shape, channels, hidden)
        if hidden < 1:
            raise ValueRangeError(f"a hidden layer has at least one unit, got {hidden=}")
        self.hidden = nn.Sequential(nn.Linear(_flat_features(shape, channels), hidden), nn.ReLU())

    def forward(self, inputs: Tensor) -> Tensor:
        features: Tensor = self.hidden(self._convolve(inputs))
        return features

    def settings(self) -> dict[str, Any]:
        return {"backbone": "shallow-hidden", "channels": self.channels, "hidden": self.features}


@final
class ShallowConfig(ModelConfig):
    """backbone = "shallow": the network that the paper draws.

    Args:
        channels: of the first and the second convolution.
        hidden: not used; here so that a config of "shallow-hidden" needs one change to be one of "shallow".
    """

    backbone: Literal["shallow"] = "shallow"
    channels: Annotated[tuple[Width, Width], LISTED] = (8, 16)
    hidden: Width = 512

    def build(self, shape: tuple[int, ...]) -> Shallow:
        return Shallow(shape, self.channels)


@final
class ShallowHiddenConfig(ModelConfig):
    """backbone = "shallow-hidden": the same with one hidden layer.

    Args:
        channels: of the first and the second convolution.
        hidden: units of the hidden layer.
    """

    backbone: Literal["shallow-hidden"] = "shallow-hidden"
    channels: Annotated[tuple[Width, Width], LISTED] = (8, 16)
    hidden: Width = 512

    def build(self, shape: tuple[int, ...]) -> ShallowHidden:
        return ShallowHidden(shape, self.channels, self.hidden)
