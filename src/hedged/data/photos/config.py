"""The section [data] of images of your own: `source = "images"`."""

from __future__ import annotations

from typing import Annotated, Literal, Self, final

from pydantic import Field, model_validator

from hedged._home import expanded
from hedged._section import Chance, Width
from hedged.data.config import Broken, DataSection, checked
from hedged.data.dataset import Batches, Dataset, Splits
from hedged.data.photos.augmentation import Augmentation
from hedged.data.photos.dataset import Photos, open_photos
from hedged.data.photos.stream import PhotoStream
from hedged.data.sampling import BatchPlan
from hedged.data.splits import IdentitySplitSection


class _ImageKeys(DataSection):
    """The keys before those of the split: config.toml has them in this order."""

    path: Annotated[str, Field(min_length=1)]
    identity: Annotated[str, Field(min_length=1)] = "folder"


@final
class ImagesConfig(IdentitySplitSection, _ImageKeys):
    """Images: where they are, whom they show, which are tested, and how they are augmented.

    The keys of the split are those of `IdentitySplitSection`, the chances those of `Augmentation`.

    Args:
        path: a folder, or a .csv or .parquet file of path, label[, split].
        identity: "folder", or a regular expression with one group, searched in the path of each file.
        size: pixels a side that the network sees.
        cached_size: pixels a side that crops are taken from.
        broken: whether to skip files that cannot be decoded, or to refuse the data.
        flip: the chance that left and right are swapped.
        colour: how far brightness, contrast, saturation and the three channels may go from 1, in [0, 1].
        blur: the chance of a Gaussian blur.
        erase: the chance that a rectangle is replaced by one colour.
        low_resolution: the chance that a photo is reduced and enlarged again.
    """

    source: Literal["images"]
    size: Width = 96
    cached_size: Width = 112
    broken: Broken = "skip"
    flip: Chance = 0.5
    colour: Chance = 0.3
    blur: Chance = 0.1
    erase: Chance = 0.3
    low_resolution: Chance = 0.2

    @model_validator(mode="after")
    def _sizes_fit(self) -> Self:
        if self.cached_size < self.size:
            raise ValueError(f"data.cached_size = {self.cached_size} must be at least data.size = {self.size}")
        return self

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of what the network sees."""
        return 3, self.size, self.size

    @property
    def resize(self) -> int | None:
        """The shorter edge that images are resized to before their middle is taken."""
        return self.cached_size

    def open(self) -> Splits[Photos]:
        """Decode the images, if they are not in the cache, and split them by identity."""
        path = expanded(self.path)
        return open_photos(path, self.identity, self.size, self.cached_size, self.rule, self.broken)

    def batches(self, train: Dataset, plan: BatchPlan) -> Batches:
        """Photos of a few identities and others at random, augmented.

        Args:
            train: a `Photos`.
            plan: sizes and seed.
        """
        data = checked(self, train, Photos)
        augmentation = Augmentation(self.flip, self.colour, self.blur, self.erase, self.low_resolution)
        return PhotoStream(data, plan.sampler(data.labels, fewest=2), augmentation)

    def fetch(self) -> None:
        """Decode the images into the cache."""
        self.open()

    def can_validate(self) -> bool:
        """Whether the images are still there."""
        return expanded(self.path).exists()

    @property
    def on_broken_file(self) -> Broken:
        """As `broken` says."""
        return self.broken
