"""An embedder of one's own objects: a network, a head, a match model and views that no config names."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Self, final

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from hedged import Embedder, GaussianHead, MatchCurve, MixtureHead, match_matrix
from hedged.distributions import Distribution, Gaussian, Point
from hedged.errors import ConfigError, DataError, RunError, ShapeError, ValueRangeError
from hedged.match import MatchModel
from hedged.models import Architecture, Head, Mirrored, OneView
from hedged.models.backbones import MobileNet, ShallowHidden, Vectors

IMAGES = (3, 8, 8)


def own_network(features: int = 12) -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, features))


class SaysItsShape(nn.Module):
    """A network with an attribute `shape`."""

    shape = IMAGES

    def __init__(self) -> None:
        super().__init__()
        self.layers = own_network()

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.layers(images)
        return features


@final
class Kernel(MatchModel, kind="test-kernel"):
    """log-odds = b − ‖m₁ − m₂‖² / 2w²: a match model that the package does not know, with a weight and a setting."""

    def __init__(self, width: float = 1.0) -> None:
        super().__init__()
        self.width = width
        self.bias = nn.Parameter(torch.zeros(()))

    def logit(self, z1: Distribution, z2: Distribution) -> Tensor:
        return self.bias - (z1.mean - z2.mean).square().sum(-1) / (2 * self.width**2)

    def fuse(self, z: Distribution, owner: Tensor) -> Distribution:
        return Point(torch.stack([z.mean[owner == o].mean(0) for o in range(int(owner.max()) + 1)]))

    def settings(self) -> dict[str, float]:
        return {"width": self.width}


def test_objects_are_enough() -> None:
    network = own_network(512)
    e = Embedder(network, GaussianHead(512, 20), MatchCurve())
    images = torch.rand(5, *IMAGES)
    z = e.embed(images)
    assert isinstance(z, Gaussian)
    assert (len(z), z.dim) == (5, 20)
    torch.testing.assert_close(z.pack(), e(images).pack().detach())
    torch.testing.assert_close(e.embed(images.numpy().astype(np.float64), batch_size=2).pack(), z.pack())
    assert e.match(images, images.flip(0)).shape == (5,)
    torch.testing.assert_close(e.uncertainty(images), 1 - e.match(z, z))
    assert any(parameter is next(network.parameters()) for parameter in e.parameters())
    assert isinstance(e.match_model, MatchCurve)
    assert e.curve is e.match_model


def test_all_pairs_and_the_nearest_of_images_or_embeddings() -> None:
    e = Embedder(own_network(), GaussianHead(12, 3), MatchCurve(scale=3.0))
    images, gallery = torch.rand(4, *IMAGES), torch.rand(7, *IMAGES)
    z, items = e.embed(images), e.embed(gallery)
    matrix = e.match_matrix(images, gallery)
    assert torch.equal(matrix, match_matrix(z, items, e.match_model))
    assert torch.equal(matrix, e.match_matrix(z, items))
    torch.testing.assert_close(matrix.diagonal(), e.match(images, gallery[:4]), atol=1e-4, rtol=0)
    found = e.nearest(images, gallery, k=2)
    assert found.items.shape == (4, 2)
    assert torch.equal(matrix.gather(1, found.items)[:, 0], matrix.amax(1))
    assert (e.nearest(gallery, gallery, k=1, exclude_self=True).items[:, 0] != torch.arange(7)).all()
    assert not matrix.requires_grad


def test_a_network_that_says_its_shape_takes_images() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (3, 8, 8, 3), dtype=np.uint8)
    by_attribute = Embedder(SaysItsShape(), GaussianHead(12, 2), MatchCurve())
    by_argument = Embedder(own_network(), GaussianHead(12, 2), MatchCurve(), shape=IMAGES, resize=9)
    for e in (by_attribute, by_argument):
        assert e.architecture.shape == e.shape == IMAGES
        floats = torch.from_numpy(pixels).permute(0, 3, 1, 2) / 255
        torch.testing.assert_close(e.embed(list(pixels)).pack(), e(floats).pack().detach())
    assert by_argument.architecture.resize == 9


def test_a_network_that_does_not_takes_tensors_as_they_are() -> None:
    words = nn.Sequential(nn.Embedding(50, 6), nn.Flatten())
    e = Embedder(words, GaussianHead(24, 2), MatchCurve())
    assert e.shape == ()
    assert len(e.embed(np.arange(12).reshape(3, 4))) == 3
    for bad, message in ((["a.png"], "got list"), (torch.zeros(0, 4), "no image"), (torch.tensor(1), "got Tensor")):
        with pytest.raises(DataError, match=message):
            e.embed(bad)
    with pytest.raises(ValueRangeError, match="batch_size=0"):
        e.embed(torch.zeros(2, 4, dtype=torch.int64), batch_size=0)


@pytest.mark.parametrize("head", [GaussianHead(12, 3), MixtureHead(12, 3, components=2)])
@pytest.mark.parametrize("shape", [None, IMAGES])
def test_saved_and_loaded_with_the_network_given_again(
    head: Head, shape: tuple[int, ...] | None, tmp_path: Path
) -> None:
    e = Embedder(own_network(), head, MatchCurve(5.0, 2.0), Mirrored(), shape=shape)
    e.save(tmp_path)
    images = torch.rand(4, *IMAGES)
    again = Embedder.load(tmp_path, backbone=own_network())
    assert torch.equal(again.embed(images).pack(), e.embed(images).pack())
    assert again.views == Mirrored(disagreement=1.0)
    assert again.architecture == e.architecture
    assert again.fingerprint() == e.fingerprint()
    with pytest.raises(ConfigError, match=r"Embedder\.load\(run, backbone=network\)"):
        Embedder.load(tmp_path)


def test_backbones_of_ours_need_not_be_given_again(tmp_path: Path) -> None:
    backbones = {
        "shallow": ShallowHidden((1, 16, 20), (2, 3), hidden=5),
        "mobile": MobileNet((3, 32, 32), 0.25),
        "vectors": Vectors(6),
    }
    for name, backbone in backbones.items():
        e = Embedder(backbone, GaussianHead(backbone.features, 2), MatchCurve())
        e.save(tmp_path / name)
        again = Embedder.load(tmp_path / name)
        assert type(again.backbone) is type(backbone)
        assert again.fingerprint() == e.fingerprint()
        configured = Embedder.new(e.architecture, seed=0)
        configured.load_state_dict(e.state_dict())
        assert configured.fingerprint() == e.fingerprint()


def test_what_does_not_fit_together_is_refused() -> None:
    with pytest.raises(ShapeError, match="returns 12 features, and its head takes 11"):
        Embedder(own_network(), GaussianHead(11, 2), MatchCurve(), shape=IMAGES)
    with pytest.raises(ShapeError, match="returns 6 features, and its head takes 5"):
        Embedder(Vectors(6), GaussianHead(5, 2), MatchCurve())
    with pytest.raises(ShapeError, match=r"of shape \(6,\), got shape = \(7,\)"):
        Embedder(Vectors(6), GaussianHead(6, 2), MatchCurve(), shape=(7,))


class Fixed(Head):
    """A head without a name."""

    @classmethod
    def build(cls, features: int, dim: int, components: int) -> Self:
        return cls(features, dim)

    def distribution(self, features: Tensor) -> Gaussian:
        return Gaussian(features[:, : self.dim], torch.ones(len(features), self.dim))


def test_a_head_without_a_name_works_and_is_not_saved(tmp_path: Path) -> None:
    e = Embedder(own_network(), Fixed(12, 2), MatchCurve())
    assert len(e.embed(torch.rand(3, *IMAGES))) == 3
    with pytest.raises(ConfigError, match=r'class Fixed\(Head, kind="\.\.\."\)'):
        e.save(tmp_path)


def test_any_match_model_is_used_saved_and_loaded(tmp_path: Path) -> None:
    model = Kernel(width=0.5)
    nn.init.constant_(model.bias, 1.5)
    e = Embedder(own_network(), GaussianHead(12, 2), model)
    images = torch.rand(4, *IMAGES)
    expected = (1.5 - torch.cdist(e.embed(images).mean, e.embed(images).mean) ** 2 / 0.5).sigmoid()
    torch.testing.assert_close(e.match_matrix(images, images), expected, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(e.uncertainty(images), torch.full((4,), 1 / (1 + math.exp(1.5))))
    e.save(tmp_path)
    assert json.loads((tmp_path / "model.json").read_text())["match_model"] == {"kind": "test-kernel", "width": 0.5}
    again = Embedder.load(tmp_path, backbone=own_network())
    assert isinstance(again.match_model, Kernel)
    assert torch.equal(again.match_matrix(images, images), e.match_matrix(images, images))
    assert again.fingerprint() == e.fingerprint()
    model.width = 0.6
    assert again.fingerprint() != e.fingerprint()
    with pytest.raises(ValueRangeError, match="use match_model, not curve"):
        _ = e.curve


def test_a_match_model_or_views_that_are_not_there_are_named(tmp_path: Path) -> None:
    Embedder.new(Architecture(channels=(2, 4), hidden=8), seed=0).save(tmp_path)
    content = json.loads((tmp_path / "model.json").read_text())
    assert content["format"] == 2
    assert content["views"] == {"kind": "one"}
    changes: list[tuple[dict[str, Any], str]] = [
        ({"match_model": {"kind": "oracle"}}, "does not have.*oracle"),
        ({"match_model": {"kind": "curve", "slope": 2}}, "does not have.*slope"),
        ({"views": {"kind": "turned"}}, "does not have.*turned"),
        ({"views": None}, "does not have.*got None"),
        ({"views": {"kind": "mirrored", "disagreement": "much"}}, "does not have.*got 'much'"),
        ({"views": {"kind": "one", "turn": 3}}, "does not have.*settings none, got .*turn"),
    ]
    for change, message in changes:
        (tmp_path / "model.json").write_text(json.dumps(content | change))
        with pytest.raises(RunError, match=message):
            Embedder.load(tmp_path)


def test_models_and_checkpoints_of_the_first_format_are_read(tmp_path: Path) -> None:
    settings = {"channels": (2, 4), "hidden": 8, "mirrored": True}
    e = Embedder.new(Architecture.model_validate(settings), seed=0, scale=7.0)
    e.save(tmp_path)
    old = {name.replace("match_model.", "curve."): value for name, value in e.state_dict().items()}
    content = json.loads((tmp_path / "model.json").read_text())
    first = {"format": 1, "architecture": content["architecture"], "notes": {}}
    (tmp_path / "model.json").write_text(json.dumps(first))
    save_file(old, tmp_path / "model.safetensors")
    again = Embedder.load(tmp_path)
    assert again.views == e.views == Mirrored(disagreement=0.25)
    assert again.curve.scale.item() == pytest.approx(7.0)
    assert again.fingerprint() == e.fingerprint()
    fresh = Embedder.new(e.architecture, seed=1)
    fresh.load_state_dict(old)
    assert fresh.fingerprint() == e.fingerprint()
    whole = nn.ModuleDict({"model": Embedder.new(e.architecture, seed=1)})
    whole.load_state_dict({f"model.{name}": value for name, value in old.items()})


def test_views_count_in_the_fingerprint() -> None:
    e = Embedder.new(Architecture(channels=(2, 4), hidden=8), seed=0)
    plain = e.fingerprint()
    e.views = Mirrored()
    assert e.fingerprint() != plain
    e.views = OneView()
    assert e.fingerprint() == plain
