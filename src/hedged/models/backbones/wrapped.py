"""Networks that were written elsewhere: any module of the user's, and those of timm."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, final

import torch
from torch import Tensor, nn

from hedged._section import Width
from hedged._startup import load_the_rest
from hedged.errors import ConfigError, MissingDependencyError, ShapeError
from hedged.models.backbones.backbone import Backbone
from hedged.models.config import OWN_NETWORK, ModelConfig


@final
class Wrapped(Backbone):
    """A module of any kind as a backbone: inputs `(B, *shape)` to features `(B, F)`.

    Args:
        module: the network, which returns features `(B, F)`.
        shape: of one input; the module is tried on two blank ones. () if it is not known: inputs are then passed on as
            they are.
        features: F; None to find it by trying the module, which takes a shape.
        settings: the keys of [model] that describe the module; None for a network of the user's own.

    >>> backbone = Wrapped(nn.Sequential(nn.Flatten(), nn.Linear(12, 5)), shape=(3, 2, 2))
    >>> backbone.features, backbone(torch.rand(4, 3, 2, 2)).shape
    (5, torch.Size([4, 5]))
    """

    def __init__(
        self,
        module: nn.Module,
        shape: tuple[int, ...],
        features: int | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        found = _width(module, shape) if shape else features
        if found is None:
            raise ShapeError("it is not known how many features this module returns: give the shape of its inputs")
        if features not in (None, found):
            raise ShapeError(f"this module returns {found} features, and its head takes {features}: make them equal")
        super().__init__(shape, found)
        self.module = module
        own = {"backbone": "module"} if shape else {"backbone": "module", "features": found}
        self._settings = own if settings is None else dict(settings)

    def forward(self, inputs: Tensor) -> Tensor:
        if self.shape and tuple(inputs.shape[1:]) != self.shape:
            raise ShapeError(f"this network takes inputs of shape {self.shape}, got {tuple(inputs.shape[1:])}")
        features: Tensor = self.module(inputs)
        return features

    def settings(self) -> dict[str, Any]:
        return dict(self._settings)


@torch.no_grad()
def _width(module: nn.Module, shape: tuple[int, ...]) -> int:
    """The width of what a module returns for two blank inputs; its mode and statistics stay as they are."""
    modes = [(part, part.training) for part in module.modules()]
    words = ", ".join(map(str, shape))
    like = next(module.parameters(), torch.zeros(0))
    try:
        found: Any = module.eval()(torch.zeros(2, *shape, device=like.device))
    except (RuntimeError, AssertionError, ValueError, TypeError) as error:
        raise ShapeError(f"this module does not take inputs of shape (B, {words}): {error}") from error
    finally:
        for part, mode in modes:
            part.training = mode
    given = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
    if not isinstance(found, Tensor) or found.ndim != 2 or len(found) != 2:
        raise ShapeError(
            f"a backbone returns features (B, F), this module gives {given} for 2 inputs of shape ({words}): "
            "add pooling and nn.Flatten() to its end"
        )
    return found.shape[1]


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
    """The network that timm has under a name, without its classifier.

    Args:
        name: as `timm.list_models()` has it.
        shape: (channels, height, width) of an image.
        pretrained: whether to fetch the weights that timm has for it.
    """
    timm = _timm()
    if not timm.is_model(name):
        near = difflib.get_close_matches(name, timm.list_models(), n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else "timm.list_models() lists them"
        raise ConfigError(f"timm has no model {name!r} (model.name): {hint}")
    network = timm.create_model(name, pretrained=pretrained, num_classes=0, in_chans=shape[0])
    pixels = timm.data.resolve_model_data_config(network)
    if len(pixels["mean"]) != shape[0]:  # of colours, where the images are grey
        pixels = {key: (sum(pixels[key]) / len(pixels[key]),) for key in ("mean", "std")}
    settings = {"backbone": "timm", "name": name, "pretrained": pretrained}
    return Wrapped(_Normalised(network, pixels["mean"], pixels["std"]), shape, settings=settings)


def _timm() -> Any:
    load_the_rest()  # networks of others may trace
    try:
        import timm  # type: ignore[import-not-found,unused-ignore]
    except (ImportError, RuntimeError) as error:  # torchvision of another build than torch is a RuntimeError
        raise MissingDependencyError(
            f'backbone = "timm" needs timm and torchvision, of which one is missing or broken ({error}): '
            "pip install 'hedged[timm]', or use backbone = \"mobilenet\""
        ) from error
    return timm


@final
class TimmConfig(ModelConfig):
    """backbone = "timm": a network of timm, without its classifier.

    Args:
        name: as `timm.list_models()` has it.
        pretrained: whether to start from the weights that timm has for it.
    """

    backbone: Literal["timm"] = "timm"
    name: str = "resnet18"
    pretrained: bool = True

    def build(self, shape: tuple[int, ...]) -> Wrapped:
        return timm_backbone(self.name, shape, self.pretrained)

    def without_download(self) -> TimmConfig:
        return self.model_copy(update={"pretrained": False})


@final
class ModuleConfig(ModelConfig):
    """backbone = "module": a network of the user's own, given from Python each time.

    Args:
        features: F, how many the network returns; None to find it by trying the network, which takes a shape.
    """

    takes: ClassVar[Literal["any"]] = "any"
    backbone: Literal["module"] = "module"
    features: Width | None = None

    def build(self, shape: tuple[int, ...]) -> Wrapped:
        raise ConfigError(OWN_NETWORK)

    def wrap(self, network: nn.Module, shape: tuple[int, ...]) -> Wrapped:
        return Wrapped(network, shape, self.features)
