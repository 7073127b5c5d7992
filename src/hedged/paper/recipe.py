"""The one recipe of all tables and figures: `configs/paper.toml`, with what a table varies filled in."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from hedged.errors import ValueRangeError
from hedged.evaluation.reference import Model
from hedged.training import Config, parse_config


def recipe(digits: int, dim: int, model: Model, seed: int = 0, **settings: Any) -> Config:
    """The config of a model of the paper; `settings` are single keys of it, such as `data__split="instance"`.

    >>> config = recipe(2, 3, "mog-2", seed=1, loss__beta=0.0)
    >>> config.model.components, config.model.dim, config.train.seed, config.loss.beta
    (2, 3, 1, 0.0)

    Args:
        digits: N, the digits of an image.
        dim: D, the dimensions of the embedding.
        model: "point", or "mog-C" for C Gaussians.
        seed: Of the training.
        settings: Single keys, their section before two underscores.
    """
    content = {name: dict(section) for name, section in _file().items()}
    content["data"]["digits"] = digits
    content["model"] |= {"dim": dim, **head_of(model)}
    content["loss"]["kind"] = "soft-contrastive" if model == "point" else "hedged"
    content["train"]["seed"] = seed
    for key, value in settings.items():
        section, _, name = key.partition("__")
        content[section][name] = value
    return parse_config(content, name="the recipe")


@cache
def _file() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(resources.files("hedged.training").joinpath("configs/paper.toml").read_text(encoding="utf-8"))


def head_of(model: Model) -> dict[str, Any]:
    """The head of a model by the paper's name for it.

    Args:
        model: "point", or "mog-C" for C Gaussians.
    """
    if model == "point":
        return {"head": "point"}
    kind, _, components = model.partition("-")
    if kind != "mog" or not components.isdecimal():
        raise ValueRangeError(f'a model is "point" or "mog-C" for C Gaussians, got {model!r}')
    return {"head": "gaussian"} if components == "1" else {"head": "mixture", "components": int(components)}
