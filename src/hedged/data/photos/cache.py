"""Photos decoded once, by all cores, into one uint8 array on disk that is then read a batch at a time."""

from __future__ import annotations

import hashlib
import logging
import math
import os
import warnings
import zlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO, final

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

from hedged._decode import Pixels, file_bytes, read_middle
from hedged._files import make_folder, write_atomically, write_json
from hedged._parallel import cores
from hedged._progress import progress
from hedged._reading import read_json
from hedged.data.arrays import map_npy
from hedged.data.cache import cache_folder
from hedged.data.config import Broken
from hedged.errors import DataError, RunError

FORMAT = 2  # raise it whenever the same file would be decoded to other pixels, or others files are kept
PHOTOS_PER_TASK = 16  # photos that a thread takes at a time
PIXELS, FILES = "pixels.npy", "files.json"
CHECKSUM = np.dtype("<u4")
MAX_FILES_BYTES = 2**28  # of what is kept of them: all of a million may be broken
MAX_NAMED = 100  # broken files that are named one by one

logger = logging.getLogger("hedged")


@final
class Squares:
    """Decoded photos on disk, each of them compared with its checksum whenever it is read.

    Args:
        folder: of the cache, for messages.
        pixels: uint8 (n, side, side, 3), mapped from disk.
        checksums: CRC-32 of the pixels of each photo, (n,).
    """

    def __init__(self, folder: Path, pixels: Pixels, checksums: NDArray[np.uint32]) -> None:
        self._folder, self._pixels, self._checksums = folder, pixels, checksums

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, side, side, 3)."""
        return self._pixels.shape

    def __len__(self) -> int:
        return len(self._pixels)

    def __getitem__(self, rows: NDArray[np.int64]) -> Pixels:
        found = np.asarray(self._pixels[rows])
        for row, square in zip(rows, found, strict=True):
            if zlib.crc32(square) != self._checksums[row]:
                raise _damaged(self._folder, f"photo {row + 1} in it is not what was written")
        return found


@final
@dataclass(frozen=True, eq=False)
class Decoded:
    """Decoded photos.

    Args:
        pixels: the squares.
        broken: why a file could not be decoded, by its place.
    """

    pixels: Squares
    broken: dict[int, str]


@final
class Kept(BaseModel):
    """What is kept beside the pixels, written after them: it tells that they are whole.

    Args:
        content: a hash of the content of all files.
        broken: why a file could not be decoded, by its place.
        squares: CRC-32 of the pixels of each photo, in hexadecimal digits.
        checksum: of all of that.
    """

    content: str
    broken: dict[int, str]
    squares: str
    checksum: int = 0

    def sealed(self) -> Kept:
        """The same with its checksum."""
        return self.model_copy(update={"checksum": zlib.crc32(self.model_dump_json(exclude={"checksum"}).encode())})


def decode_all(paths: Sequence[Path], side: int, cache: Path | None = None) -> Decoded:
    """The middle squares of all photos, from the cache if these files, with this content, were decoded before.

    The cache is `cache`, else $HEDGED_CACHE/photos, else hedged/photos in the user's cache; to delete it costs no more
    than decoding again.

    Args:
        paths: the image files.
        side: pixels a side of a square.
        cache: the folder of the cache.
    """
    folder = (cache or cache_folder("photos")) / _key(paths, side)
    kept = _read(folder)
    if kept is None or kept.content != _digest(_contents(paths)):
        kept = _fill(folder, paths, side)
    try:
        pixels, checksums = map_npy(folder / PIXELS), np.frombuffer(bytes.fromhex(kept.squares), CHECKSUM)
    except (OSError, ValueError) as error:
        raise _damaged(folder, str(error)) from error
    is_ours = pixels.shape == (len(paths), side, side, 3) and pixels.dtype == np.uint8 and pixels.flags.c_contiguous
    if not is_ours or len(checksums) != len(paths):
        raise _damaged(folder, "it is of other photos")
    return Decoded(Squares(folder, pixels, checksums), kept.broken)


def _damaged(folder: Path, reason: str) -> DataError:
    return DataError(f"the cache of photos in {folder} is damaged ({reason}): delete that folder, it is made again")


def _key(paths: Sequence[Path], side: int) -> str:
    """A hash of what is asked for: which files, of whatever content."""
    return hashlib.sha256(repr((FORMAT, side, [os.path.abspath(path) for path in paths])).encode()).hexdigest()[:24]


def _read(folder: Path) -> Kept | None:
    """What was kept of the files, if their pixels are there and whole."""
    if not (folder / PIXELS).exists() or not (folder / FILES).exists():
        return None
    try:
        kept = Kept.model_validate(read_json(folder / FILES, MAX_FILES_BYTES))
    except (OSError, ValidationError, ValueError) as error:
        raise _damaged(folder, f"{FILES} cannot be read") from error
    if kept.sealed() != kept:
        raise _damaged(folder, f"{FILES} is not what was written")
    return kept


def _contents(paths: Sequence[Path]) -> list[bytes]:
    """A hash of the content of each file; of one that cannot be read, which is among the broken, nothing."""

    def block(start: int) -> list[bytes]:
        hashes = []
        for path in paths[start : start + PHOTOS_PER_TASK]:
            try:
                hashes.append(_hash(file_bytes(path)))
            except DataError:
                hashes.append(b"")
        return hashes

    with ThreadPoolExecutor(cores()) as pool:
        return list(chain.from_iterable(pool.map(block, range(0, len(paths), PHOTOS_PER_TASK))))


def _hash(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=32).digest()


def _digest(hashes: Iterable[bytes]) -> str:
    return hashlib.sha256(b" ".join(hashes)).hexdigest()


def _fill(folder: Path, paths: Sequence[Path], side: int) -> Kept:
    hashes: dict[int, bytes] = {}
    broken: dict[int, str] = {}
    checksums = np.zeros(len(paths), CHECKSUM)
    try:
        make_folder(folder)
        (folder / FILES).unlink(missing_ok=True)  # first: it tells that the pixels are whole and of which content
        write_atomically(folder / PIXELS, lambda part: _decode(part, paths, side, hashes, broken, checksums))
        content = _digest(hashes.get(i, b"") for i in range(len(paths)))
        kept = Kept(content=content, broken=dict(sorted(broken.items())), squares=checksums.tobytes().hex()).sealed()
        write_json(folder / FILES, kept.model_dump())
    except RunError as error:
        raise DataError(f"cannot keep decoded photos: {error}. Set HEDGED_CACHE to a folder with room") from error
    return kept


def _decode(
    file: Path,
    paths: Sequence[Path],
    side: int,
    hashes: dict[int, bytes],
    broken: dict[int, str],
    checksums: NDArray[np.uint32],
) -> None:
    """Decode into a new .npy file; tell the hash of each file that can be read, why the broken ones are broken, and
    the checksum of the pixels of each.
    """

    def block(start: int) -> int:
        end = min(start + PHOTOS_PER_TASK, len(paths))
        pixels = np.zeros((end - start, side, side, 3), np.uint8)
        for i in range(start, end):
            try:
                content = file_bytes(paths[i])
                hashes[i] = _hash(content)
                pixels[i - start] = read_middle(paths[i], side, content)
            except DataError as error:
                broken[i] = str(error)
            checksums[i] = zlib.crc32(pixels[i - start])
        os.pwrite(out.fileno(), pixels.data, header + start * pixels[0].nbytes)  # twice as quick as to write to a map
        return end

    pool = ThreadPoolExecutor(cores(), thread_name_prefix="hedged-decode")
    # Pillow warns of what is odd in a file; what matters of it is reported as broken. (The filter is for all threads.)
    with file.open("wb") as out, warnings.catch_warnings(), progress("decoding photos", len(paths)) as update:
        warnings.simplefilter("ignore")
        header = _begin(out, (len(paths), side, side, 3))
        try:
            for done in pool.map(block, range(0, len(paths), PHOTOS_PER_TASK)):
                update(done, f"{len(broken)} broken" if broken else "")
        finally:
            pool.shutdown(cancel_futures=True)


def _begin(file: BinaryIO, shape: tuple[int, ...]) -> int:
    """Write the header of a .npy file and claim the space for all of it; the size of the header.

    A full disk is then an error at once, not when most of the photos are decoded.
    """
    described = {"descr": "|u1", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, described)
    file.flush()
    header = file.tell()
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, header + math.prod(shape))
    else:
        file.truncate(header + math.prod(shape))
    return header


def report_broken(decoded: Decoded, policy: Broken) -> None:
    """Warn of files that could not be decoded; refuse them if that is the policy, or if there are no others.

    Args:
        decoded: what was decoded.
        policy: "skip" or "refuse".
    """
    if not decoded.broken:
        return
    named = [decoded.broken[i] for i in sorted(decoded.broken)][:MAX_NAMED]
    if len(decoded.broken) > MAX_NAMED:
        named.append(f"… and {len(decoded.broken) - MAX_NAMED:,} others")
    words = f"{len(decoded.broken):,} of {len(decoded.pixels):,} images are broken"
    lines = "".join(f"\n  {line}" for line in named)
    if policy == "refuse":
        raise DataError(f'{words}: repair or remove them, or set data.broken = "skip"{lines}')
    if len(decoded.broken) == len(decoded.pixels):
        raise DataError(f"all {len(decoded.pixels):,} images are broken{lines}")
    logger.warning("%s and skipped:%s", words, lines)
