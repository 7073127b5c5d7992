"""Heads and backbones: shapes, the paper's layers, what starts small and stays bounded, what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from hedged.errors import ShapeError, ValueRangeError
from hedged.models import Architecture, GaussianHead, Head, MixtureHead, PointHead
from hedged.models.backbones import MobileNet, Shallow, ShallowHidden
from hedged.models.backbones.fused import is_fused
from hedged.models.heads import LARGEST_LOG_VARIANCE


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


@pytest.mark.parametrize("images", [1, 31, 32, 70])
@pytest.mark.parametrize(("shape", "channels"), [((1, 28, 56), (8, 16)), ((3, 17, 30), (2, 3)), ((1, 16, 16), (1, 1))])
def test_the_fused_convolutions_are_those_of_torch(
    shape: tuple[int, int, int], channels: tuple[int, int], images: int
) -> None:
    generator = torch.Generator().manual_seed(images)
    x = torch.rand(images, *shape, generator=generator)
    with torch.random.fork_rng(devices=[]):  # with some weights two pixels tie, and either is the largest
        torch.manual_seed(0)
        network = Shallow(shape, channels)
    plain = Shallow(shape, channels).double()
    plain.load_state_dict(network.state_dict())
    layers = [layer for layer in network.convolutions if isinstance(layer, nn.Conv2d)]
    assert is_fused(x, layers)
    assert not is_fused(x.double(), layers)
    given, exact = x.requires_grad_(), x.detach().double().requires_grad_()
    found, wanted = network(given), plain(exact)
    torch.testing.assert_close(found.double(), wanted, rtol=1e-4, atol=1e-5)
    upstream = torch.randn(wanted.shape, generator=generator)
    found.backward(upstream)
    wanted.backward(upstream.double())
    pairs = [(given, exact), *zip(network.parameters(), plain.parameters(), strict=True)]
    for mine, reference in pairs:
        assert mine.grad is not None
        assert reference.grad is not None
        torch.testing.assert_close(mine.grad.double(), reference.grad, rtol=1e-3, atol=1e-4)


def test_the_fused_convolutions_do_not_depend_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    x, network = torch.rand(100, 1, 28, 56), Shallow()
    results = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        out = network(x)
        results.append([out.detach(), *torch.autograd.grad(out.square().sum(), list(network.parameters()))])
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(other, results[0], strict=True))


GRADIENTS = """
import torch
from hedged.models.backbones.fused import convolve
torch.manual_seed(0)
layers = [torch.nn.Conv2d(1, 6, 5), torch.nn.Conv2d(6, 16, 5)]
convolve(torch.rand(64, 1, 28, 56), layers).square().sum().backward()
print([float.hex(x) for layer in layers for p in layer.parameters() for x in p.grad.flatten().tolist()])
"""


def test_the_fused_convolutions_just_compiled_are_those_from_disk(tmp_path: Path) -> None:
    """To the last bit: else the first training on a machine would differ from all later ones."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", GRADIENTS]
    compiling, loading = (
        subprocess.run(command, env=environment, capture_output=True, check=True, text=True).stdout for _ in range(2)
    )
    assert list(tmp_path.rglob("_convolution.backward*.nbc")), "the first has left its code for the second"
    assert compiling == loading
