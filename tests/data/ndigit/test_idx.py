"""IDX files: what was written is read, and anything else is named."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedged.data.ndigit.idx import parse_idx
from hedged.errors import DataError


def idx(array: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> bytes:
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


@given(shape=st.lists(st.integers(0, 4), min_size=1, max_size=3), seed=st.integers(0, 99))
def test_round_trip(shape: list[int], seed: int) -> None:
    array = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
    assert (parse_idx(idx(array), array.ndim, "file").numpy() == array).all()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "starts with nothing, expected 00000801"),
        (b"<html>", "starts with 3c68746d, expected 00000801"),
        (bytes([0, 0, 8, 1, 0, 0]), "ends within its header: 6 of 8"),
        (bytes([0, 0, 8, 1, 0, 0, 0, 3, 1, 2]), r"should hold \(3,\) bytes .* it holds 2"),
        (bytes([0, 0, 8, 1, 0, 0, 0, 1, 1, 2]), r"should hold \(1,\) bytes .* it holds 2"),
    ],
)
def test_damage_is_named(content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=f"^labels .*{message}"):
        parse_idx(content, 1, "labels")
