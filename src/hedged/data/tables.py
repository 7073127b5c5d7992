"""Tables of text: CSV, or Parquet where pyarrow is installed."""

from __future__ import annotations

import csv
from pathlib import Path

from hedged.errors import DataError, MissingDependencyError


def read_table(path: Path) -> dict[str, list[str]]:
    """The columns of a .csv or .parquet file by name, in small letters, their values as text."""
    columns = _read_parquet(path) if path.suffix.lower() == ".parquet" else _read_csv(path)
    return {name.strip().lower(): values for name, values in columns.items()}


def _read_csv(path: Path) -> dict[str, list[str]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            header, *rows = [row for row in csv.reader(file) if row] or [[]]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} cannot be read as CSV ({error})") from error
    uneven = [i for i, row in enumerate(rows, 1) if len(row) != len(header)]
    if uneven:
        raise DataError(f"{path}: row {uneven[0]} has {len(rows[uneven[0] - 1])} values, the header {len(header)}")
    return {name: [row[i].strip() for row in rows] for i, name in enumerate(header)}


def _read_parquet(path: Path) -> dict[str, list[str]]:
    try:
        import pyarrow  # type: ignore[import-untyped]
        from pyarrow import parquet
    except ImportError as error:
        raise MissingDependencyError(
            f"reading {path} needs pyarrow, which is not installed: pip install 'hedged[parquet]', or use a .csv file"
        ) from error
    try:
        table = parquet.read_table(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise DataError(f"{path} cannot be read as Parquet ({error})") from error
    return {name: ["" if v is None else str(v) for v in table[name].to_pylist()] for name in table.column_names}
