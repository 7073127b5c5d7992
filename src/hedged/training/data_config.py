"""What a run is trained on: the section [data] of a config, of the kind that its key `source` names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from hedged.models.config import Positive, Width

Share = Annotated[float, Field(ge=0, lt=1)]
Chance = Annotated[float, Field(ge=0, le=1)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]


class Section(BaseModel):
    """A part of a config: unknown keys and values of another type are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class NDigitConfig(Section):
    """N-digit MNIST: how many digits, which split, how much occlusion."""

    source: Literal["mnist", "offline"] = "mnist"
    digits: Annotated[int, Field(ge=1, le=6)] = 2
    split: Literal["instance", "number"] = "instance"
    occlusion: Chance = 0.2
    holdout: Share = 0.0  # share of the training digits set apart for validation
    train_images: Positive = 100_000
    test_images: Positive = 10_000
    per_class: Annotated[int, Field(ge=2)] = 100
    seed: Seed = 0

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of an image."""
        return 1, 28, 28 * self.digits

    @property
    def resize(self) -> int | None:
        """The shorter edge that images are brought to first; none, they have to be of the right size."""
        return None


class ImagesConfig(Section):
    """Images of your own: where they are, whom they show, which are tested, and how they are varied."""

    source: Literal["images"]
    path: Annotated[str, Field(min_length=1)]  # a folder, or a .csv or .parquet file of path, label[, split]
    identity: Annotated[str, Field(min_length=1)] = "folder"  # or a regular expression with one group, on file names
    split: Literal["share", "pattern", "column"] = "share"
    test_share: Share = 0.2  # of the identities, drawn by the seed
    test_pattern: str = ""  # a regular expression, found in the identities that are tested
    validation_share: Share = 0.1  # of the identities that are not tested
    seed: Seed = 0
    size: Width = 96  # pixels a side that the network sees
    cached_size: Width = 112  # pixels a side that crops are taken from
    broken: Literal["skip", "refuse"] = "skip"  # what to do with files that cannot be decoded
    flip: Chance = 0.5
    colour: Chance = 0.3
    blur: Chance = 0.1
    erase: Chance = 0.3
    low_resolution: Chance = 0.2

    @model_validator(mode="after")
    def _keys_fit(self) -> Self:
        if self.cached_size < self.size:
            raise ValueError(f"data.cached_size = {self.cached_size} is to be at least data.size = {self.size}")
        _check_split(self)
        return self

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of what the network sees."""
        return 3, self.size, self.size

    @property
    def resize(self) -> int | None:
        """The shorter edge that images are brought to before their middle is taken."""
        return self.cached_size


class FeaturesConfig(Section):
    """Vectors that another model made: in which file, how long, whose they are, and which are tested."""

    source: Literal["features"]
    path: Annotated[str, Field(min_length=1)]  # an .npy, .npz or .parquet file
    size: Width  # numbers of a vector
    labels: str = ""  # the file with the labels of an .npy file: .npy, or text with one a line
    corrupt_path: str = ""  # a file with the same rows seen worse; none: half of the features are hidden
    corruption: Chance = 0.5  # with which training sees a vector corrupt
    noise: Annotated[float, Field(ge=0)] = 0.0  # in training, in units of each feature's deviation
    split: Literal["share", "pattern", "column"] = "share"
    test_share: Share = 0.2  # of the identities, drawn by the seed
    test_pattern: str = ""  # a regular expression, found in the identities that are tested
    validation_share: Share = 0.1  # of the identities that are not tested
    seed: Seed = 0

    @model_validator(mode="after")
    def _keys_fit(self) -> Self:
        _check_split(self)
        return self

    @property
    def shape(self) -> tuple[int]:
        """The length of a vector."""
        return (self.size,)

    @property
    def resize(self) -> int | None:
        """None: vectors have to be of the right size."""
        return None


def _check_split(data: ImagesConfig | FeaturesConfig) -> None:
    if (data.split == "pattern") != bool(data.test_pattern):
        raise ValueError('data.split = "pattern" and data.test_pattern go together: set both, or neither')
    if data.split == "share" and not data.test_share:
        raise ValueError("data.test_share = 0 leaves nothing to test: set a share of the identities, such as 0.2")


SOURCES = {"mnist": "ndigit", "offline": "ndigit", "images": "images", "features": "features"}


def _kind(data: Any) -> str | None:
    """The kind of section that a value is meant to be."""
    if isinstance(data, Mapping):
        source = data.get("source", "mnist")
        return SOURCES.get(source) if isinstance(source, str) else None
    return SOURCES[data.source] if isinstance(data, NDigitConfig | ImagesConfig | FeaturesConfig) else "ndigit"


DataConfig = Annotated[
    Annotated[NDigitConfig, Tag("ndigit")]
    | Annotated[ImagesConfig, Tag("images")]
    | Annotated[FeaturesConfig, Tag("features")],
    Discriminator(
        _kind,
        custom_error_type="source",
        custom_error_message=f"data.source is one of {', '.join(SOURCES)}",
    ),
]
