"""Parts of a set of photos that share no identity: what is tested was never seen in training."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
import torch
from numpy.typing import NDArray

from hedged.data.photos.cache import Decoded
from hedged.data.photos.listing import Listing, compile_pattern
from hedged.data.photos.photos import Photos
from hedged.data.randomness import Purpose, keyed
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


@final
@dataclass(frozen=True, eq=False)
class PhotoSplits:
    """Photos of identities to train on, to choose settings by, and to test."""

    train: Photos
    validation: Photos | None
    test: Mapping[Literal["test"], Photos]


def split_photos(listing: Listing, decoded: Decoded, size: int, rule: SplitRule, source: str) -> PhotoSplits:
    """Cut a set into parts by identity."""
    names, labels = np.unique(np.array(listing.identities, dtype=np.str_), return_inverse=True)
    rows = np.array([i for i in range(len(listing)) if i not in decoded.broken], dtype=np.int64)
    whole = Photos(
        decoded.pixels,
        rows,
        torch.from_numpy(labels[rows].astype(np.int64)),
        names.tolist(),
        [listing.paths[i] for i in rows],
        size,
        source,
    )
    part = part_of_each(listing.identities, listing.parts, rule)
    train, validation, test = (
        whole.subset(np.flatnonzero(part[rows] == name)) for name in ("train", "validation", "test")
    )
    for name, photos in (("train on", train), ("test", test)):
        if not len(photos):
            raise DataError(f"this split leaves no photo to {name} of the {len(rows):,}: {_advice(rule)}")
    return PhotoSplits(train, validation if len(validation) else None, {"test": test})


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


def _advice(rule: SplitRule) -> str:
    if rule.by == "pattern":
        return f"data.test_pattern = {rule.test_pattern!r} is to be found in some identities and not in others"
    return "it needs at least two identities, and three with a validation part"
