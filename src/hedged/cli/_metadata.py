"""`--metadata F`: labels and metadata of inputs, from a table of the user's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from hedged.errors import DataError


class Described(NamedTuple):
    """What a table says of an input."""

    label: str | None
    metadata: Mapping[str, Any]


def read_metadata(path: Path) -> dict[str, Described]:
    """The rows of a .csv, .jsonl or .parquet file by their column `id`, the input as it is given.

    Args:
        path: the file; a column `label` may be there, all other columns are metadata.
    """
    from hedged.data.tables import read_records

    records = read_records(path)
    if not records or any("id" not in record for record in records):
        raise DataError(
            f"{path} needs a column `id`, the inputs as they are given on the command line: paths, or FILE:ROW"
        )
    described = {str(record["id"]): _described(record) for record in records}
    if len(described) < len(records):
        raise DataError(f"{path} names an input twice: ids must differ within a table")
    return described


def _described(record: Mapping[str, Any]) -> Described:
    label = record.get("label")
    metadata = {key: value for key, value in record.items() if key not in ("id", "label") and value not in (None, "")}
    return Described(None if label in (None, "") else str(label), metadata)
