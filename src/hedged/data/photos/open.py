"""From a folder or a table of photos to parts that are ready to train and test on."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Literal

from hedged.data.photos.cache import Decoded, decode_all
from hedged.data.photos.listing import FOLDER, list_photos
from hedged.data.photos.splits import PhotoSplits, SplitRule, split_photos
from hedged.errors import DataError

Broken = Literal["skip", "refuse"]
NAMED = 100  # broken files that are named one by one

logger = logging.getLogger("hedged")


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
