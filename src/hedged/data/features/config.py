"""The section [data] of vectors that another model made: `source = "features"`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal, final

from pydantic import Field

from hedged._home import expanded
from hedged._section import Width
from hedged.data.config import DataSection
from hedged.data.dataset import Batches, Dataset, Splits
from hedged.data.features.dataset import Features, open_features
from hedged.data.sampling import BatchPlan
from hedged.data.splits import IdentitySplitSection
from hedged.errors import ConfigError


class _FeatureKeys(DataSection):
    """The keys before those of the split: config.toml has them in this order."""

    path: Annotated[str, Field(min_length=1)]
    size: Width
    labels: str = ""
    corrupt_path: str = ""


@final
class FeaturesConfig(IdentitySplitSection, _FeatureKeys):
    """Vectors, as `hedged retrofit` notes them: in which file, how long, of which identities, and which are tested.

    The keys of the split are those of `IdentitySplitSection`; test_share = 0 keeps no identity to test.

    Args:
        path: an .npy, .npz or .parquet file.
        size: the length of a vector.
        labels: the file with the labels of an .npy file: .npy, or text with one a line.
        corrupt_path: a file with the same rows, corrupt; without one, half of the features are hidden.
    """

    may_test_nobody: ClassVar[bool] = True

    source: Literal["features"]

    @property
    def shape(self) -> tuple[int]:
        """The length of a vector."""
        return (self.size,)

    def open(self) -> Splits[Features]:
        """Read the vectors, and split them by identity."""
        path, labels, corrupt = (
            expanded(name) if name else None for name in (self.path, self.labels, self.corrupt_path)
        )
        parts = open_features(path or Path(), labels, corrupt, self.rule)
        if (size := parts.train.vectors.shape[1]) != self.size:
            raise ConfigError(
                f"data.size = {self.size}, but the vectors in {path} have {size} numbers: set it to {size}"
            )
        return parts

    @property
    def has_given_twins(self) -> bool:
        """Whether a second file holds them."""
        return bool(self.corrupt_path)

    def batches(self, train: Dataset, plan: BatchPlan) -> Batches:
        """Refused: a head on vectors is fitted, not trained.

        Args:
            train: a `Features`.
            plan: sizes and seed.
        """
        raise ConfigError(
            f'data.source = "{self.source}" is fitted, not trained: `hedged retrofit {self.path} --out RUN`. To '
            "train a network of your own on vectors, write the loop around HedgedLoss"
        )

    def can_validate(self) -> bool:
        """Whether the file is still there."""
        return expanded(self.path).exists()
