"""Photos decoded once, by all cores, into one uint8 array on disk that is then read a batch at a time."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np

from hedged.cores import cores
from hedged.data.cache import cache_folder
from hedged.data.decode import Pixels, read_middle
from hedged.errors import DataError, RunError
from hedged.files import make_folder, write_atomically, write_json
from hedged.progress import progress

FORMAT = 1  # of the pixels: raise it whenever the same file would be decoded to others
BLOCK = 16  # photos that a thread takes at a time
PIXELS, BROKEN = "pixels.npy", "broken.json"


@final
@dataclass(frozen=True, eq=False)
class Decoded:
    """`pixels` uint8 (n, side, side, 3), mapped from disk; `broken` tells why a file has none, by its place."""

    pixels: Pixels
    broken: dict[int, str]


def decode_all(paths: Sequence[Path], side: int, cache: Path | None = None) -> Decoded:
    """The middle squares of all photos, from the cache if these files were decoded before.

    They are known by path and content. The cache is `cache`, else $HEDGED_CACHE/photos, else hedged/photos
    in the user's cache; to delete it costs no more than decoding again.
    """
    folder = (cache or cache_folder("photos")) / _key(paths, side)
    if not (folder / BROKEN).exists() or not (folder / PIXELS).exists():
        _fill(folder, paths, side)
    try:
        pixels = np.load(folder / PIXELS, mmap_mode="r")
        broken = {int(i): str(why) for i, why in json.loads((folder / BROKEN).read_text(encoding="utf-8")).items()}
    except (OSError, EOFError, ValueError, AttributeError) as error:
        raise DataError(f"the cache of photos in {folder} is damaged ({error}): delete that folder") from error
    if pixels.shape != (len(paths), side, side, 3) or pixels.dtype != np.uint8:
        raise DataError(f"the cache of photos in {folder} is damaged: delete that folder")
    return Decoded(pixels, broken)


def _key(paths: Sequence[Path], side: int) -> str:
    """A hash that changes with any of the files."""
    digest = hashlib.sha256(f"{FORMAT} {side}".encode())
    with ThreadPoolExecutor(cores()) as pool:
        for path, content in zip(paths, pool.map(_content, paths), strict=True):
            digest.update(repr((os.path.abspath(path), content)).encode())
    return digest.hexdigest()[:24]


def _content(path: Path) -> str:
    """A hash of a file's bytes; of a file that cannot be read, which is to be reported among the broken, nothing."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "blake2b").hexdigest()
    except OSError:
        return ""


def _fill(folder: Path, paths: Sequence[Path], side: int) -> None:
    broken: dict[int, str] = {}
    try:
        make_folder(folder)
        write_atomically(folder / PIXELS, lambda part: broken.update(_decode(part, paths, side)))
        write_json(folder / BROKEN, broken)  # last: it tells that the pixels are whole
    except RunError as error:
        raise DataError(f"cannot keep decoded photos: {error}. Set HEDGED_CACHE to a folder with room") from error


def _decode(file: Path, paths: Sequence[Path], side: int) -> dict[int, str]:
    """Decode into a new .npy file; why the broken ones are broken."""
    pixels = np.lib.format.open_memmap(file, mode="w+", dtype=np.uint8, shape=(len(paths), side, side, 3))
    _reserve(file)

    def block(start: int) -> dict[int, str]:
        failures = {}
        for i in range(start, min(start + BLOCK, len(paths))):
            try:
                pixels[i] = read_middle(paths[i], side)
            except DataError as error:
                failures[i] = str(error)
        return failures

    broken: dict[int, str] = {}
    pool = ThreadPoolExecutor(cores(), thread_name_prefix="hedged-decode")
    # Pillow warns of what is odd in a file; what matters of it is reported as broken. (The filter is for all threads.)
    with warnings.catch_warnings(), progress("decoding photos", len(paths)) as update:
        warnings.simplefilter("ignore")
        try:
            starts = range(0, len(paths), BLOCK)
            for start, failures in zip(starts, pool.map(block, starts), strict=True):
                broken |= failures
                update(min(start + BLOCK, len(paths)), f"{len(broken)} broken" if broken else "")
        finally:
            pool.shutdown(cancel_futures=True)
    pixels.flush()
    return broken


def _reserve(file: Path) -> None:
    """Claim the space now: a full disk is then an error in words, not a crash at the first page that has no room."""
    if hasattr(os, "posix_fallocate"):
        with file.open("r+b") as opened:
            os.posix_fallocate(opened.fileno(), 0, file.stat().st_size)
