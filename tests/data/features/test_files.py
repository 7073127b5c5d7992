"""Files of vectors: every layout gives the same table, and what cannot be trusted is refused by name."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpy.typing import NDArray
from pyarrow import parquet

from hedged.data.features.files import Table, read_features
from hedged.errors import DataError, MissingDependencyError

VECTORS = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
LABELS = np.array(["ann", "ann", "bob", "bob", "cat", "cat"])


def write_parquet(path: Path, **columns: object) -> Path:
    parquet.write_table(pa.table(columns), path)
    return path


def in_every_layout(folder: Path) -> list[Table]:
    np.save(folder / "a.npy", VECTORS)
    np.save(folder / "labels.npy", LABELS)
    (folder / "labels.txt").write_text("\n".join(LABELS) + "\n")
    np.savez(folder / "a.npz", features=VECTORS, labels=LABELS, other=np.zeros(3))
    lists = pa.array(VECTORS.tolist(), pa.list_(pa.float32()))
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.ravel()), 3)
    return [
        read_features(folder / "a.npy", folder / "labels.npy"),
        read_features(folder / "a.npy", folder / "labels.txt"),
        read_features(folder / "a.npz"),
        read_features(write_parquet(folder / "a.parquet", features=lists, label=LABELS.tolist())),
        read_features(
            write_parquet(folder / "b.parquet", features=fixed, labels=LABELS.tolist(), other=list("abcdef"))
        ),
    ]


def test_every_layout_gives_the_same_table(tmp_path: Path) -> None:
    for table in in_every_layout(tmp_path):
        np.testing.assert_array_equal(table.vectors, VECTORS)
        assert table.labels is not None
        assert table.labels.tolist() == LABELS.tolist()
        assert table.split is None
        assert table.ids is None


@settings(max_examples=25, deadline=None)
@given(
    vectors=npst.arrays(
        st.sampled_from([np.float16, np.float32, np.float64, np.int16]),
        npst.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=5),
        elements=st.integers(-1000, 1000),
    )
)
def test_numbers_of_any_type_come_back(tmp_path_factory: pytest.TempPathFactory, vectors: NDArray[Any]) -> None:
    folder = tmp_path_factory.mktemp("any")
    np.savez(folder / "a.npz", features=vectors, labels=np.arange(len(vectors)), ids=np.arange(len(vectors)) + 7)
    lists = pa.array(vectors.tolist(), pa.list_(pa.float64()))
    write_parquet(folder / "a.parquet", features=lists, label=list(range(len(vectors))))
    for path in (folder / "a.npz", folder / "a.parquet"):
        table = read_features(path)
        assert table.vectors.dtype == np.float32
        np.testing.assert_array_equal(table.vectors, vectors.astype(np.float32))
        assert table.labels is not None
        assert table.labels.tolist() == [str(i) for i in range(len(vectors))]


def test_whole_numbers_as_floats_are_the_same_labels(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", features=VECTORS, labels=np.arange(6.0), split=["train"] * 3 + ["test"] * 3)
    table = read_features(tmp_path / "a.npz")
    assert table.labels is not None
    assert table.split is not None
    assert table.labels.tolist() == list("012345")
    assert table.split.tolist() == ["train"] * 3 + ["test"] * 3


def test_one_vector_is_a_table_of_one_row(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", VECTORS[0])
    assert read_features(tmp_path / "one.npy").vectors.shape == (1, 3)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"vectors": VECTORS}, "no column `features`"),
        ({"features": VECTORS[:, :, None], "labels": LABELS}, r"\(n, F\), got float32 of shape \(6, 3, 1\)"),
        ({"features": VECTORS[:0], "labels": LABELS[:0]}, r"got float32 of shape \(0, 3\)"),
        ({"features": np.full((6, 2), "x"), "labels": LABELS}, "rows of numbers"),
        ({"features": VECTORS * np.nan, "labels": LABELS}, r"6 rows are not finite .*0, 1, 2, 3, 4, …"),
        ({"features": np.full((6, 2), 1e300), "labels": LABELS}, "not finite in single precision"),
        ({"features": VECTORS, "labels": LABELS[:5]}, r"one for each of 6 rows, got .*\(5,\)"),
        ({"features": VECTORS, "labels": np.array([0.5] * 6)}, "labels are numbers or words"),
        ({"features": VECTORS, "labels": LABELS[:, None]}, r"shape \(6, 1\)"),
    ],
)
def test_arrays_that_cannot_be_used(tmp_path: Path, arrays: dict[str, Any], words: str) -> None:
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(DataError, match=words) as caught:
        read_features(tmp_path / "a.npz")
    assert "a.npz" in str(caught.value)


def test_files_that_are_none(tmp_path: Path) -> None:
    np.save(tmp_path / "whole.npy", VECTORS)
    whole = (tmp_path / "whole.npy").read_bytes()
    contents = {
        "cut.npy": whole[:100],
        "empty.npz": b"",
        "text.npy": b"not numbers",
        "cut.npz": b"PK\x03\x04 and no more",
        "other.npz": whole,
        "text.parquet": b"not a table",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=name):
            read_features(tmp_path / name)
    np.save(tmp_path / "objects.npy", np.array([{}, 1], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="not objects"):
        read_features(tmp_path / "objects.npy")
    with pytest.raises(DataError, match="no file"):
        read_features(tmp_path / "missing.npy")
    with pytest.raises(DataError, match=r"no file .*missing.txt"):
        read_features(tmp_path / "whole.npy", tmp_path / "missing.txt")
    with pytest.raises(DataError, match=r"\.npy, \.npz or \.parquet"):
        read_features(tmp_path / "vectors.csv")


def test_lists_that_differ_or_are_missing(tmp_path: Path) -> None:
    for lists in ([[1.0, 2.0], [3.0]], [[1.0, 2.0], None]):
        path = write_parquet(tmp_path / "a.parquet", features=pa.array(lists, pa.list_(pa.float32())), labels=[1, 2])
        with pytest.raises(DataError, match="differ in length or are missing"):
            read_features(path)
    path = write_parquet(tmp_path / "a.parquet", features=pa.array([[1.0], [2.0]]), labels=[1, None])
    with pytest.raises(DataError, match="some labels are missing"):
        read_features(path)


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r"hedged\[parquet\]"):
        read_features(tmp_path / "a.parquet")
