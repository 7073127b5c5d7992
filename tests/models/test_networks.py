"""Heads and backbones: shapes, the paper's layers, what starts small and stays bounded, what is refused."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from hedged.errors import ShapeError, ValueRangeError
from hedged.models import Architecture, GaussianHead, Head, MixtureHead, PointHead
from hedged.models.backbones import MobileNet, Shallow, ShallowHidden
from hedged.models.heads import LARGEST_LOG_VARIANCE


@pytest.mark.parametrize("digits", [1, 2, 3])
@pytest.mark.parametrize("backbone", ["shallow", "shallow-hidden"])
def test_a_backbone_returns_as_many_features_as_it_says(digits: int, backbone: str) -> None:
    shape = (1, 28, 28 * digits)
    network = Architecture.model_validate({"backbone": backbone, "shape": shape}).build_backbone()
    assert network(torch.rand(3, *shape)).shape == (3, network.features)


def test_shallow_is_two_5x5_convolutions_each_with_max_pooling_and_nothing_else() -> None:
    kinds = [type(layer) for layer in Shallow().modules() if not list(layer.children())]
    expected = [nn.Conv2d, nn.MaxPool2d, nn.ReLU, nn.Conv2d, nn.MaxPool2d, nn.ReLU, nn.Flatten]
    assert len(kinds) == len(expected)
    assert all(issubclass(kind, of) for kind, of in zip(kinds, expected, strict=True))
    assert [c.kernel_size for c in Shallow().modules() if isinstance(c, nn.Conv2d)] == [(5, 5), (5, 5)]


@pytest.mark.parametrize(("width", "features", "parameters"), [(0.25, 256, 213_072), (1.0, 1024, 3_206_976)])
def test_mobilenet_has_the_known_number_of_parameters(width: float, features: int, parameters: int) -> None:
    network = MobileNet(width=width)
    assert network.features == features
    assert sum(p.numel() for p in network.parameters()) == parameters


def test_mobilenet_takes_photos_of_any_shape_it_was_told() -> None:
    network = Architecture(backbone="mobilenet", width=0.25, shape=(3, 96, 64)).build_backbone()
    assert network(torch.rand(2, 3, 96, 64)).shape == (2, network.features)
    with pytest.raises(ShapeError, match=r"\(3, 96, 64\), got \(3, 64, 96\)"):
        network(torch.rand(2, 3, 64, 96))
    with pytest.raises(ValueRangeError, match="at least 32 pixels"):
        MobileNet(shape=(3, 16, 16))


def test_a_description_has_the_settings_of_its_backbone_and_no_others() -> None:
    mobile = Architecture(backbone="mobilenet", width=0.5, shape=(3, 96, 96))
    assert mobile.model_dump().keys() == {"backbone", "width", "head", "dim", "components", "shape"}
    assert Architecture.model_validate(mobile.model_dump(mode="json")) == mobile
    assert "width" not in Architecture().model_dump()
    with pytest.raises(ValueError, match='backbone = "mobilenet" has no setting channels, hidden: leave it out'):
        Architecture(backbone="mobilenet", channels=(8, 16), hidden=3)
    with pytest.raises(ValueError, match='backbone = "shallow" has no setting width'):
        Architecture(backbone="shallow", width=0.5)


def test_shallow_hidden_adds_one_layer() -> None:
    linear = [m for m in ShallowHidden(hidden=32).modules() if isinstance(m, nn.Linear)]
    assert [m.out_features for m in linear] == [32]


@pytest.mark.parametrize(
    ("head", "packed"), [(PointHead(8, 3), 3), (GaussianHead(8, 3), 6), (MixtureHead(8, 3, components=2), 12)]
)
def test_a_head_gives_a_distribution_for_each_input(head: Head, packed: int) -> None:
    z = head(torch.randn(5, 8))
    assert z.batch_shape == (5,)
    assert z.dim == 3
    assert z.pack().shape == (5, packed)


@pytest.mark.parametrize("head", [GaussianHead(8, 2), MixtureHead(8, 2, components=2)])
def test_variances_start_small_and_equal_and_stay_bounded(head: GaussianHead | MixtureHead) -> None:
    variance = head(torch.randn(5, 8)).parts()[1]
    assert variance.min() == variance.max() < 0.05
    nn.init.constant_(head.log_variance.bias, 1e6)
    assert head(torch.randn(5, 8)).parts()[1].log().max() <= LARGEST_LOG_VARIANCE + 1e-3
    nn.init.constant_(head.log_variance.bias, -1e6)
    assert head(torch.randn(5, 8)).parts()[1].log().min() >= -LARGEST_LOG_VARIANCE - 1e-3


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"\(B, 8\), got \(5, 7\)"):
        GaussianHead(8, 2)(torch.randn(5, 7))
    with pytest.raises(ShapeError, match=r"\(1, 28, 56\), got \(1, 28, 28\)"):
        Shallow()(torch.rand(2, 1, 28, 28))
    with pytest.raises(ValueRangeError, match="components=0"):
        MixtureHead(8, 2, components=0)
    with pytest.raises(ValueRangeError, match="dim=0"):
        GaussianHead(8, 0)
    with pytest.raises(ValueRangeError, match="at least 16 pixels"):
        Shallow(shape=(1, 8, 8))
    with pytest.raises(ValueError, match='needs head = "mixture"'):
        Architecture(head="gaussian", components=2)


@pytest.mark.parametrize("shape", [(1, 28, 56), (3, 17, 30), (1, 19, 19)])
def test_embedding_and_training_pool_the_same_pixels(shape: tuple[int, int, int]) -> None:
    x, network = torch.rand(7, *shape), Shallow(shape)
    with torch.no_grad():
        embedded = network(x)
    assert torch.equal(embedded, network(x))
