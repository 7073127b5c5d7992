"""Configs: what is read, what is refused and with which words."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from hedged.errors import ConfigError
from hedged.models.backbones import ShallowHiddenConfig
from hedged.paper.recipe import recipe
from hedged.training import Config, load_config, parse_config
from hedged.training.config import shipped_config, shipped_configs

VECTORS = {"source": "features", "path": "vectors.npz", "size": 16}


def test_an_empty_config_is_the_default() -> None:
    assert parse_config({}) == Config()


def test_written_out_and_read_back_it_is_the_same() -> None:
    config = parse_config({"model": {"head": "mixture", "components": 2}, "loss": {"pairs": 64}})
    assert parse_config(tomllib.loads(config.to_toml())) == config


def test_trained_models_are_still_found_under_their_digest() -> None:
    assert Config().digest() == "b7dc51ded18c68fb"
    assert recipe(2, 2, "mog-1", seed=0).digest() == "7c22432851f1310e"
    assert recipe(3, 3, "mog-2", seed=1).digest() == "2e302d5d2f077f26"


def test_every_config_that_ships_is_valid_for_points_too() -> None:
    """The guide trains a point embedding by `hedged train pets --set …`; what only a hedged loss has does not count."""
    point = ("model.head=point", "loss.kind=soft-contrastive")
    for path in map(shipped_config, shipped_configs()):
        assert load_config(path).model.head == "gaussian"
        assert load_config(path, point).model.head == "point"


def test_overrides_are_toml_values_or_bare_words(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text("[train]\nsteps = 300\n")
    config = load_config(path, ["train.steps=400", "data.split=number", "model.channels=[4, 8]", "loss.beta = 1e-3"])
    assert (config.train.steps, config.data.split_by) == (400, "number")
    assert (config.model, config.loss.beta) == (ShallowHiddenConfig(channels=(4, 8)), 1e-3)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"trian": {}}, "trian: unknown key; did you mean train?"),
        ({"train": {"step": 3}}, "train.step: unknown key; did you mean steps?"),
        ({"loss": {"xyzzy": 3}}, "known keys: kind"),
        ({"train": {"steps": "many"}}, "train.steps: input should be a valid integer"),
        ({"train": {"steps": "20"}}, "train.steps: input should be a valid integer, got '20'"),
        ({"train": {"log_every": True}}, "train.log_every: input should be a valid integer, got True"),
        ({"data": {"digits": 2.0}}, "data.digits: input should be a valid integer, got 2.0"),
        ({"model": {"hidden": 10**10}}, "model.hidden: input should be less than or equal to 65536"),
        ({"train": {"steps": 0}}, "train.steps: input should be greater than or equal to 1, got 0"),
        ({"model": {"components": 0}}, "model.components: input should be greater than or equal to 1, got 0"),
        ({"model": {"components": 2}}, 'needs head = "mixture"'),
        ({"model": {"head": "mixture", "components": 3}}, "loss.samples = 8 cannot be shared equally"),
        ({"model": {"head": "mixture", "components": 2}, "loss": {"means": "points"}}, '"gaussian", got "mixture"'),
        ({"model": {"head": "mixture"}, "loss": {"means": "points"}}, 'set loss.means = "hedged"'),
        ({"loss": {"mutual_weight": 0.1}}, 'got "hedged": set loss.means = "points", or loss.mutual_weight = 0'),
        ({"data": VECTORS}, "fitted by `hedged retrofit VECTORS --out RUN`"),
        (
            {"model": {"backbone": "vectors", "mirrored": True}},
            'is for images, and backbone = "vectors"',
        ),
        ({"model": {"backbone": "vectors"}}, 'takes vectors, which data.source = "mnist" does not give'),
        ({"model": {"head": "point"}}, 'loss.kind = "soft-contrastive"'),
        ({"loss": {"beta": -1.0}}, "loss.beta: input should be greater than or equal to 0, got -1.0"),
        ({"loss": {"beta": float("nan")}}, "loss.beta"),
        ({"loss": {"scale": 0.0}}, "loss.scale: input should be greater than 0"),
        ({"loss": {"kind": "triplet"}}, "'hedged', 'evidence', 'soft-contrastive' or 'contrastive', got 'triplet'"),
        ({"train": {"batch_size": 32}}, "= 96 is more than train.batch_size = 32"),
        ({"train": {"steps": 100}}, "train.warmup = 200 leaves nothing"),
        ({"data": 3}, "data: input should be a valid dictionary"),
        ({"data": {"path": "x"}}, 'data.source = "mnist" has no setting path: leave it out'),
        ({"data": {"source": ["mnist"]}}, "data.source is one of features, images, mnist, offline"),
        ({"data": {"source": "offline", "digit": 3}}, "data.digit: unknown key; did you mean digits?"),
    ],
)
def test_mistakes_are_told_in_words(content: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(content)
    assert message in str(caught.value)


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config({"loss": {"beta": -1, "scale": -1}})
    assert "loss.beta" in str(caught.value)
    assert "loss.scale" in str(caught.value)


@pytest.mark.parametrize("override", ["steps=3", "train.steps", "train.=3", "=3"])
def test_an_override_names_section_key_and_value(override: str, tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text("")
    with pytest.raises(ConfigError, match=r"section\.key=value"):
        load_config(path, [override])


def test_files_that_are_missing_or_not_toml(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no config"):
        load_config(tmp_path / "none.toml")
    path = tmp_path / "c.toml"
    path.write_text("[train\n")
    with pytest.raises(ConfigError, match="not valid TOML"):
        load_config(path)


def test_the_digest_tells_runs_apart_but_not_how_they_are_logged() -> None:
    same = parse_config({"train": {"log_every": 7, "checkpoint_every": 9}})
    other = parse_config({"train": {"seed": 1}})
    assert same.digest() == Config().digest() != other.digest()
