"""Networks that were written elsewhere: frozen features, a module of the user's, timm."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from hedged.errors import ConfigError, MissingDependencyError, ShapeError, ValueRangeError
from hedged.models import Architecture
from hedged.models.backbones import Standardize, StandardizeHidden, Wrapped


@settings(max_examples=20, deadline=None)
@given(rows=st.integers(2, 40), size=st.integers(1, 8), seed=st.integers(0, 1000))
def test_training_vectors_have_no_mean_and_unit_deviation(rows: int, size: int, seed: int) -> None:
    vectors = np.random.default_rng(seed).normal(50, 10, (rows, size)).astype(np.float32)
    backbone = Standardize(size)
    backbone.fit(torch.from_numpy(vectors))
    exact = vectors.astype(np.float64)
    wanted = (exact - exact.mean(0)) / exact.std(0)
    np.testing.assert_allclose(backbone(torch.from_numpy(vectors)).numpy(), wanted, atol=2e-4)


def test_a_feature_that_never_changes_is_not_blown_up() -> None:
    vectors = torch.tensor([[1.0, 3.0, 0.1], [3.0, 3.0, 0.1 + 1e-8]])
    backbone = Standardize(3)
    backbone.fit(vectors)
    assert backbone(vectors + torch.tensor([0.0, 0.5, 0.5])).abs().max() <= 1.0


def test_mean_and_deviation_are_saved_and_not_learned() -> None:
    backbone = StandardizeHidden(4, hidden=8)
    backbone.fit(torch.randn(20, 4) + 5)
    other = StandardizeHidden(4, hidden=8)
    other.load_state_dict(backbone.state_dict())
    vectors = torch.randn(3, 4)
    assert torch.equal(other(vectors), backbone(vectors))
    assert {name for name, _ in backbone.named_parameters()} == {"hidden.0.weight", "hidden.0.bias"}


def test_frozen_backbones_are_of_one_length() -> None:
    for backbone, features in (("frozen", 7), ("frozen-hidden", 5)):
        settings = {"backbone": backbone, "shape": (7,)} | ({"hidden": 5} if features == 5 else {})
        architecture = Architecture.model_validate(settings)
        assert Architecture.model_validate(architecture.model_dump(mode="json")) == architecture
        network = architecture.build_backbone()
        assert network(torch.randn(2, 7)).shape == (2, features) == (2, network.features)
        with pytest.raises(ShapeError, match=r"\(B, 7\), got \(2, 6\)"):
            network(torch.randn(2, 6))
    with pytest.raises(ValueError, match=r"takes vectors \(length,\), got shape = \(3, 8, 8\)"):
        Architecture(backbone="frozen", shape=(3, 8, 8))
    with pytest.raises(ValueError, match=r"takes images .* got shape = \(7,\)"):
        Architecture(backbone="mobilenet", shape=(7,))
    with pytest.raises(ValueRangeError, match="at least one feature"):
        Standardize(0)
    with pytest.raises(ShapeError, match="two vectors or more"):
        Standardize(3).fit(torch.zeros(1, 3))


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
