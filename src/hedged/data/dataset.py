"""What a model is trained and measured on: `Dataset`, its parts (`Splits`) and its training batches (`Batches`).

Each kind of data has a package: `ndigit`, `photos`, `features`. Callers ask a dataset what they need to know (has it
pictures to show? which numbers of the paper go with it?), never which kind it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar, final

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from hedged.errors import DataError


class Dataset(ABC):
    """Labelled inputs, each clean and as a corrupt twin.

    A new kind of data implements `damage`, `clean` and `corrupt` and has the attributes `labels` and `source`; the
    rest has defaults that suit inputs of identities.
    """

    if TYPE_CHECKING:  # fields of most kinds: an abstract property of the same name would be taken for their default

        @property
        def labels(self) -> Tensor:
            """The class of each input, int64 (n,)."""
            ...

        @property
        def source(self) -> str:
            """Where the inputs come from; reports and metrics name it."""
            ...

    @property
    @abstractmethod
    def damage(self) -> str:
        """What was done to the corrupt twins, in words."""

    @abstractmethod
    def clean(self, index: Tensor | None = None) -> Tensor:
        """The inputs as an `Embedder` takes them.

        Args:
            index: which ones, int64 (b,); all by default.
        """

    @abstractmethod
    def corrupt(self, seed: int, index: Tensor | None = None) -> Tensor:
        """The corrupt twins of `clean(index)`. The twin of an input depends on the seed alone, not on the index.

        Args:
            seed: draws the damage.
            index: which ones, int64 (b,); all by default.
        """

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(np.unique(self.labels.numpy()))

    @property
    def subject(self) -> str:
        """What two inputs of one class share, in a word: "number", "identity"."""
        return "identity"

    @property
    def input_name(self) -> str:
        """What one input is, in a word: "image", "vector"; reports, tables and messages call it that."""
        return "image" if self.has_pictures else "input"

    @final
    @property
    def inputs(self) -> str:
        """What several of them are: "images", "vectors"."""
        return f"{self.input_name}s"

    @property
    def contents(self) -> str:
        """What the inputs are of, in a few words: "2 digits, 100 classes"."""
        return f"{self.n_classes} identities"

    @property
    def has_pictures(self) -> bool:
        """Whether `clean` and `corrupt` return pixels (uint8) that a report can show."""
        return True

    @property
    def paper_task(self) -> PaperTask | None:
        """The task of the paper that this is, if it is one; then it is measured as the paper measures it."""
        return None

    def name(self, label: int) -> str:
        """A class as people write it.

        Args:
            label: the class, as in `labels`.
        """
        return str(label)


@final
@dataclass(frozen=True)
class PaperTask:
    """N-digit MNIST, whose numbers the paper reports.

    Args:
        digits: N, the digits of an image.
        warning: loud words if the digits are not MNIST's, for then the paper's numbers are no comparison.
    """

    digits: int
    warning: str = ""

    @property
    def comparable(self) -> bool:
        """Whether measurements may be held against the paper's numbers."""
        return not self.warning


class NamedDataset(Dataset):
    """Inputs of identities that have names: input i is of `names[labels[i]]`. Sets of them are split by identity."""

    if TYPE_CHECKING:

        @property
        def names(self) -> Sequence[str]:
            """The names of the identities, by label."""
            ...

    def name(self, label: int) -> str:
        """The name of an identity.

        Args:
            label: the identity, as in `labels`.
        """
        return self.names[label]

    @abstractmethod
    def subset(self, places: NDArray[np.intp]) -> Self:
        """Some of the inputs.

        Args:
            places: which ones, (b,).
        """


D_co = TypeVar("D_co", bound=Dataset, covariant=True)


@final
@dataclass(frozen=True, eq=False)
class Splits(Generic[D_co]):
    """The parts of a set.

    Args:
        train: what a model is trained on.
        validation: what settings and thresholds are chosen on, if anything was kept for it.
        test: test sets by name; the first is measured unless another is asked for. A run that kept nothing to test has
            none.
    """

    train: D_co
    validation: D_co | None
    test: Mapping[str, D_co]

    @property
    def first_test(self) -> tuple[str, D_co]:
        """The name of the first test set and the set itself; refused if there is none."""
        if not self.test:
            raise DataError(
                "this run kept no identities to test: all were fitted to. Fit again with some kept, as "
                "`hedged retrofit VECTORS --out RUN --test-share 0.2`"
            )
        return next(iter(self.test.items()))


@final
@dataclass(frozen=True, eq=False)
class Batch:
    """What a training step sees.

    Args:
        images: float32 (B, C, H, W) in [0, 1], or vectors (B, F).
        labels: int64 (B,).
    """

    images: Tensor
    labels: Tensor


class Batches(Protocol):
    """The batches of a run. Each depends on the step alone, so that to resume is to ask for the next."""

    def batch(self, step: int) -> Batch:
        """The batch of a step.

        Args:
            step: from 0.
        """
        ...
