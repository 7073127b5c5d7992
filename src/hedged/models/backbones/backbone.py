"""What a backbone is: inputs to features, and the keys of a config that describe it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from torch import Tensor, nn


class Backbone(nn.Module, ABC):
    """Inputs `(B, *shape)` to features `(B, F)`.

    Args:
        shape: of one input: (channels, height, width) of an image, (length,) of a vector; () if it is not known.
        features: F, the number of features.
    """

    def __init__(self, shape: tuple[int, ...], features: int) -> None:
        super().__init__()
        self.shape, self.features = shape, features

    @abstractmethod
    def forward(self, inputs: Tensor) -> Tensor:
        """Features `(B, F)`.

        Args:
            inputs: `(B, *shape)`; images in [0, 1].
        """

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """The keys of [model] that describe this backbone, its name among them."""
