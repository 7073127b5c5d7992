"""Photos of identities: a set that batches are drawn from and a model is measured on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hedged._decode import Pixels
from hedged.data.config import Broken
from hedged.data.dataset import NamedDataset, Splits
from hedged.data.photos.cache import Decoded, Squares, decode_all, report_broken
from hedged.data.photos.corruption import DAMAGE, corrupted, draw_damage
from hedged.data.photos.listing import FOLDER, Listing, list_photos
from hedged.data.random import Purpose, keyed
from hedged.data.splits import SplitRule, cut, part_of_each
from hedged.errors import ShapeError

Rows = NDArray[np.int64]


@final
@dataclass(frozen=True, eq=False)
class Photos(NamedDataset):
    """Photos of identities. A network sees the middle `size` × `size` of each, a training step a random part of it.

    Args:
        pixels: decoded squares, m of S × S.
        rows: the row of `pixels` that each photo is, (n,).
        labels: the identity of each photo, int64 (n,).
        names: the names of the identities, by label.
        paths: the file of each photo.
        size: pixels a side that a network sees.
        source: where the photos come from.
    """

    pixels: Squares
    rows: Rows
    labels: Tensor
    names: Sequence[str]
    paths: Sequence[Path]
    size: int
    source: str

    def __post_init__(self) -> None:
        """Refuse parts that do not belong together."""
        n, side = len(self.rows), self.pixels.shape[1]
        if self.pixels.shape[1:] != (side, side, 3) or not self.size <= side:
            raise ShapeError(
                f"photos are squares (n, S, S, 3) of at least size = {self.size} pixels, got {self.pixels.shape}"
            )
        if self.labels.shape != (n,) or len(self.paths) != n:
            raise ShapeError(f"{n} photos need as many labels and paths, got {len(self.labels)} and {len(self.paths)}")

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def damage(self) -> str:
        """What was done to the corrupt twins, in words."""
        return DAMAGE

    def squares(self, index: Tensor | None = None) -> Pixels:
        """The decoded squares: uint8 (b, S, S, 3).

        Args:
            index: which photos, (b,); all by default.
        """
        rows = self.rows if index is None else self.rows[index.numpy()]
        return self.pixels[rows]

    def clean(self, index: Tensor | None = None) -> Tensor:
        """The middle of each photo: uint8 (b, 3, size, size).

        Args:
            index: which photos, (b,); all by default.
        """
        edge = (self.pixels.shape[1] - self.size) // 2
        rows = self.rows if index is None else self.rows[index.numpy()]
        middle = self.pixels[rows][:, edge : edge + self.size, edge : edge + self.size]
        return torch.from_numpy(middle).permute(0, 3, 1, 2)

    def corrupt(self, seed: int, index: Tensor | None = None) -> Tensor:
        """The twins of `clean`, each of low resolution or with a part hidden; that of photo i is always the same.

        Args:
            seed: draws the damage.
            index: which photos, (b,); all by default.
        """
        damage = draw_damage(len(self), self.size, keyed(seed, Purpose.TWIN))
        wanted = np.arange(len(self)) if index is None else index.numpy()
        return corrupted(self.clean(index), damage[wanted])

    def subset(self, places: NDArray[np.intp]) -> Photos:
        """Some of the photos.

        Args:
            places: which ones, (b,).
        """
        paths = [self.paths[i] for i in places]
        labels = self.labels[torch.from_numpy(places)]
        return Photos(self.pixels, self.rows[places], labels, self.names, paths, self.size, self.source)


def split_photos(listing: Listing, decoded: Decoded, size: int, rule: SplitRule, source: str) -> Splits[Photos]:
    """Decoded photos, split into parts that share no identity; broken ones are left out.

    Args:
        listing: all photos.
        decoded: their pixels.
        size: pixels a side that a network sees.
        rule: which identities are tested.
        source: where the photos come from.
    """
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
    return cut(whole, part[rows], rule)


def open_photos(
    path: str | Path,
    identity: str = FOLDER,
    size: int = 96,
    cached_size: int = 112,
    rule: SplitRule = SplitRule(),  # noqa: B008 (frozen)
    broken: Broken = "skip",
    cache: str | Path | None = None,
) -> Splits[Photos]:
    """The photos in a folder or a table (see `list_photos`), decoded once into a cache, and split by identity.

    Args:
        path: the folder, or the .csv or .parquet file.
        identity: what tells the identity of a photo in a folder.
        size: pixels a side that a network sees.
        cached_size: pixels a side that are kept of a photo: its shorter edge is resized to this, and the middle taken.
        rule: which identities are tested.
        broken: whether to skip files that cannot be decoded, or to refuse them all; either way they are named.
        cache: the folder of the cache.
    """
    listing = list_photos(path, identity)
    decoded = decode_all(listing.paths, cached_size, None if cache is None else Path(cache))
    report_broken(decoded, broken)
    return split_photos(listing, decoded, size, rule, source=f"photos in {path}")
