"""The section [model]: one class for each backbone, and descriptions and hashes that stay what they were."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from hedged.errors import ConfigError
from hedged.models import Architecture, Backbone, Embedder, ModelConfig
from hedged.models.backbones import MobileNetConfig, ShallowHiddenConfig, VectorsConfig
from hedged.training import load_config, parse_config
from hedged.training.config import shipped_config, shipped_configs

IMAGES = (3, 32, 32)
CONFIGS = {
    "demo": "b7dc51ded18c68fb",
    "demo-offline": "d8065a21f05fdf50",
    "paper": "7c22432851f1310e",
    "pets": "efebe83abc0e7272",
}
MODELS = {
    "hedged:ndigit-2d": "639e9b24c9ffe9a9",
    "hedged:ndigit-2d-mog2": "bc38872e6f9874a7",
    "hedged:ndigit-3d": "5569a9a0c7a952f4",
}
DESCRIPTIONS: list[tuple[dict[str, Any], str]] = [
    (
        {"backbone": "shallow", "shape": IMAGES},
        '{"backbone": "shallow", "channels": [8, 16], "hidden": 512, "head": "gaussian", "dim": 2, "components": 1, '
        '"shape": [3, 32, 32]}',
    ),
    (
        {"head": "mixture", "components": 2, "dim": 3},
        '{"backbone": "shallow-hidden", "channels": [8, 16], "hidden": 512, "head": "mixture", "dim": 3, '
        '"components": 2, "shape": [1, 28, 56]}',
    ),
    (
        {"backbone": "mobilenet", "shape": IMAGES, "mirrored": True, "resize": 40, "width": 0.5},
        '{"backbone": "mobilenet", "width": 0.5, "head": "gaussian", "dim": 2, "components": 1, "mirrored": true, '
        '"shape": [3, 32, 32], "resize": 40}',
    ),
    (
        {"backbone": "vectors", "shape": (7,), "head": "point"},
        '{"backbone": "vectors", "head": "point", "dim": 2, "components": 1, "shape": [7]}',
    ),
    (
        {"backbone": "timm", "shape": IMAGES, "name": "resnet34", "pretrained": False},
        '{"backbone": "timm", "name": "resnet34", "pretrained": false, "head": "gaussian", "dim": 2, "components": 1, '
        '"shape": [3, 32, 32]}',
    ),
    (
        {"backbone": "module", "shape": IMAGES, "mirrored": True},
        '{"backbone": "module", "head": "gaussian", "dim": 2, "components": 1, "mirrored": true, "shape": [3, 32, 32]}',
    ),
]


def test_results_and_runs_are_still_found_under_the_fingerprints_of_their_configs() -> None:
    assert {name: load_config(shipped_config(name)).digest() for name in shipped_configs()} == CONFIGS


@pytest.mark.parametrize("name", MODELS)
def test_stores_and_calibrations_still_know_the_models_that_ship(name: str) -> None:
    assert Embedder.load(name).fingerprint() == MODELS[name]


def test_an_embedder_of_mirrored_images_is_the_one_it_was() -> None:
    settings = {"backbone": "mobilenet", "shape": IMAGES, "mirrored": True, "resize": 40, "width": 0.5}
    assert Embedder.new(Architecture.model_validate(settings), seed=0).fingerprint() == "e154716b5320da8e"


@pytest.mark.parametrize(("settings", "description"), DESCRIPTIONS)
def test_a_model_is_described_as_it_always_was(settings: dict[str, Any], description: str) -> None:
    architecture = Architecture.model_validate(settings)
    assert json.dumps(architecture.model_dump(mode="json")) == description
    assert Architecture.model_validate(json.loads(description)) == architecture


def test_a_config_has_the_keys_of_its_backbone_before_those_of_the_head() -> None:
    written = parse_config({"model": {"backbone": "mobilenet"}, "data": {"source": "images", "path": "x"}}).to_toml()
    model = written.split("[model]\n")[1].split("\n\n")[0]
    assert [line.split(" ")[0] for line in model.splitlines()] == [
        *("backbone", "width", "head", "dim", "components", "mirrored")
    ]


def test_the_key_backbone_chooses_the_section() -> None:
    assert ModelConfig.model_validate({}) == ShallowHiddenConfig()
    assert isinstance(ModelConfig.model_validate({"backbone": "vectors"}), VectorsConfig)
    assert parse_config({"model": {"hidden": 7}}).model == ShallowHiddenConfig(hidden=7)
    section = MobileNetConfig(width=0.5)
    assert ModelConfig.model_validate(section) is section


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"backbone": "resnet"}, "model.backbone is one of mobilenet, module, shallow, shallow-hidden, "),
        ({"backbone": 3}, "got 3"),
        ({"backbone": "mobilenet", "hidden": 3}, 'backbone = "mobilenet" has no setting hidden: leave it out'),
        ({"backbone": "mobilenet", "widht": 0.5}, "model.widht: unknown key; did you mean width?"),
        ({"backbone": "mobilenet", "width": -1.0}, "model.width: input should be greater than 0, got -1.0"),
        (
            {"head": "gauss"},
            "model.head is one of point, gaussian, mixture, full, low-rank, evidence, posterior, got 'gauss'",
        ),
        ({"shape": [1, 28, 28]}, "model.shape: unknown key"),
    ],
)
def test_mistakes_in_a_section_are_told_in_words(model: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config({"model": model})
    assert message in str(caught.value)


def test_only_images_are_resized() -> None:
    with pytest.raises(ValidationError, match=r"resize = 8 is for images .* got shape = \(7,\)"):
        Architecture(backbone="vectors", shape=(7,), resize=8)


class Sums(Backbone):
    """Features are sums of pixels: a backbone that the package does not know."""

    def __init__(self, shape: tuple[int, ...], features: int) -> None:
        super().__init__(shape, features)
        self.weight = nn.Parameter(torch.rand(features))

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs.flatten(1).mean(1, keepdim=True) * self.weight

    def settings(self) -> dict[str, Any]:
        return {"backbone": "sums", "sums": self.features}


class SumsConfig(ModelConfig):
    backbone: Literal["sums"] = "sums"
    sums: int = 4

    def build(self, shape: tuple[int, ...]) -> Sums:
        return Sums(shape, self.sums)


def test_a_backbone_from_elsewhere_is_named_built_saved_and_loaded(tmp_path: Any) -> None:
    config = parse_config({"model": {"backbone": "sums", "sums": 3, "dim": 5}})
    assert parse_config({"model": config.model.model_dump()}) == config
    embedder = Embedder.new(config.architecture, seed=0)
    embedder.save(tmp_path)
    images = torch.rand(4, 1, 28, 56)
    again = Embedder.load(tmp_path)
    assert isinstance(again.backbone, Sums)
    assert torch.equal(again.embed(images).pack(), embedder.embed(images).pack())
    with pytest.raises(ConfigError, match="has no setting sums"):
        parse_config({"model": {"backbone": "mobilenet", "sums": 3}})
