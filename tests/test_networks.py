"""Heads and backbones: shapes, the paper's layers, what starts small and stays bounded, what is refused."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from hedged.architecture import Architecture
from hedged.backbones import Shallow, ShallowHidden
from hedged.errors import ShapeError, ValueRangeError
from hedged.heads import LARGEST_LOG_VARIANCE, GaussianHead, Head, MixtureHead, PointHead


@pytest.mark.parametrize("digits", [1, 2, 3])
@pytest.mark.parametrize("backbone", ["shallow", "shallow-hidden"])
def test_a_backbone_returns_as_many_features_as_it_says(digits: int, backbone: str) -> None:
    shape = (1, 28, 28 * digits)
    network = Architecture.model_validate({"backbone": backbone, "shape": shape}).build_backbone()
    assert network(torch.rand(3, *shape)).shape == (3, network.features)


def test_shallow_is_two_5x5_convolutions_each_with_max_pooling_and_nothing_else() -> None:
    kinds = [type(layer) for layer in Shallow().modules() if not list(layer.children())]
    assert kinds == [nn.Conv2d, nn.MaxPool2d, nn.ReLU, nn.Conv2d, nn.MaxPool2d, nn.ReLU, nn.Flatten]
    assert [c.kernel_size for c in Shallow().modules() if isinstance(c, nn.Conv2d)] == [(5, 5), (5, 5)]


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
