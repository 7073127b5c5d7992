"""Labels and metadata of images, from a table of the user's."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from hedged.errors import DataError


class Told(NamedTuple):
    """What a table says of an image."""

    label: str | None
    metadata: Mapping[str, Any]


def read_table(path: Path) -> dict[str, Told]:
    """A .csv with a header, or a .jsonl of objects: `id` is the image's path as it is given, `label` may be there."""
    try:
        rows = list(_csv(path) if path.suffix == ".csv" else _jsonl(path))
    except (OSError, UnicodeDecodeError, ValueError, csv.Error) as error:
        raise DataError(
            f"{path} cannot be read as a table ({error}): give a .csv with a header, or a .jsonl"
        ) from error
    if not rows or any("id" not in row for row in rows):
        raise DataError(f"{path} needs a column `id`, the paths of the images as they are given on the command line")
    told = {str(row["id"]): _told(row) for row in rows}
    if len(told) < len(rows):
        raise DataError(f"{path} names an image twice: ids are different within a table")
    return told


def _told(row: Mapping[str, Any]) -> Told:
    label = row.get("label")
    metadata = {key: value for key, value in row.items() if key not in ("id", "label") and value not in (None, "")}
    return Told(None if label in (None, "") else str(label), metadata)


def _csv(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        for row in csv.DictReader(file, strict=True):
            if None in row or None in row.values():
                raise ValueError("a row has more or fewer columns than the header")
            yield row


def _jsonl(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in filter(str.strip, file):
            row = json.loads(line)
            if not isinstance(row, dict):
                raise ValueError(f"a line is {row!r}, not an object")
            yield row
