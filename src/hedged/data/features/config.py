"""The section [data] of vectors that another model made: `source = "features"`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal, final

from pydantic import Field

from hedged._section import Chance, Width
from hedged.data.config import DataSection, checked
from hedged.data.dataset import Batches, Dataset, Splits
from hedged.data.features.dataset import Features, FeatureStream, open_features
from hedged.data.sampling import BatchPlan
from hedged.data.splits import IdentitySplitSection
from hedged.errors import ConfigError


class _FeatureKeys(DataSection):
    """The keys before those of the split: config.toml has them in this order."""

    path: Annotated[str, Field(min_length=1)]
    size: Width
    labels: str = ""
    corrupt_path: str = ""
    corruption: Chance = 0.5
    noise: Annotated[float, Field(ge=0)] = 0.0


@final
class FeaturesConfig(IdentitySplitSection, _FeatureKeys):
    """Vectors: in which file, how long, of which identities, which are tested, and how they are augmented.

    The keys of the split are those of `IdentitySplitSection`.

    Args:
        path: an .npy, .npz or .parquet file.
        size: the length of a vector.
        labels: the file with the labels of an .npy file: .npy, or text with one a line.
        corrupt_path: a file with the same rows, corrupt; without one, half of the features are hidden.
        corruption: the chance that training sees a vector corrupt.
        noise: added in training, in units of each feature's standard deviation.
    """

    default_backbone: ClassVar[str | None] = "frozen"

    source: Literal["features"]

    @property
    def shape(self) -> tuple[int]:
        """The length of a vector."""
        return (self.size,)

    def open(self) -> Splits[Features]:
        """Read the vectors, and split them by identity."""
        path, labels, corrupt = (
            Path(name).expanduser() if name else None for name in (self.path, self.labels, self.corrupt_path)
        )
        parts = open_features(path or Path(), labels, corrupt, self.rule)
        if (size := parts.train.vectors.shape[1]) != self.size:
            raise ConfigError(
                f"data.size = {self.size}, but the vectors in {path} have {size} numbers: set it to {size}"
            )
        return parts

    def batches(self, train: Dataset, plan: BatchPlan) -> Batches:
        """Vectors of a few identities and others at random, some corrupt, with noise.

        Args:
            train: a `Features`.
            plan: sizes and seed.
        """
        data = checked(self, train, Features)
        return FeatureStream(data, plan.sampler(data.labels, fewest=2), self.corruption, self.noise)

    def can_validate(self) -> bool:
        """Whether the file is still there."""
        return Path(self.path).expanduser().exists()
