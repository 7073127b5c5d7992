"""From a folder or a table of photos to parts that are ready to train and test on."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, final

import numpy as np
import torch

from hedged.data.photos.cache import Decoded, decode_all
from hedged.data.photos.dataset import Photos
from hedged.data.photos.listing import FOLDER, Listing, list_photos
from hedged.data.splits import SplitRule, part_of_each, split_advice
from hedged.errors import DataError

Broken = Literal["skip", "refuse"]
NAMED = 100  # broken files that are named one by one

logger = logging.getLogger("hedged")


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
            raise DataError(f"this split leaves no photo to {name} of the {len(rows):,}: {split_advice(rule)}")
    return PhotoSplits(train, validation if len(validation) else None, {"test": test})


def open_photos(
    path: Path,
    identity: str = FOLDER,
    size: int = 96,
    cached_size: int = 112,
    rule: SplitRule = SplitRule(),  # noqa: B008 (frozen)
    broken: Broken = "skip",
    cache: Path | None = None,
) -> PhotoSplits:
    """The parts of the photos that `path` holds or lists (see `list_photos`), decoded once into a cache.

    Of each photo the middle `cached_size` × `cached_size` is kept, resized; a network sees `size` × `size` of it.
    Files that cannot be decoded are named, and skipped or refused.
    """
    listing = list_photos(path, identity)
    decoded = decode_all(listing.paths, cached_size, cache)
    report_broken(decoded, broken)
    return split_photos(listing, decoded, size, rule, source=f"photos in {path}")


def report_broken(decoded: Decoded, policy: Broken) -> None:
    """Name the files that could not be decoded; refuse them if that is the policy, or if there are no others."""
    if not decoded.broken:
        return
    named = [decoded.broken[i] for i in sorted(decoded.broken)][:NAMED]
    if len(decoded.broken) > NAMED:
        named.append(f"… and {len(decoded.broken) - NAMED:,} others")
    words = f"{len(decoded.broken):,} of {len(decoded.pixels):,} images are broken"
    lines = "".join(f"\n  {line}" for line in named)
    if policy == "refuse":
        raise DataError(f'{words}: repair or remove them, or set data.broken = "skip"{lines}')
    if len(decoded.broken) == len(decoded.pixels):
        raise DataError(f"all {len(decoded.pixels):,} images are broken{lines}")
    logger.warning("%s and skipped:%s", words, lines)
