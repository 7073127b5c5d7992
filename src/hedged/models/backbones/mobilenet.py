"""MobileNet v1 (Howard et al. 2017) with a width multiplier: the paper's network for photos of pets, at width 0.25."""

from __future__ import annotations

from typing import Annotated, Any, Literal, final

import torch
from pydantic import Field
from torch import Tensor, nn

from hedged.errors import ShapeError, ValueRangeError
from hedged.models.backbones.backbone import Backbone
from hedged.models.config import ModelConfig

STEM = 32  # channels of the first convolution, at width 1
BLOCKS = (  # channels at width 1 and stride of the depthwise separable convolutions
    (64, 1),
    (128, 2),
    (128, 1),
    (256, 2),
    (256, 1),
    (512, 2),
    *((512, 1),) * 5,
    (1024, 2),
    (1024, 1),
)
SMALLEST = 32  # side of an image of which the five strides leave a pixel
MIDDLE, SPREAD = 0.5, 0.25  # pixels in [0, 1] are brought to about zero mean and unit variance


@final
class MobileNet(Backbone):
    """Images `(B, 3, H, W)` in [0, 1] to features `(B, 1024·width)`: 13 depthwise separable convolutions, then a mean.

    Args:
        shape: (channels, height, width) of an image.
        width: of all layers, as a share of the full network's.

    >>> network = MobileNet(width=0.25)
    >>> network.features, sum(p.numel() for p in network.parameters())
    (256, 213072)
    """

    def __init__(self, shape: tuple[int, ...] = (3, 96, 96), width: float = 0.25) -> None:
        if len(shape) != 3 or shape[0] < 1 or min(shape[1:]) < SMALLEST or not 1 / STEM <= width <= 4:
            raise ValueRangeError(
                f"a MobileNet takes images of at least {SMALLEST} pixels a side and has a width from 1/{STEM} to 4, "
                f"got {shape=}, {width=}"
            )
        super().__init__(shape, features=int(BLOCKS[-1][0] * width))
        self.width = width
        depth = int(STEM * width)
        layers = [_layer(shape[0], depth, kernel=3, stride=2)]
        for channels, stride in BLOCKS:
            wider = int(channels * width)
            layers += [_layer(depth, depth, kernel=3, stride=stride, groups=depth), _layer(depth, wider, kernel=1)]
            depth = wider
        self.layers = nn.Sequential(*layers)

    def forward(self, inputs: Tensor) -> Tensor:
        if tuple(inputs.shape[1:]) != self.shape:
            raise ShapeError(f"this network takes images of shape {self.shape}, got {tuple(inputs.shape[1:])}")
        pixels: Tensor = self.layers((inputs - MIDDLE) / SPREAD)
        return torch.flatten(pixels, 2).mean(-1)

    def settings(self) -> dict[str, Any]:
        return {"backbone": "mobilenet", "width": self.width}


def _layer(depth: int, channels: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    """Convolution, batch normalisation (which has the bias) and ReLU."""
    convolution = nn.Conv2d(depth, channels, kernel, stride, padding=kernel // 2, groups=groups, bias=False)
    nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
    return nn.Sequential(convolution, nn.BatchNorm2d(channels), nn.ReLU(inplace=True))


@final
class MobileNetConfig(ModelConfig):
    """backbone = "mobilenet": the paper's network for photos.

    Args:
        width: of all layers, as a share of the full network's.
    """

    backbone: Literal["mobilenet"] = "mobilenet"
    width: Annotated[float, Field(gt=0)] = 0.25

    def build(self, shape: tuple[int, ...]) -> MobileNet:
        return MobileNet(shape, self.width)
