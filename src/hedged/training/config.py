"""What a training run is, in TOML: checked on load, so that a wrong key or value is refused before any work is done."""

from __future__ import annotations

import difflib
import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, SerializeAsAny, ValidationError, model_validator
from pydantic_core import ErrorDetails

from hedged._section import KindSection, Positive, Section, Seed
from hedged.data.config import DataSection
from hedged.data.ndigit.config import NDigitConfig
from hedged.errors import ConfigError
from hedged.models import Architecture, ModelConfig
from hedged.models.backbones import ShallowHiddenConfig

CONFIGS = Path(__file__).parent / "configs"
# Keys that came later: while they are at their default, a run is the same as before, and so is its digest.
LATER = (("train", "weight_decay"), ("loss", "means"), ("loss", "mutual_weight"), ("model", "mirrored"))
UNHASHED = (("train", "log_every"), ("train", "checkpoint_every"), ("data", "path"))  # weights do not depend on these


class LossConfig(Section):
    """Which loss, and every choice that the paper leaves open; see docs/choices.md."""

    kind: Literal["hedged", "soft-contrastive", "contrastive"] = "hedged"
    likelihood: Literal["marginal", "expected-log"] = "marginal"
    estimator: Literal["closed-form", "monte-carlo"] = "closed-form"
    samples: Positive = 8  # K, wherever samples are drawn
    beta: Annotated[float, Field(ge=0)] = 1e-4
    kl: Literal["closed-form", "monte-carlo"] = "closed-form"  # for a mixture, closed-form is the convexity bound
    positive_weight: Annotated[float, Field(gt=0, lt=1)] = 0.05
    first_positive_weight: Annotated[float, Field(gt=0, lt=1)] = 0.5  # to come down from, in the first half
    means: Literal["hedged", "points"] = "hedged"  # with which loss the means of a hedged Gaussian train
    mutual_weight: Annotated[float, Field(ge=0)] = 0.0  # of the mutual likelihood; with means = "points"
    pairs: Literal["all"] | Positive = "all"  # or so many matching and other pairs of a batch
    margin: Annotated[float, Field(gt=0)] = 1.0
    scale: Annotated[float, Field(gt=0)] = 10.0  # a and b to start from
    bias: float = 3.0


class TrainConfig(Section):
    """Batches, steps and the optimiser."""

    steps: Positive = 5_000
    batch_size: Annotated[int, Field(ge=2)] = 128
    classes_per_batch: Positive = 16
    images_per_class: Annotated[int, Field(ge=2)] = 6
    learning_rate: Annotated[float, Field(gt=0)] = 9e-3
    weight_decay: Annotated[float, Field(ge=0)] = 0.0  # of the weights of layers, decoupled as in AdamW
    warmup: Annotated[int, Field(ge=0)] = 200
    seed: Seed = 0
    log_every: Positive = 50
    checkpoint_every: Positive = 500


class Config(Section):
    """A whole run. Sections and keys that are left out take the defaults of the demo.

    Args:
        data: What is trained and tested on.
        model: The backbone and the head.
        loss: Which loss, with every choice that the paper leaves open.
        train: Batches, steps and the optimiser.

    >>> Config().train.batch_size
    128
    """

    data: SerializeAsAny[DataSection] = NDigitConfig()
    model: SerializeAsAny[ModelConfig] = ShallowHiddenConfig()
    loss: LossConfig = LossConfig()
    train: TrainConfig = TrainConfig()

    @model_validator(mode="before")
    @classmethod
    def _backbone_for_data(cls, content: Any) -> Any:
        """A model that names no backbone has the one that suits its data."""
        data, model = (content.get(key, {}) if isinstance(content, Mapping) else None for key in ("data", "model"))
        if isinstance(data, Mapping) and isinstance(model, Mapping):
            kind = DataSection.kind_of(data)
            if kind and kind.default_backbone:
                return {**content, "model": {"backbone": kind.default_backbone, **model}}
        return content

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        model, loss, train = self.model, self.loss, self.train
        if model.takes not in ("any", "vectors" if len(self.data.shape) == 1 else "images"):
            raise ValueError(
                f'model.backbone = "{model.backbone}" takes {model.takes}, which '
                f'data.source = "{self.data.source}" does not give: vectors go with "frozen" or "frozen-hidden"'
            )
        if model.head == "point" and loss.kind == "hedged":
            raise ValueError('a point embedding is trained with loss.kind = "soft-contrastive" or "contrastive"')
        if loss.kind == "hedged" and loss.means == "points" and model.head != "gaussian":
            raise ValueError(
                f'loss.means = "points" is for model.head = "gaussian", got "{model.head}": '
                'set loss.means = "hedged" and loss.mutual_weight = 0'
            )
        if loss.kind == "hedged" and loss.mutual_weight and loss.means != "points":
            raise ValueError(
                f'loss.mutual_weight = {loss.mutual_weight} goes with loss.means = "points", got "{loss.means}": '
                'set loss.means = "points", or loss.mutual_weight = 0'
            )
        if loss.samples % model.components:
            raise ValueError(
                f"loss.samples = {loss.samples} cannot be shared equally by model.components = {model.components}: "
                f"use a multiple of {model.components}"
            )
        second_stream = train.classes_per_batch * train.images_per_class
        if second_stream > train.batch_size:
            raise ValueError(
                f"train.classes_per_batch × train.images_per_class = {second_stream} "
                f"is more than train.batch_size = {train.batch_size}"
            )
        if train.warmup >= train.steps:
            raise ValueError(
                f"train.warmup = {train.warmup} leaves nothing of train.steps = {train.steps}: lower train.warmup too"
            )
        return self

    @property
    def architecture(self) -> Architecture:
        """The network of [model] for inputs of [data]."""
        return Architecture(section=self.model, shape=self.data.shape, resize=self.data.resize)

    @property
    def ndigit(self) -> NDigitConfig:
        """The section [data] of a run on N-digit MNIST; a run on anything else is refused."""
        return NDigitConfig.of(self.data)

    def digest(self) -> str:
        """16 hexadecimal digits that tell these settings from others: a hash of all that the weights depend on."""
        content = self.model_dump(mode="json")
        for section, key in UNHASHED:
            content[section].pop(key, None)
        for section, key in LATER:
            if content[section][key] == type(getattr(self, section)).model_fields[key].default:
                del content[section][key]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    def to_toml(self) -> str:
        """The config as TOML, every key written out."""
        lines = []
        for section, content in self.model_dump(mode="json").items():
            lines += [
                f"[{section}]",
                *(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in content.items()),
                "",
            ]
        return "\n".join(lines)


def shipped_config(name: str) -> Path:
    """The file of a config that comes with the package.

    Args:
        name: One of `shipped_configs()`.
    """
    if name not in shipped_configs():
        raise ConfigError(
            f"there is no config {name}: give a TOML file, or one that ships: {', '.join(shipped_configs())}"
        )
    return CONFIGS / f"{name}.toml"


def shipped_configs() -> list[str]:
    """The names of the configs that come with the package."""
    return sorted(path.stem for path in CONFIGS.glob("*.toml"))


def load_config(path: Path, overrides: Sequence[str] = ()) -> Config:
    """Read a TOML file.

    Args:
        path: The file.
        overrides: Settings that replace its own, each `section.key=value`, as `--set` takes it.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"there is no config {path}: check the path") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error
    for override in overrides:
        _apply(content, override)
    return parse_config(content, name=str(path))


def parse_config(content: Mapping[str, Any], name: str = "this config") -> Config:
    """Check plain data; all mistakes are listed at once.

    Args:
        content: The sections by name, as a TOML file has them.
        name: What the message calls it.
    """
    try:
        return Config.model_validate(content)
    except ValidationError as error:
        mistakes = "\n".join(f"  {_explain(details, content)}" for details in error.errors())
        raise ConfigError(f"{name} is not a valid config; correct these settings:\n{mistakes}") from error


def _apply(content: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    section, dot, name = key.strip().partition(".")
    if not (equals and dot and section and name):
        raise ConfigError(f"an override is section.key=value, such as train.steps=1000, got {override!r}")
    try:
        value = tomllib.loads(f"value = {text.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()  # a bare word is a string
    target = content.setdefault(section, {})
    if not isinstance(target, dict):
        raise ConfigError(f"{section} is not a section, so {override!r} cannot set a key of it")
    target[name] = value


def _explain(details: ErrorDetails, content: Mapping[str, Any]) -> str:
    """One mistake in words, with the nearest right key if a key is unknown."""
    where = ".".join(str(part) for part in details["loc"] if part not in ("constrained-int", "literal['all']"))
    if details["type"] == "extra_forbidden":
        known = _keys_beside(details["loc"], content)
        near = difflib.get_close_matches(str(details["loc"][-1]), known, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]}?" if near else f"known keys: {', '.join(known)}"
        return f"{where}: unknown key; {hint}"
    if details["type"] == "value_error":
        return str(details["ctx"]["error"])
    return f"{where}: {details['msg'][0].lower()}{details['msg'][1:]}, got {details['input']!r}"


def _keys_beside(location: tuple[int | str, ...], content: Mapping[str, Any]) -> list[str]:
    """The keys that the section of an unknown key has."""
    if len(location) == 1:
        return list(Config.model_fields)
    section: Any = Config.model_fields[str(location[0])].annotation
    if issubclass(section, KindSection):
        section = section.kind_of(content[str(location[0])])
    return list(section.model_fields)
