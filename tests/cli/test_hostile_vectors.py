"""Files of vectors that are made to break who reads them, as they are given to each verb that takes vectors."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from cli.commands import Hedged, check_refused
from data.features.test_damaged_files import claiming, zipped
from pyarrow import parquet
from vectors import SIZE, made_up

from hedged.retrofit import Retrofit

pytestmark = pytest.mark.usefixtures("within_limits")

VECTORS = np.random.default_rng(0).normal(size=(40, SIZE)).astype(np.float32)
LABELS = np.arange(40) // 4


def archive(**arrays: object) -> Callable[[Path], object]:
    return lambda path: np.savez(path, **arrays)  # type: ignore[arg-type]


def content(what: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(what)


def table(**columns: object) -> Callable[[Path], object]:
    return lambda path: parquet.write_table(pa.table(columns), path)


FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "claims.npy": (content(claiming("(1000000000000, 12)")), "claims to hold"),
    "objects.npy": (lambda path: np.save(path, np.array([{}, 1], dtype=object)), "Python objects"),
    "words.npy": (lambda path: np.save(path, np.full((40, SIZE), "a")), "rows of numbers"),
    "dates.npy": (lambda path: np.save(path, np.zeros((40, SIZE), "M8[s]")), "rows of numbers"),
    "nan.npy": (lambda path: np.save(path, np.full((40, SIZE), np.nan)), "not finite"),
    "huge.npy": (lambda path: np.save(path, np.full((40, SIZE), 1e300)), "not finite"),
    "nobody.npy": (lambda path: np.save(path, VECTORS[:0]), "rows of numbers"),
    "endless.npy": (lambda path: path.symlink_to("/dev/zero"), "it is a device"),
    "pipe.npz": (os.mkfifo, "it is a pipe"),
    "circle.npz": (lambda path: path.symlink_to(path), "symbolic links"),
    "folder.npz": (Path.mkdir, "Is a directory"),
    "empty.npz": (content(b""), "cannot be read"),
    "encrypted.npz": (content(zipped(bytes(64), flag_bits=1)), "encrypted"),
    "bomb.npz": (content(zipped(bytes(64), file_size=2**40)), "a bomb"),
    "one word.npz": (archive(features=VECTORS, labels="word"), "labels are numbers or words"),
    "few labels.npz": (archive(features=VECTORS, labels=LABELS[:5]), "one for each of 40 rows"),
    "no text.npz": (archive(features=VECTORS, labels=np.full(40, b"\xff")), "labels are no text"),
    "nameless.npz": (archive(labels=LABELS), "no column `features`"),
    "words.parquet": (table(features=[["a"]] * 5), "write a list of numbers"),
    "uneven.parquet": (table(features=[[1.0, 2.0], [1.0]]), "differ in length"),
    "nothing.parquet": (table(features=[None] * 5), "write a list of numbers"),
    "pipe.parquet": (os.mkfifo, "it is a pipe"),
    "short.parquet": (content(b"PAR1" + b"x" * 99 + b"PAR1"), "cannot be read as Parquet"),
}


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("head")
    Retrofit().fit(*made_up()).save(folder / "run")
    return folder / "run"


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_vectors_that_is_none(hedged: Hedged, head: Path, tmp_path: Path, name: str) -> None:
    write, words = FILES[name]
    write(tmp_path / name)
    before = set(os.listdir(tmp_path))
    for verb in (
        ["retrofit", tmp_path / name, "--out", tmp_path / "new"],
        ["embed", head, tmp_path / name, "--out", tmp_path / "out.npz"],
        ["index", "build", head, tmp_path / "a.db", tmp_path / name],
        ["match", head, f"{tmp_path / name}:0", f"{tmp_path / name}:1"],
    ):
        check_refused(hedged(*verb), name, words)
    assert set(os.listdir(tmp_path)) == before
