"""What a run is, in TOML: checked on load, so that a wrong key or value is refused before any work is done.

A run is trained (`Config`) or fitted to vectors (`RetrofitConfig`). What they share, the data and what others ask of
the config of a run, is `RunConfig`.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, final

from pydantic import Field, SerializeAsAny, ValidationError, model_validator
from pydantic_core import ErrorDetails

from hedged._reading import parse_toml, read_toml
from hedged._section import KindSection, Positive, Section, Seed
from hedged.data.config import DataSection
from hedged.data.dataset import Batch, Dataset
from hedged.data.ndigit.config import NDigitConfig
from hedged.data.sampling import BatchPlan
from hedged.errors import ConfigError
from hedged.models import Architecture, ModelConfig
from hedged.models.backbones import ShallowHiddenConfig
from hedged.models.evidence.head import EvidenceHead

RETROFIT = "retrofit"  # the section that only the config of a fitted head has
MOST_SEEN = 20_000  # inputs that novelty is fitted to, of a tenth of the steps at most
FEWEST_BATCHES = 8  # unless there are fewer
CONFIGS = Path(__file__).parent / "configs"
# Keys that came later: while they are at their default, a run is the same as before, and so is its digest.
LATER = (
    ("train", "weight_decay"),
    ("loss", "warm_start"),
    ("loss", "warm_share"),
    ("loss", "means"),
    ("loss", "mutual_weight"),
    ("model", "mirrored"),
)
UNHASHED = (("train", "log_every"), ("train", "checkpoint_every"), ("data", "path"))  # weights do not depend on these

C = TypeVar("C", bound="RunConfig")


class LossConfig(Section):
    """Which loss, and every choice that the paper leaves open; see docs/choices.md."""

    kind: Literal["hedged", "evidence", "soft-contrastive", "contrastive"] = "hedged"
    warm_start: Literal["points", "features", "gaussians"] = "points"  # of "evidence": what it starts from,
    warm_share: Annotated[float, Field(gt=0, lt=1)] = 0.6  # and the share of the steps before it does
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

    @property
    def trains_points(self) -> bool:
        """Whether points are what training begins with, and equation 3 is their loss."""
        return self.kind == "soft-contrastive" or (self.kind == "evidence" and self.warm_start != "gaussians")


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

    @property
    def plan(self) -> BatchPlan:
        """How batches are drawn."""
        return BatchPlan(self.batch_size, self.classes_per_batch, self.images_per_class, self.seed)


class RunConfig(Section, ABC):
    """What the config of any run has: its data, and words for what made it.

    Args:
        data: which data, and which part of them is tested.
    """

    calibrated_on: ClassVar[str] = ""  # what made the log-odds of the model calibrated ones, in words; empty: nothing

    data: SerializeAsAny[DataSection]

    @abstractmethod
    def mismatch(self, architecture: Architecture) -> str:
        """What of a model is not as this config says, in words; empty if all is.

        Args:
            architecture: of the model in the folder of the config.
        """

    @abstractmethod
    def seen(self, train: Dataset) -> Iterator[Batch]:
        """Inputs that the model was made from, as it saw them, with their identities: what novelty is fitted to.

        Args:
            train: the training part of the data.
        """

    @abstractmethod
    def shown(self, inputs: str) -> dict[str, str]:
        """What a reader of a report wants to know of how the model was made.

        Args:
            inputs: what it was made from, in a word: "images", "vectors".
        """

    def digest(self) -> str:
        """16 hexadecimal digits that tell these settings from others: a hash of all that the weights depend on."""
        content = self.model_dump(mode="json")
        for section, key in UNHASHED:
            content.get(section, {}).pop(key, None)
        for section, key in LATER:
            if section in content and content[section][key] == _default(getattr(self, section), key):
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

    def _split_shown(self) -> dict[str, str]:
        return {"Split": f"by {self.data.split_by}"} if self.data.split_by else {}


@final
class RetrofitConfig(RunConfig):
    """A head that was fitted to vectors: on which, and with which parameters of `Retrofit`.

    Args:
        data: the vectors, and which identities were kept from the fit to be tested.
        retrofit: the parameters by name.
    """

    calibrated_on: ClassVar[str] = "identities that the fit held out in turn: it is p = 0.5, as it was calibrated there"

    retrofit: dict[str, bool | int | float | str]

    def mismatch(self, architecture: Architecture) -> str:
        if architecture.head != EvidenceHead.kind:
            return f"it is {architecture.head}, and was trained, not fitted by `hedged retrofit`"
        if architecture.shape != self.data.shape:
            return f"it takes inputs of {architecture.shape}, and the vectors are of {self.data.shape}"
        return ""

    def seen(self, train: Dataset) -> Iterator[Batch]:
        yield Batch(train.clean(), train.labels)
        if self.data.has_given_twins:
            yield Batch(train.corrupt(0), train.labels)

    def shown(self, inputs: str) -> dict[str, str]:
        parameters = ", ".join(f"{name} = {value}" for name, value in self.retrofit.items())
        return {"Head": f"fitted to {inputs} by `hedged retrofit`, {parameters}", **self._split_shown()}


@final
class Config(RunConfig):
    """A whole training run. Sections and keys that are left out take the defaults of the demo.

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
                f'model.backbone = "{model.backbone}" takes {model.takes}, which data.source = "{self.data.source}" '
                "does not give: a head on vectors that you have is fitted by `hedged retrofit VECTORS --out RUN`"
            )
        if model.head == "point" and loss.kind == "hedged":
            raise ValueError('a point embedding is trained with loss.kind = "soft-contrastive" or "contrastive"')
        if (model.head == "posterior") != (loss.kind == "evidence"):
            raise ValueError(
                'model.head = "posterior" and loss.kind = "evidence" go together, got '
                f'model.head = "{model.head}" and loss.kind = "{loss.kind}": set both, or neither'
            )
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
    def evidence_from(self) -> int | None:
        """The number of steps after which embeddings are compared by evidence; None: the match curve compares them."""
        return max(round(self.loss.warm_share * self.train.steps), 1) if self.loss.kind == "evidence" else None

    @property
    def ndigit(self) -> NDigitConfig:
        """The section [data] of a run on N-digit MNIST; a run on anything else is refused."""
        return NDigitConfig.of(self.data)

    def mismatch(self, architecture: Architecture) -> str:
        says = self.architecture
        if architecture == says:
            return ""
        has = f"it takes inputs of {architecture.shape} and is {architecture.head} in {architecture.dim} dimensions"
        return f"{has}, the config says {says.shape}, {says.head} and {says.dim}"

    def seen(self, train: Dataset) -> Iterator[Batch]:
        batches, steps = self.data.batches(train, self.train.plan), self.train.steps
        some = min(-(-MOST_SEEN // self.train.batch_size), max(steps // 10, FEWEST_BATCHES), steps)
        for k in range(some):
            yield batches.batch(k * steps // some)

    def shown(self, inputs: str) -> dict[str, str]:
        train = self.train
        decay = f"W with a decay of {train.weight_decay:g}" if train.weight_decay else ""
        steps = f"{train.steps:,} steps of {train.batch_size} {inputs}"
        return {
            "Training": f"{steps}, Adam{decay} at {train.learning_rate:g}",
            "Loss": self._loss_shown(),
            **self._split_shown(),
            "Seed of the training": str(train.seed),
        }

    def _loss_shown(self) -> str:
        beta = f", β = {self.loss.beta:g}" if self.loss.kind in ("hedged", "evidence") else ""
        first = f" after {self.evidence_from:,} steps by the match curve" if self.evidence_from else ""
        return self.loss.kind + first + beta


def _default(section: Section, key: str) -> Any:
    return type(section).model_fields[key].default


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


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> Config:
    """The TOML file of a training run.

    Args:
        path: The file.
        overrides: Settings that replace its own, each `section.key=value`, as `--set` takes it.
    """
    content = _read(Path(path))
    if RETROFIT in content:
        raise ConfigError(
            f"{path} is the config of a head on vectors, which is fitted, not trained: "
            "`hedged retrofit VECTORS --out RUN`"
        )
    for override in overrides:
        _apply(content, override)
    return parse_config(content, name=str(path))


def load_run_config(path: Path) -> RunConfig:
    """The TOML file of a run of either kind.

    Args:
        path: config.toml in the folder of the run.
    """
    content = _read(path)
    return _parse(RetrofitConfig if RETROFIT in content else Config, content, str(path))


def _read(path: Path) -> dict[str, Any]:
    try:
        return read_toml(path)
    except FileNotFoundError as error:
        raise ConfigError(f"there is no config {path}: check the path") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error


def parse_config(content: Mapping[str, Any], name: str = "this config") -> Config:
    """Check plain data; all mistakes are listed at once.

    Args:
        content: The sections by name, as a TOML file has them.
        name: What the message calls it.
    """
    return _parse(Config, content, name)


def _parse(kind: type[C], content: Mapping[str, Any], name: str) -> C:
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        mistakes = "\n".join(f"  {_explain(kind, details, content)}" for details in error.errors())
        raise ConfigError(f"{name} is not a valid config; correct these settings:\n{mistakes}") from error


def _apply(content: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    section, dot, name = key.strip().partition(".")
    if not (equals and dot and section and name):
        raise ConfigError(f"an override is section.key=value, such as train.steps=1000, got {override!r}")
    try:
        value = parse_toml(f"value = {text.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()  # a bare word is a string
    except ValueError as error:
        raise ConfigError(f"{key.strip()} cannot be set to a value that is so large: {error}") from error
    target = content.setdefault(section, {})
    if not isinstance(target, dict):
        raise ConfigError(f"{section} is not a section, so {override!r} cannot set a key of it")
    target[name] = value


def _explain(kind: type[RunConfig], details: ErrorDetails, content: Mapping[str, Any]) -> str:
    """One mistake in words, with the nearest right key if a key is unknown."""
    where = ".".join(str(part) for part in details["loc"] if part not in ("constrained-int", "literal['all']"))
    if details["type"] == "extra_forbidden":
        known = _keys_beside(kind, details["loc"], content)
        near = difflib.get_close_matches(str(details["loc"][-1]), known, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]}?" if near else f"known keys: {', '.join(known)}"
        return f"{where}: unknown key; {hint}"
    if details["type"] == "value_error":
        return str(details["ctx"]["error"])
    return f"{where}: {details['msg'][0].lower()}{details['msg'][1:]}, got {details['input']!r}"


def _keys_beside(kind: type[RunConfig], location: tuple[int | str, ...], content: Mapping[str, Any]) -> list[str]:
    """The keys that the section of an unknown key has."""
    if len(location) == 1:
        return list(kind.model_fields)
    section: Any = kind.model_fields[str(location[0])].annotation
    if issubclass(section, KindSection):
        section = section.kind_of(content[str(location[0])])
    return list(section.model_fields)
