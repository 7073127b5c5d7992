"""Splits by identity: what is tested was never seen in training."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from hedged.data.random import Purpose, keyed
from hedged.errors import DataError

Names = NDArray[np.str_]
PARTS = {"train": "train", "training": "train", "test": "test", "val": "validation", "valid": "validation"}
PARTS |= {"validation": "validation", "dev": "validation"}

logger = logging.getLogger("hedged")


@final
@dataclass(frozen=True)
class SplitRule:
    """Which identities are tested: a share drawn by `seed`, those in which a regular expression is found, or what the
    column `split` says. Of the others a share is kept for validation, unless the column has such photos.
    """

    by: Literal["share", "pattern", "column"] = "share"
    test_share: float = 0.2
    test_pattern: str = ""
    validation_share: float = 0.1
    seed: int = 0


def part_of_each(identities: Sequence[str] | Names, column: Sequence[str] | Names | None, rule: SplitRule) -> Names:
    """The part of each item, given whom it shows and what the column `split` says, if there is one."""
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
    """A regular expression of a config, with so many groups if any are wanted."""
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise DataError(f"{key} = {text!r} is no regular expression: {error}") from error
    if groups and pattern.groups != groups:
        raise DataError(
            f"{key} = {text!r} has {pattern.groups} groups, expected one, in brackets, around the name: "
            r"such as '^([^_]+)_'"
        )
    return pattern


def _by_column(column: Sequence[str] | Names | None, names: Names, labels: NDArray[np.intp]) -> Names:
    if column is None:
        raise DataError('data.split = "column" needs a file with a column "split": there is none')
    unknown = sorted({str(part) for part in column if part.lower() not in PARTS})
    if unknown:
        raise DataError(f'the column "split" says {unknown[0]!r}, expected one of {", ".join(PARTS)}')
    part = np.array([PARTS[name.lower()] for name in column])
    seen: dict[int, str] = {}
    for label, name in zip(labels.tolist(), part.tolist(), strict=True):
        if seen.setdefault(label, name) != name:
            raise DataError(
                f"{names[label]} has photos in {seen[label]} and in {name}: a test says something of new identities "
                'only if none of them was trained on. Correct the column "split"'
            )
    return part


def split_advice(rule: SplitRule) -> str:
    if rule.by == "pattern":
        return f"data.test_pattern = {rule.test_pattern!r} is to be found in some identities and not in others"
    return "it needs at least two identities, and three with a validation part"
