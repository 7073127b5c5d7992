"""The write-ahead log of an embedded store, read without SQLite: which takes a damaged log for one that ends earlier.

A log is a header, then frames, each with a page. A frame repeats two numbers of the header, its salts, which tell it
from what is left of the log before it was begun anew; it has a checksum of all frames up to it; the last frame of a
write says so.
"""

from __future__ import annotations

import struct
import time
from functools import cache
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

HEADER, FRAME = 32, 24  # bytes: of the header, and of what is before the page of a frame
PAGES = tuple(2**power for power in range(9, 17))  # sizes that there are
ORDERS = {0x377F0682: "<u4", 0x377F0683: ">u4"}  # how checksums read numbers, by the first number of the header
FRAMES_AT_ONCE = 512
AGAIN_SECONDS = 0.05  # in which a writer in the middle of a frame goes on
MODULUS = 2**32

Sums = tuple[int, int]


class _Content(NamedTuple):
    """What a log holds: its header, how many frames are whole, and the number of the last one that ends a write."""

    header: bytes
    whole: int
    last: int


def fault_of_log(log: Path) -> str:
    """What is wrong with a log in which there are finished writes that SQLite would pass over; empty if nothing is.

    Args:
        log: The file, which need not be there.
    """
    before = _read(log)
    if before.last <= before.whole:
        return ""
    time.sleep(AGAIN_SECONDS)
    if _read(log) != before:  # another process is writing it
        return ""
    return f"its log {log} is damaged, so that frames {before.whole + 1:,} to {before.last:,} cannot be read"


def _read(log: Path) -> _Content:
    """What a log holds. Of one without a valid header all frames count as writes, for nobody knows."""
    try:
        with log.open("rb") as file:
            header = file.read(HEADER)
            page = _page_size(header)
            if page is None:
                rest = max(log.stat().st_size - HEADER, 0)
                return _Content(header, 0, rest // (FRAME + PAGES[0]))
            return _Content(header, *_frames(file, header, page))
    except FileNotFoundError:
        return _Content(b"", 0, 0)


def _page_size(header: bytes) -> int | None:
    """The size of the pages of a log; None if its header is not what was written."""
    if len(header) < HEADER:
        return None
    magic, _, page, *_, first, second = struct.unpack(">8I", header)
    if magic not in ORDERS or page not in PAGES:
        return None
    words = np.frombuffer(header[: HEADER - 8], ORDERS[magic])[None]
    return page if _step((0, 0), words.shape[1], _parts(words)[0]) == (first, second) else None


def _frames(file: BinaryIO, header: bytes, page: int) -> tuple[int, int]:
    """How many frames are whole, and the number of the last one that ends a write, be it whole or not."""
    magic, *_, salt_1, salt_2, first, second = struct.unpack(">8I", header)
    sums, whole, last, number, is_whole = (first, second), 0, 0, 0, True
    while content := file.read(FRAMES_AT_ONCE * (FRAME + page)):
        frames = np.frombuffer(content[: len(content) // (FRAME + page) * (FRAME + page)], np.uint8)
        frames = frames.reshape(-1, FRAME + page)
        heads = np.ascontiguousarray(frames[:, :FRAME]).view(">u4").tolist()
        words = np.concatenate([frames[:, :8], frames[:, FRAME:]], axis=1).view(ORDERS[magic])
        parts = _parts(words) if is_whole else None
        for i, (_, size, *salts, sum_1, sum_2) in enumerate(heads):
            number += 1
            if is_whole and parts is not None:
                sums = _step(sums, words.shape[1], parts[i])
                is_whole = salts == [salt_1, salt_2] and sums == (sum_1, sum_2)
                whole += is_whole
            if size and (salts[0] == salt_1 or salts[1] == salt_2):  # one of them may be what is damaged
                last = number
    return whole, last


def _step(sums: Sums, count: int, part: Sums) -> Sums:
    """Checksums after `count` more numbers, whose own part in them is known."""
    a, b, d = _power(count // 2)
    return (a * sums[0] + b * sums[1] + part[0]) % MODULUS, (b * sums[0] + d * sums[1] + part[1]) % MODULUS


def _parts(words: NDArray[np.uint32]) -> list[Sums]:
    """What each row of numbers adds to the checksums.

    SQLite takes numbers in pairs: s₀ ← s₀ + x₀ + s₁, s₁ ← s₁ + x₁ + s₀, modulo 2³². That is linear, so that the part of
    a whole row is a product with fixed weights.

    Args:
        words: `(n, count)`, an even count.
    """
    first, second = (words.astype(np.uint32) @ weights for weights in _weights(words.shape[1]))
    return list(zip(first.tolist(), second.tolist(), strict=True))


@cache
def _weights(count: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """The weights of so many numbers in either checksum."""
    first, second = [], []
    a, b, d = 1, 0, 1
    for _ in range(count // 2):  # from the last pair to the first
        first += [b, a + b]  # a pair (x₀, x₁) adds x₀ to the one checksum and x₀ + x₁ to the other
        second += [d, b + d]
        a, b, d = _next(a, b, d)
    return _reversed(first), _reversed(second)


def _reversed(weights: list[int]) -> NDArray[np.uint32]:
    return np.array(weights[::-1], np.uint64).astype(np.uint32)


@cache
def _power(count: int) -> tuple[int, int, int]:
    """The matrix ((1, 1), (1, 2)), a step of the checksums, to a power: its numbers a, b and d, of ((a, b), (b, d))."""
    numbers = 1, 0, 1
    for _ in range(count):
        numbers = _next(*numbers)
    return numbers


def _next(a: int, b: int, d: int) -> tuple[int, int, int]:
    return (a + b) % MODULUS, (b + d) % MODULUS, (b + 2 * d) % MODULUS
