"""Files of vectors that are damaged, or made to break who reads them: a `DataError` that names them, and no more."""

from __future__ import annotations

import io
import os
import struct
import threading
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyarrow import parquet

from hedged.data.features.files import Table, read_features
from hedged.errors import DataError

DAMAGED = int(os.environ.get("HEDGED_DAMAGED_FILES", "600"))  # of each kind
VECTORS = np.random.default_rng(0).normal(size=(12, 5)).astype(np.float32)
LABELS = np.array([f"person {i % 4}" for i in range(12)])
Damage = Callable[[bytearray, np.random.Generator], bytearray]


def whole(kind: str) -> bytes:
    """A file of vectors that can be read."""
    out = io.BytesIO()
    if kind == "npy":
        np.save(out, VECTORS)
    elif kind == "parquet":
        columns = {"features": list(VECTORS), "labels": LABELS, "ids": [f"row {i}" for i in range(12)]}
        parquet.write_table(pa.table(columns), out)
    else:
        save = np.savez if kind == "npz" else np.savez_compressed
        save(out, features=VECTORS, labels=LABELS, split=np.array(["train"] * 12))
    return out.getvalue()


def flip(content: bytearray, random: np.random.Generator) -> bytearray:
    for place in random.integers(0, len(content), random.integers(1, 9)):
        content[place] ^= 1 << int(random.integers(8))
    return content


def cut(content: bytearray, random: np.random.Generator) -> bytearray:
    return content[: random.integers(0, len(content))]


def overwrite(content: bytearray, random: np.random.Generator) -> bytearray:
    place = int(random.integers(0, len(content)))
    filler = [b"\0", b"\xff", random.bytes(1), b"9", b"("][random.integers(5)]
    content[place : place + 8] = filler * 8
    return content


def insert(content: bytearray, random: np.random.Generator) -> bytearray:
    place, length = int(random.integers(0, len(content))), int(random.integers(1, 40))
    content[place:place] = content[-length:] if random.integers(2) else random.bytes(length)
    return content


@pytest.mark.parametrize("kind", ["npy", "npz", "compressed.npz", "parquet"])
def test_damaged_files_are_refused_or_read(kind: str, tmp_path: Path) -> None:
    random, original = np.random.default_rng(17), whole(kind)
    damages: list[Damage] = [flip, cut, overwrite, insert]
    path, outcomes = tmp_path / f"vectors.{kind}", {"read": 0, "refused": 0}
    for number in range(DAMAGED):
        path.write_bytes(damages[number % len(damages)](bytearray(original), random))
        try:
            table = read_features(path)
        except DataError as error:
            outcomes["refused" if str(path) in str(error) else "refused without a name"] += 1
        else:
            assert np.isfinite(table.vectors).all()
            outcomes["read"] += 1
    assert outcomes["refused"] > DAMAGED // 3, outcomes


def claiming(shape: str, descr: str = "'<f4'") -> bytes:
    """An .npy file of 64 bytes of numbers whose header says something else."""
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header) + 1) + header + b"\n" + bytes(64)


def zipped(content: bytes, **changes: Any) -> bytes:
    """An .npz file of one array, some fields of whose directory were changed."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("features.npy", content)
        for name, value in changes.items():
            setattr(archive.infolist()[0], name, value)
    return out.getvalue()


def test_arrays_that_claim_more_than_they_hold(tmp_path: Path) -> None:
    cases = {
        "(100000000000, 16)": "bytes, and has 64",
        "(-4, -4)": "bytes, and has 64",
        "(99999999999999999999999999, 4)": "bytes, and has 64",
        f"({'(' * 3000}": "cannot be read",
        "(4, 4.5)": "cannot be read",
    }
    tracemalloc.start()
    for shape, words in cases.items():
        for name, content in (("a.npy", claiming(shape)), ("a.npz", zipped(claiming(shape)))):
            (tmp_path / name).write_bytes(content)
            with pytest.raises(DataError, match=words):
                read_features(tmp_path / name)
    (tmp_path / "a.npy").write_bytes(claiming("(1000000000000,)", "'<U0'"))
    with pytest.raises(DataError, match="it claims to hold"):
        read_features(tmp_path / "a.npy")
    (tmp_path / "a.npz").write_bytes(zipped(bytes(64), file_size=2**40))
    with pytest.raises(DataError, match="may be a bomb"):
        read_features(tmp_path / "a.npz")
    assert tracemalloc.get_traced_memory()[1] < 2**25
    tracemalloc.stop()


def test_archives_that_are_encrypted_or_packed_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    content = bytearray(zipped(whole("npy")))
    for signature, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(signature) + place] |= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"features\.npy in it is encrypted: save it without a password"):
        read_features(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("features.npy", whole("npy"))
    with pytest.raises(DataError, match="compressed in a way that NumPy does not use"):
        read_features(path)


LABEL_CASES: dict[str, tuple[Any, str]] = {
    "one word": (np.array("rex"), "one for each of 12 rows"),
    "bytes": (np.array([b"\xff\xfe"] * 12), "are no text"),
    "pairs": (np.array([["a", "b"]] * 12), "one for each of 12 rows"),
    "dates": (np.array(["2021-01-01"] * 12, "M8[D]"), "one for each of 12 rows"),
    "infinite": (np.full(12, np.inf), "one for each of 12 rows"),
    "too large": (np.full(12, 1e300), "one for each of 12 rows"),
}


@pytest.mark.parametrize("case", LABEL_CASES)
def test_labels_that_are_none(case: str, tmp_path: Path) -> None:
    labels, words = LABEL_CASES[case]
    np.savez(tmp_path / "a.npz", features=VECTORS, labels=labels)
    with pytest.raises(DataError, match=words):
        read_features(tmp_path / "a.npz")


def test_labels_as_bytes_are_words(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", features=VECTORS, labels=np.array([f"zoë {i}".encode() for i in range(12)]))
    found = read_features(tmp_path / "a.npz").labels
    assert found is not None
    assert found[3] == "zoë 3"


COLUMNS: dict[str, tuple[str, Any, str]] = {
    "numbers": ("features", list(range(12)), "of type int64: write a list of numbers"),
    "words": ("features", ["a"] * 12, "of type string: write a list of numbers"),
    "lists of words": ("features", [["a", "b"]] * 12, "write a list of numbers"),
    "lists of lists": ("features", [[[1.0]]] * 12, "write a list of numbers"),
    "tables": ("features", [{"a": 1.0}] * 12, "write a list of numbers"),
    "uneven": ("features", [[1.0], [1.0, 2.0]] * 6, "differ in length"),
    "list labels": ("labels", [["a"], ["b", "c"]] * 6, "labels are lists"),
    "table labels": ("labels", [{"a": 1}] * 12, "got object"),
    "missing labels": ("labels", ["a", None] * 6, "some labels are missing"),
    "byte labels": ("labels", [b"\xff"] * 12, "labels are no text"),
    "times": ("labels", pa.array([2**62] * 12, pa.timestamp("us")), "cannot be read as Parquet"),
}


@pytest.mark.parametrize("case", COLUMNS)
def test_columns_of_another_type(case: str, tmp_path: Path) -> None:
    name, values, words = COLUMNS[case]
    columns = {"features": list(VECTORS), "labels": LABELS} | {name: values}
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=words):
        read_features(tmp_path / "a.parquet")


@pytest.mark.parametrize("name", ["pipe.npy", "pipe.npz", "pipe.parquet"])
def test_what_is_no_file_is_refused_and_not_waited_for(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    (tmp_path / f"endless{name[4:]}").symlink_to("/dev/zero")
    found: list[Exception | Table] = []

    def read() -> None:
        for path in (tmp_path / name, tmp_path / f"endless{name[4:]}"):
            try:
                found.append(read_features(path))
            except DataError as error:
                found.append(error)

    threading.Thread(target=read, daemon=True).start()
    deadline = time.monotonic() + 20
    while len(found) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert [str(error).partition("(")[2][:18] for error in found] == ["it is a pipe, not ", "it is a device, no"]
