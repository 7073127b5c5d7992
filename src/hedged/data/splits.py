"""Splits by identity: what is tested was never seen in training."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self, TypeVar, final

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from hedged._section import Seed, Share
from hedged.data.config import DataSection
from hedged.data.dataset import NamedDataset, Splits
from hedged.data.random import Purpose, keyed
from hedged.errors import DataError

Names = NDArray[np.str_]
SplitBy = Literal["share", "pattern", "column"]
N = TypeVar("N", bound=NamedDataset)
PART_NAMES = {"train": "train", "training": "train", "test": "test", "val": "validation", "valid": "validation"}
PART_NAMES |= {"validation": "validation", "dev": "validation"}

logger = logging.getLogger("hedged")


@final
@dataclass(frozen=True)
class SplitRule:
    """Which identities are tested, and which of the others are kept for validation.

    Args:
        by: "share" draws a share of the identities; "pattern" takes those in which a regular expression is found;
            "column" goes by the column `split` of a table.
        test_share: with "share", the share of the identities that are tested; 0: none are.
        test_pattern: with "pattern", the regular expression.
        validation_share: the share of the other identities that is kept for validation, unless the column has some.
        seed: draws the shares.
    """

    by: SplitBy = "share"
    test_share: float = 0.2
    test_pattern: str = ""
    validation_share: float = 0.1
    seed: int = 0


class IdentitySplitSection(DataSection):
    """The keys of a `SplitRule`, in the sections [data] of all data that are split by identity.

    Args:
        split: what the tested identities are chosen by.
        test_share: share of the identities that are tested, drawn by the seed.
        test_pattern: regular expression, found in the identities that are tested.
        validation_share: share of the other identities, kept for validation.
        seed: seed of the split.
    """

    may_test_nobody: ClassVar[bool] = False  # whether test_share may be 0

    split: SplitBy = "share"
    test_share: Share = 0.2
    test_pattern: str = ""
    validation_share: Share = 0.1
    seed: Seed = 0

    @model_validator(mode="after")
    def _split_fits(self) -> Self:
        if (self.split == "pattern") != bool(self.test_pattern):
            raise ValueError('data.split = "pattern" and data.test_pattern go together: set both, or neither')
        if self.split == "share" and not self.test_share and not self.may_test_nobody:
            raise ValueError("data.test_share = 0 leaves nothing to test: set a share of the identities, such as 0.2")
        return self

    @property
    def rule(self) -> SplitRule:
        """The rule that these keys state."""
        return SplitRule(self.split, self.test_share, self.test_pattern, self.validation_share, self.seed)

    @property
    def split_by(self) -> str:
        """What the tested identities are chosen by."""
        return self.split

    @property
    def split_settings(self) -> str:
        """Split and validation share, as an error message names them."""
        return f"data.split = {self.split!r} and data.validation_share = {self.validation_share:g}"

    def more_validation(self, needed: int, identities: int) -> str:
        """The key to change, and to what.

        Args:
            needed: how many should be kept.
            identities: how many there are to choose from.
        """
        if self.split == "column":
            return 'name more identities "validation" in the column `split`'
        return f"set data.validation_share = {enough_share(needed, identities):g} ({self.validation_share:g} now)"


def enough_share(needed: int, identities: int) -> float:
    """The share, in steps of 0.05, of which so many of the identities are kept; at most 0.9.

    Args:
        needed: how many should be kept.
        identities: how many there are.

    >>> enough_share(10, 50)
    0.2
    """
    return min(math.ceil(20 * needed / identities) / 20, 0.9)


def part_of_each(identities: Sequence[str] | Names, column: Sequence[str] | Names | None, rule: SplitRule) -> Names:
    """The part of each input: "train", "validation" or "test", (n,).

    Args:
        identities: the identity of each input, (n,).
        column: what the column `split` of a table says of each, if there is one.
        rule: how to choose.
    """
    names, labels = np.unique(np.array(identities, dtype=np.str_), return_inverse=True)
    if rule.by == "column":
        part = _by_column(column, names, labels)
    else:
        if column is not None:
            logger.warning('the column "split" is not used: set data.split = "column" to go by it')
        tested = _by_pattern(names, rule) if rule.by == "pattern" else _some(names, rule.test_share, rule.seed)
        part = np.where(np.isin(names[labels], tested), "test", "train")
    if rule.by == "column" and "validation" in part:
        return part
    rest = np.unique(names[labels[part == "train"]])
    held_out = _some(rest, rule.validation_share, rule.seed, Purpose.HOLDOUT)
    part = part.astype("<U10")
    part[np.isin(names[labels], held_out)] = "validation"
    return part


def _some(names: Names, share: float, seed: int, purpose: Purpose = Purpose.CLASSES) -> Names:
    """A share of the identities, at least one if it is not 0; the same for the same names, whatever their photos."""
    return keyed(seed, purpose).permutation(names)[: math.ceil(share * len(names))]


def _by_pattern(names: Names, rule: SplitRule) -> Names:
    pattern = compile_pattern("data.test_pattern", rule.test_pattern)
    return names[[pattern.search(str(name)) is not None for name in names]]


def compile_pattern(key: str, text: str, groups: int = 0) -> re.Pattern[str]:
    """A regular expression that a config gives, checked.

    Args:
        key: of the config, for messages.
        text: the expression.
        groups: how many groups it must have; 0: any number.
    """
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise DataError(f"{key} = {text!r} is not a regular expression: {error}") from error
    if groups and pattern.groups != groups:
        raise DataError(
            f"{key} = {text!r} has {pattern.groups} groups, expected one, in brackets, around the name: "
            r"such as '^([^_]+)_'"
        )
    return pattern


def _by_column(column: Sequence[str] | Names | None, names: Names, labels: NDArray[np.intp]) -> Names:
    if column is None:
        raise DataError('data.split = "column" needs a file with a column "split": there is none')
    unknown = sorted({str(part) for part in column if part.lower() not in PART_NAMES})
    if unknown:
        raise DataError(f'the column "split" says {unknown[0]!r}, expected one of {", ".join(PART_NAMES)}')
    part = np.array([PART_NAMES[name.lower()] for name in column])
    seen: dict[int, str] = {}
    for label, name in zip(labels.tolist(), part.tolist(), strict=True):
        if seen.setdefault(label, name) != name:
            raise DataError(
                f"{names[label]} has inputs in {seen[label]} and in {name}: a test on new identities must not "
                'contain one that was trained on. Correct the column "split"'
            )
    return part


def cut(whole: N, part: Names, rule: SplitRule) -> Splits[N]:
    """The parts of a set; a part to train on must not be empty, nor one to test, unless a share of 0 was asked for.

    Args:
        whole: the set.
        part: "train", "validation" or "test" for each input, as `part_of_each` gives them.
        rule: what made them; an error message refers to it.
    """
    train, validation, test = (whole.subset(np.flatnonzero(part == name)) for name in ("train", "validation", "test"))
    tests_nobody = rule.by == "share" and not rule.test_share
    for name, inputs in (("train on", train), ("test", test)):
        if not len(inputs) and not (name == "test" and tests_nobody):
            raise DataError(f"this split leaves none of the {len(whole):,} inputs to {name}: {_advice(rule)}")
    return Splits(train, validation if len(validation) else None, {} if tests_nobody else {"test": test})


def _advice(rule: SplitRule) -> str:
    if rule.by == "pattern":
        return f"data.test_pattern = {rule.test_pattern!r} must be found in some identities and not in others"
    return "it needs at least two identities, and three with a validation part"
