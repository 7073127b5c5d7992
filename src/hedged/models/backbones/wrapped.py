"""Networks that were written elsewhere: any module of the user's, and those of timm."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any, final

import torch
from torch import Tensor, nn

from hedged.errors import ConfigError, MissingDependencyError, ShapeError


@final
class Wrapped(nn.Module):
    """A module that turns inputs `(B, *shape)` into features `(B, F)`; F is found by trying it on blank inputs.

    >>> backbone = Wrapped(nn.Sequential(nn.Flatten(), nn.Linear(12, 5)), shape=(3, 2, 2))
    >>> backbone.features, backbone(torch.rand(4, 3, 2, 2)).shape
    (5, torch.Size([4, 5]))
    """

    def __init__(self, module: nn.Module, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.module, self.shape = module, shape
        self.features = self._try()

    def forward(self, inputs: Tensor) -> Tensor:
        if tuple(inputs.shape[1:]) != self.shape:
            raise ShapeError(f"this network takes inputs of shape {self.shape}, got {tuple(inputs.shape[1:])}")
        features: Tensor = self.module(inputs)
        return features

    @torch.no_grad()
    def _try(self) -> int:
        """The width of what the module returns for two blank inputs; its mode and statistics stay as they are."""
        modes = [(part, part.training) for part in self.module.modules()]
        try:
            found: Any = self.module.eval()(torch.zeros(2, *self.shape))
        except (RuntimeError, AssertionError, ValueError, TypeError) as error:
            raise ShapeError(f"this module does not take inputs of shape (B, {self._words}): {error}") from error
        finally:
            for part, mode in modes:
                part.training = mode
        given = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        if not isinstance(found, Tensor) or found.ndim != 2 or len(found) != 2:
            raise ShapeError(
                f"a backbone returns features (B, F), this module gives {given} for 2 inputs of shape ({self._words}): "
                "add pooling and nn.Flatten() to its end"
            )
        return found.shape[1]

    @property
    def _words(self) -> str:
        return ", ".join(map(str, self.shape))


@final
class _Normalised(nn.Module):
    """Pixels in [0, 1] brought to the mean and deviation that a network was trained with."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, network: nn.Module, mean: Sequence[float], deviation: Sequence[float]) -> None:
        super().__init__()
        self.network = network
        for name, values in (("mean", mean), ("deviation", deviation)):
            self.register_buffer(name, torch.tensor(values).view(-1, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.network((images - self.mean) / self.deviation)
        return features


def timm_backbone(name: str, shape: tuple[int, ...], pretrained: bool) -> Wrapped:
    """The network that timm has under this name, without its classifier; `pretrained` fetches its weights."""
    timm = _timm()
    if not timm.is_model(name):
        near = difflib.get_close_matches(name, timm.list_models(), n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else "timm.list_models() lists them"
        raise ConfigError(f"timm has no model {name!r} (model.name): {hint}")
    network = timm.create_model(name, pretrained=pretrained, num_classes=0, in_chans=shape[0])
    pixels = timm.data.resolve_model_data_config(network)
    if len(pixels["mean"]) != shape[0]:  # of colours, where the images are grey
        pixels = {key: (sum(pixels[key]) / len(pixels[key]),) for key in ("mean", "std")}
    return Wrapped(_Normalised(network, pixels["mean"], pixels["std"]), shape)


def _timm() -> Any:
    try:
        import timm  # type: ignore[import-not-found,unused-ignore]
    except (ImportError, RuntimeError) as error:  # torchvision of another build than torch is a RuntimeError
        raise MissingDependencyError(
            f'backbone = "timm" needs timm and torchvision, of which one is missing or broken ({error}): '
            "pip install 'hedged[timm]', or use backbone = \"mobilenet\""
        ) from error
    return timm
