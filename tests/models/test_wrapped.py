"""Networks that were written elsewhere: vectors as they are, a module of the user's, timm."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from hedged.errors import ConfigError, MissingDependencyError, ShapeError, ValueRangeError
from hedged.models import Architecture
from hedged.models.backbones import Vectors, Wrapped


def test_vectors_are_of_one_length() -> None:
    architecture = Architecture(backbone="vectors", shape=(7,))
    assert Architecture.model_validate(architecture.model_dump(mode="json")) == architecture
    network, vectors = architecture.build_backbone(), torch.randn(2, 7)
    assert torch.equal(network(vectors), vectors)
    assert network.features == 7
    with pytest.raises(ShapeError, match=r"\(B, 7\), got \(2, 6\)"):
        network(torch.randn(2, 6))
    with pytest.raises(ValueError, match=r"takes vectors \(length,\), got shape = \(3, 8, 8\)"):
        Architecture(backbone="vectors", shape=(3, 8, 8))
    with pytest.raises(ValueError, match=r"takes images .* got shape = \(7,\)"):
        Architecture(backbone="mobilenet", shape=(7,))
    with pytest.raises(ValueRangeError, match="at least one feature"):
        Vectors(0)


def own_network() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(1), nn.Flatten())


def test_a_module_of_the_users_is_tried_and_left_as_it_was() -> None:
    module = own_network()
    module[1].eval()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    backbone = Architecture(backbone="module", shape=(3, 8, 9)).build_backbone(module)
    assert backbone.features == 4
    assert module.training
    assert not module[1].training
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    with pytest.raises(ShapeError, match=r"\(3, 8, 9\), got \(3, 9, 8\)"):
        backbone(torch.rand(2, 3, 9, 8))


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (nn.Conv2d(3, 4, 3), r"gives \(2, 4, 6, 6\) for 2 inputs .*nn.Flatten\(\)"),
        (nn.Conv2d(1, 4, 3), r"does not take inputs of shape \(B, 3, 8, 8\)"),
        (nn.LSTM(8, 2), "does not take inputs"),
        (nn.Flatten(0), r"gives \(384,\)"),
    ],
)
def test_a_module_that_is_no_backbone_is_refused(module: nn.Module, words: str) -> None:
    with pytest.raises(ShapeError, match=words):
        Wrapped(module, (3, 8, 8))


def test_a_module_goes_with_its_name() -> None:
    with pytest.raises(ConfigError, match='goes with backbone = "module"'):
        Architecture(backbone="module", shape=(3, 8, 8)).build()
    with pytest.raises(ConfigError, match='goes with backbone = "module"'):
        Architecture(backbone="mobilenet", shape=(3, 32, 32)).build(own_network())


class Pooled(nn.Module):
    """What a network of timm does: the mean of each channel."""

    def forward(self, images: Tensor) -> Tensor:
        return images.mean((2, 3))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """A stand-in for timm, which does not import without torchvision; what was asked of it."""
    calls: list[dict[str, Any]] = []
    stand_in: Any = ModuleType("timm")

    def create_model(name: str, **settings: Any) -> nn.Module:
        calls.append({"name": name, **settings})
        return Pooled()

    stand_in.create_model = create_model
    stand_in.is_model = lambda name: name in stand_in.list_models()
    stand_in.list_models = lambda: ["resnet18", "vit_tiny"]
    pixels = {"mean": (0.25, 0.5, 0.75), "std": (0.5, 0.5, 0.5)}
    stand_in.data = SimpleNamespace(resolve_model_data_config=lambda network: pixels)
    monkeypatch.setitem(sys.modules, "timm", stand_in)
    return calls


def test_a_network_of_timm_gets_pixels_as_it_was_trained(asked: list[dict[str, Any]]) -> None:
    network = Architecture(backbone="timm", name="resnet18", shape=(3, 8, 8)).build_backbone()
    assert asked == [{"name": "resnet18", "pretrained": True, "num_classes": 0, "in_chans": 3}]
    torch.testing.assert_close(network(torch.full((2, 3, 8, 8), 0.5)), torch.tensor([[0.5, 0.0, -0.5]] * 2))
    grey = Architecture(backbone="timm", pretrained=False, shape=(1, 8, 8)).build_backbone()
    assert asked[-1] == {"name": "resnet18", "pretrained": False, "num_classes": 0, "in_chans": 1}
    assert grey(torch.full((2, 1, 8, 8), 0.5)).abs().max() == 0


def test_a_network_that_timm_has_not(asked: list[dict[str, Any]]) -> None:
    with pytest.raises(ConfigError, match=r"timm has no model 'resnet81'.*did you mean resnet18"):
        Architecture(backbone="timm", name="resnet81", shape=(3, 8, 8)).build()
    assert not asked


def test_without_timm_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(MissingDependencyError, match=r"needs timm and torchvision.*pip install 'hedged\[timm\]'"):
        Architecture(backbone="timm", shape=(3, 8, 8)).build()
