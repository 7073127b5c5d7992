"""The section [data] of a config: `DataSection` is what every kind of data has, and its key `source` names the kind.

To add a kind of data, write a `Dataset` and a section for it in a file of their own:

    class ToneSection(DataSection):
        source: Literal["tones"]
        path: str
        ...

From then on `data.source = "tones"` means this section, and training, evaluation and the command line work with it.
`tests/data/test_a_new_kind_of_data.py` is a whole example.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal, TypeVar

from hedged._section import KindSection
from hedged.data.dataset import Batches, Dataset, Splits
from hedged.data.sampling import BatchPlan
from hedged.errors import ConfigError

Broken = Literal["skip", "refuse"]  # what to do with files that cannot be decoded
D = TypeVar("D", bound=Dataset)


class DataSection(KindSection):
    """Which data, from where, split and augmented how.

    A subclass whose key `source` is a `Literal` is the section of the sources that the literal names.

    Args:
        source: the kind of data.
    """

    kind_key: ClassVar[str] = "data.source"
    default_kind: ClassVar[str] = "mnist"
    default_backbone: ClassVar[str | None] = None  # of a model that names none, if not the usual one

    source: str

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The shape of an input: channels, height and width of an image, or the length of a vector."""

    @property
    def resize(self) -> int | None:
        """The shorter edge that image files are resized to before their middle is taken; none: sizes must fit."""
        return None

    @abstractmethod
    def open(self) -> Splits[Dataset]:
        """Read the data, and split it."""

    @abstractmethod
    def batches(self, train: Dataset, plan: BatchPlan) -> Batches:
        """The batches of a training run, augmented as this section says.

        Args:
            train: what is trained on, a dataset as `open` gives it.
            plan: sizes and seed.
        """

    def fetch(self) -> None:
        """Do once what all runs on this data would do otherwise, each on its own: fetch files, fill caches."""

    def can_validate(self) -> bool:
        """Whether `open` will find data, some of it for validation, as far as can be told without reading it."""
        return True

    @property
    def has_given_twins(self) -> bool:
        """Whether corrupt twins were given with the data, not made of them."""
        return False

    @property
    def on_broken_file(self) -> Broken:
        """What to do with image files that cannot be decoded."""
        return "refuse"

    @property
    def split_by(self) -> str:
        """What the test set was chosen by, in a word; "" if there was nothing to choose."""
        return ""

    @property
    def split_settings(self) -> str:
        """The settings that the split depends on, as an error message names them."""
        return f'data.source = "{self.source}"'

    def more_validation(self, needed: int, identities: int) -> str:
        """How to keep more identities for validation, as an error message says it.

        Args:
            needed: how many should be kept.
            identities: how many there are to choose from, those that are trained on with those that are kept.
        """
        return f"keep more of them ({self.split_settings} now)"

    @property
    def summary(self) -> str:
        """The data in a word or two: "2 digits"."""
        return self.source


def checked(section: DataSection, train: Dataset, kind: type[D]) -> D:
    """The dataset itself, if it is of the kind that a section draws batches from.

    Args:
        section: the section [data] of the config.
        train: the dataset that was given to train on.
        kind: the dataset that the section opens.
    """
    if not isinstance(train, kind):
        raise ConfigError(
            f'data.source = "{section.source}" draws batches from {kind.__name__}, got {type(train).__name__}: train '
            "on build_data(config).train"
        )
    return train
