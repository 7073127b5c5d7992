"""The section [data] of N-digit MNIST: `source = "mnist"`, or "offline" for its stand-in."""

from __future__ import annotations

from typing import Annotated, Literal, Self, final

from pydantic import Field

from hedged._section import Chance, Positive, Seed, Share
from hedged.data.config import DataSection, checked
from hedged.data.dataset import Batches, Dataset, Splits
from hedged.data.ndigit.dataset import NDigit
from hedged.data.ndigit.mnist import load_mnist, offline_digits
from hedged.data.ndigit.splits import SplitSizes, ndigit_splits
from hedged.data.ndigit.stream import TwoStream
from hedged.data.sampling import BatchPlan
from hedged.errors import ConfigError


@final
class NDigitConfig(DataSection):
    """N-digit MNIST: how many digits, which split, how much occlusion.

    Args:
        source: "mnist", or "offline" for scikit-learn's digits.
        digits: N, the digits of an image.
        split: "instance" tests new digits of the same numbers, "number" new numbers too.
        occlusion: the chance that a digit of a training image is occluded.
        holdout: share of the training digits set apart for validation.
        train_images: images to train on.
        test_images: images of a test set, and of the validation part.
        per_class: images that a class must have.
        seed: draws the digits of all images.
    """

    source: Literal["mnist", "offline"] = "mnist"
    digits: Annotated[int, Field(ge=1, le=6)] = 2
    split: Literal["instance", "number"] = "instance"
    occlusion: Chance = 0.2
    holdout: Share = 0.0
    train_images: Positive = 100_000
    test_images: Positive = 10_000
    per_class: Annotated[int, Field(ge=2)] = 100
    seed: Seed = 0

    @classmethod
    def of(cls, section: DataSection) -> Self:
        """The section itself, if it is of N-digit MNIST; any other is refused.

        Args:
            section: the section [data] of a config.
        """
        if not isinstance(section, cls):
            raise ConfigError(f'this needs a run on N-digit MNIST, got data.source = "{section.source}"')
        return section

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of an image."""
        return 1, 28, 28 * self.digits

    def open(self) -> Splits[NDigit]:
        """Compose the parts, of the digits of MNIST or of their stand-in."""
        load = load_mnist if self.source == "mnist" else offline_digits
        sizes = SplitSizes(self.train_images, self.test_images, self.test_images, self.per_class)
        return ndigit_splits(load("train"), load("test"), self.digits, self.split, self.seed, self.holdout, sizes)

    def batches(self, train: Dataset, plan: BatchPlan) -> Batches:
        """Two-stream batches, occluded.

        Args:
            train: an `NDigit`.
            plan: sizes and seed.
        """
        data = checked(self, train, NDigit)
        return TwoStream(data, plan.size, plan.classes, plan.per_class, self.occlusion, plan.seed)

    def fetch(self) -> None:
        """Fetch MNIST into the cache, if it is not there."""
        if self.source == "mnist":
            load_mnist("train")
            load_mnist("test")

    def can_validate(self) -> bool:
        """Whether digits are held out."""
        return self.holdout > 0

    @property
    def split_by(self) -> str:
        """The kind of split."""
        return self.split

    @property
    def split_settings(self) -> str:
        """Split and holdout, as an error message names them."""
        return f"data.split = {self.split!r} and data.holdout = {self.holdout:g}"

    @property
    def summary(self) -> str:
        """How many digits."""
        return f"{self.digits} digits"
