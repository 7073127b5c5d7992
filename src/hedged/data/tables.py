"""Tables that users give: CSV and JSON lines, and Parquet where pyarrow is installed. Every reader of them is here."""

from __future__ import annotations

import csv
from collections.abc import Collection
from pathlib import Path
from typing import Any

from hedged._reading import MAX_FLOAT, named_in_utf8, parse_json, read_lines
from hedged.errors import DataError, MissingDependencyError


def read_columns(path: Path) -> dict[str, list[str]]:
    """The columns of a .csv or .parquet file by name, in lower case, their values as text.

    Args:
        path: the file.
    """
    if path.suffix.lower() == ".parquet":
        table = read_parquet(path, instead="a .csv file")
        columns = {
            name: ["" if v is None else str(v) for v in column_values(table, name, path)] for name in table.column_names
        }
    else:
        header, rows = _read_csv(path)
        columns = {name: [row[i] for row in rows] for i, name in enumerate(header)}
    return {name.strip().lower(): values for name, values in columns.items()}


def read_records(path: Path) -> list[dict[str, Any]]:
    """The rows of a .csv (values are text), .jsonl or .parquet file (values of any type), each by name of the column.

    Args:
        path: the file.
    """
    if path.suffix.lower() == ".parquet":
        table = read_parquet(path, instead="a .csv file")
        columns = [column_values(table, name, path) for name in table.column_names]
        return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]
    if path.suffix.lower() == ".jsonl":
        return _read_jsonl(path)
    header, rows = _read_csv(path)
    return [dict(zip(header, row, strict=True)) for row in rows]


def read_parquet(path: Path, instead: str, columns: Collection[str] | None = None) -> Any:
    """The `pyarrow.Table` in a Parquet file.

    Args:
        path: the file.
        instead: a kind of file that needs no pyarrow, for the message that it is missing.
        columns: names of the columns to read, as far as they are there; all by default.
    """
    require_pyarrow(f"reading {path}", instead)
    import pyarrow  # type: ignore[import-untyped]
    from pyarrow import parquet

    try:
        with named_in_utf8(path) as file:
            names = [name for name in parquet.read_schema(file).names if columns is None or name in columns]
            return parquet.read_table(file, columns=names)
    except FileNotFoundError as error:
        raise DataError(f"there is no file {path}: check the path") from error
    except (OSError, OverflowError, pyarrow.ArrowException) as error:
        raise _no_parquet(path, error) from error


def column_values(table: Any, name: str, path: Path) -> list[Any]:
    """The values of a column of a `pyarrow.Table`.

    Args:
        table: the table.
        name: of the column.
        path: of the file it was read from, for messages.
    """
    import pyarrow

    if table.column_names.count(name) > 1:
        raise DataError(f"{path} has several columns {name}: leave one")
    try:
        values: list[Any] = table[name].to_pylist()
    except (ValueError, OverflowError, pyarrow.ArrowException) as error:  # damaged text, and dates that Python lacks
        raise _no_parquet(path, error) from error
    return values


def _no_parquet(path: Path, error: Exception) -> DataError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return DataError(f"{path} cannot be read as Parquet ({reason}): write it again")


def require_pyarrow(task: str, instead: str) -> None:
    """Refuse to go on without pyarrow.

    Args:
        task: what needs it: "reading photos.parquet".
        instead: a kind of file that does not.
    """
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            f"{task} needs pyarrow, which is not installed: pip install 'hedged[parquet]', or use {instead}"
        ) from error


def _read_csv(path: Path) -> tuple[list[str], list[list[str]]]:
    """Header and rows, without blank lines and without blanks around values."""
    try:
        lines = csv.reader(read_lines(path, encoding="utf-8-sig"), strict=True)
        header, *rows = [[value.strip() for value in row] for row in lines if row] or [[]]
    except (OSError, ValueError, csv.Error) as error:
        raise DataError(f"{path} cannot be read as CSV ({error})") from error
    uneven = [i for i, row in enumerate(rows, 1) if len(row) != len(header)]
    if uneven:
        raise DataError(f"{path}: row {uneven[0]} has {len(rows[uneven[0] - 1])} values, the header {len(header)}")
    return header, rows


def _read_jsonl(path: Path) -> list[dict[str, Any]]:
    try:
        records = [parse_json(line, MAX_FLOAT) for line in filter(str.strip, read_lines(path))]
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as JSON lines ({error})") from error
    for number, record in enumerate(records, 1):
        if not isinstance(record, dict):
            raise DataError(f"{path}: record {number} is {record!r}, not an object")
    return records
