"""Vectors that another model made, read from .npy, .npz or .parquet, and checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedged._reading import read_lines
from hedged.data.arrays import read_npy, read_npz
from hedged.data.tables import column_values, read_parquet
from hedged.errors import DataError

Vectors = NDArray[np.float32]
Words = NDArray[np.str_]

FILE_ENDINGS = (".npy", ".npz", ".parquet")
# The names under which each column may stand in .npz and .parquet.
VECTORS, LABELS, SPLIT, IDS = ("features", "feature"), ("labels", "label"), ("split",), ("ids", "id")
KNOWN_COLUMNS = frozenset((*VECTORS, *LABELS, *SPLIT, *IDS))


class Table(NamedTuple):
    """The rows of a file.

    Args:
        vectors: float32 (n, F).
        labels: the identity of each row, (n,), if the file says.
        split: the part that each row belongs to, (n,), if the file says.
        ids: the id of each row, (n,), if the file says.
    """

    vectors: Vectors
    labels: Words | None = None
    split: Words | None = None
    ids: Words | None = None


def is_feature_file(path: str | Path) -> bool:
    """Whether a path ends as a file of vectors does.

    Args:
        path: the path.
    """
    return Path(path).suffix.lower() in FILE_ENDINGS


def read_features(path: str | Path, labels: str | Path | None = None) -> Table:
    """The vectors of a file, with the label, split and id of each row if it has them.

    An .npy file holds the vectors alone, `(n, F)` or one `(F,)`; their labels are in a file beside it, an .npy of
    numbers or words or a text file with one a line. An .npz file has the arrays `features` and `labels`, a .parquet
    file the columns `features` (lists) and `labels`; both may have `split` and `ids`.

    Args:
        path: the file of vectors.
        labels: the file of their labels, if they are in another.
    """
    path, labels = Path(path), None if labels is None else Path(labels)
    if not is_feature_file(path):
        raise DataError(f"vectors are read from .npy, .npz or .parquet files, got {path}: convert it")
    columns = _read(path, {".npy": _npy, ".npz": _npz}.get(path.suffix.lower(), _parquet))
    vectors = _vectors(_find(columns, VECTORS), path, list(columns))
    given = _find(columns, LABELS) if labels is None else _read(labels, _label_file)["labels"]
    found = (_words(given, len(vectors), labels or path, "labels"),)
    return Table(vectors, *found, *(_words(_find(columns, x), len(vectors), path, x[0]) for x in (SPLIT, IDS)))


def _read(path: Path, read: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
    try:
        return read(path)
    except FileNotFoundError as error:
        raise DataError(f"there is no file {path}: check the path") from error
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(
            f"{path} cannot be read as a {path.suffix or 'text'} file ({reason}): write it again, with plain numbers "
            "or words, not objects"
        ) from error


def _npy(path: Path) -> dict[str, Any]:
    return {VECTORS[0]: read_npy(path)}


def _npz(path: Path) -> dict[str, Any]:
    return dict(read_npz(path, KNOWN_COLUMNS))


def _parquet(path: Path) -> dict[str, Any]:
    table = read_parquet(path, instead="an .npz file", columns=KNOWN_COLUMNS)
    return {
        name: rows_of_lists(table, name, path) if name in VECTORS else column_values(table, name, path)
        for name in table.column_names
    }


def rows_of_lists(table: Any, name: str, path: Path) -> NDArray[Any]:
    """A column of lists of numbers as `(n, F)`.

    Args:
        table: a `pyarrow.Table`.
        name: of the column.
        path: of the file it was read from, for messages.
    """
    import pyarrow.compute as pc  # type: ignore[import-untyped]
    from pyarrow import types

    if table.column_names.count(name) > 1:
        raise DataError(f"{path} has several columns {name}: leave one")
    column = table[name]
    kind = column.type
    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    if not is_list or not (types.is_floating(kind.value_type) or types.is_integer(kind.value_type)):
        raise DataError(f"{path}: the column {name} is of type {kind}: write a list of numbers in each row")
    lengths = set(pc.list_value_length(column).unique().to_pylist()) if len(column) else set()
    if column.null_count or len(lengths) > 1:
        raise DataError(f"{path}: the lists of the column features differ in length or are missing: each row needs one")
    flat = pc.list_flatten(column).to_numpy()
    return np.asarray(flat).reshape(len(column), -1)


def _label_file(path: Path) -> dict[str, Any]:
    if path.suffix.lower() == ".npy":
        return {"labels": _npy(path)[VECTORS[0]]}
    return {"labels": [line.strip() for line in read_lines(path)]}


def _find(columns: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((columns[name] for name in names if name in columns), None)


def _vectors(values: Any, path: Path, there: list[str]) -> Vectors:
    """float32 (n, F), finite, or what is wrong with it."""
    if values is None:
        has = ", ".join(there) or "none that is known"
        raise DataError(f"{path} has no column `features` (it has {has}): name the vectors features")
    array = np.atleast_2d(np.asarray(values))
    if array.ndim != 2 or not array.size or array.dtype.kind not in "fiu":
        raise DataError(
            f"{path}: features are rows of numbers, (n, F), got {array.dtype} of shape {np.shape(values)}: one vector "
            "a row, pooled over pixels or tokens"
        )
    with np.errstate(over="ignore"):
        vectors = np.ascontiguousarray(array, np.float32)
    wrong = np.flatnonzero(~np.isfinite(vectors).all(1))
    if len(wrong):
        rows = ", ".join(map(str, wrong[:5])) + (", …" if len(wrong) > 5 else "")
        raise DataError(f"{path}: {len(wrong)} rows are not finite in single precision (rows {rows}): leave them out")
    return vectors


def _words(values: Any, rows: int, path: Path, what: str) -> Words | None:
    """One word a row; numbers are words too."""
    if values is None:
        return None
    if isinstance(values, list) and any(value is None for value in values):
        raise DataError(f"{path}: some {what} are missing: each row needs one")
    try:
        words = np.asarray(values)
    except ValueError as error:  # lists of different lengths
        raise DataError(f"{path}: {what} are lists, not numbers or words: give one of them for each row") from error
    if words.dtype.kind == "f" and (np.isfinite(words) & (words == np.round(words)) & (abs(words) < 2**53)).all():
        words = words.astype(np.int64)
    if words.ndim != 1 or words.dtype.kind not in "iuUSb" or len(words) != rows:
        raise DataError(
            f"{path}: {what} are numbers or words, one for each of {rows:,} rows, got {words.dtype} of shape "
            f"{words.shape}"
        )
    try:
        text = np.char.decode(words, "utf-8") if words.dtype.kind == "S" else words.astype(np.str_)
        "".join(text.tolist()).encode()  # NumPy keeps any number as a character
    except ValueError as error:
        raise DataError(f"{path}: some {what} are no text ({error}): write them as words in UTF-8") from error
    return text
