"""Photos decoded once, by all cores, into one uint8 array on disk that is then read a batch at a time."""

from __future__ import annotations

import hashlib
import logging
import math
import os
import warnings
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, final

import numpy as np

from hedged._decode import Pixels, file_bytes, read_middle
from hedged._files import make_folder, write_atomically, write_json
from hedged._parallel import cores
from hedged._progress import progress
from hedged._reading import read_json
from hedged.data.arrays import map_npy
from hedged.data.cache import cache_folder
from hedged.data.config import Broken
from hedged.errors import DataError, RunError

FORMAT = 1  # of the pixels: raise it whenever the same file would be decoded to others
PHOTOS_PER_TASK = 16  # photos that a thread takes at a time
PIXELS, FILES = "pixels.npy", "files.json"
MAX_FILES_BYTES = 2**28  # of the list of broken files, which may be all of a million
MAX_NAMED = 100  # broken files that are named one by one

logger = logging.getLogger("hedged")


@final
@dataclass(frozen=True, eq=False)
class Decoded:
    """Decoded photos.

    Args:
        pixels: uint8 (n, side, side, 3), mapped from disk.
        broken: why a file could not be decoded, by its place.
    """

    pixels: Pixels
    broken: dict[int, str]


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
    try:
        files = _files(folder)
        if files is None or files["content"] != _digest(_contents(paths)):
            _fill(folder, paths, side)
            files = _files(folder) or {}
        pixels = map_npy(folder / PIXELS)
        broken = {int(i): str(why) for i, why in files["broken"].items()}
    except (OSError, EOFError, ValueError, AttributeError, KeyError, TypeError) as error:
        raise DataError(f"the cache of photos in {folder} is damaged ({error}): delete that folder") from error
    if pixels.shape != (len(paths), side, side, 3) or pixels.dtype != np.uint8:
        raise DataError(f"the cache of photos in {folder} is damaged: delete that folder")
    return Decoded(pixels, broken)


def _key(paths: Sequence[Path], side: int) -> str:
    """A hash of what is asked for: which files, of whatever content."""
    return hashlib.sha256(repr((FORMAT, side, [os.path.abspath(path) for path in paths])).encode()).hexdigest()[:24]


def _files(folder: Path) -> dict[str, Any] | None:
    """What was kept of the files, if their pixels are there and whole."""
    if not (folder / PIXELS).exists() or not (folder / FILES).exists():
        return None
    files: dict[str, Any] = read_json(folder / FILES, MAX_FILES_BYTES)
    return files


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


def _fill(folder: Path, paths: Sequence[Path], side: int) -> None:
    hashes: dict[int, bytes] = {}
    broken: dict[int, str] = {}
    try:
        make_folder(folder)
        (folder / FILES).unlink(missing_ok=True)  # first: it tells that the pixels are whole and of which content
        write_atomically(folder / PIXELS, lambda part: _decode(part, paths, side, hashes, broken))
        content = _digest(hashes.get(i, b"") for i in range(len(paths)))
        write_json(folder / FILES, {"content": content, "broken": dict(sorted(broken.items()))})
    except RunError as error:
        raise DataError(f"cannot keep decoded photos: {error}. Set HEDGED_CACHE to a folder with room") from error


def _decode(file: Path, paths: Sequence[Path], side: int, hashes: dict[int, bytes], broken: dict[int, str]) -> None:
    """Decode into a new .npy file; tell the hash of each file that can be read, and why the broken ones are broken."""

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
