"""Lists of labelled pairs of images: a CSV file of two paths and whether they show the same."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from hedged.errors import DataError

SAME = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


class PairList(NamedTuple):
    """Pair k is the images `first[k]` and `second[k]`; `same[k]`: they show the same."""

    first: tuple[Path, ...]
    second: tuple[Path, ...]
    same: tuple[bool, ...]


def read_pair_list(path: Path) -> PairList:
    """Read rows of `first,second,same`, with or without a header; paths are relative to the file's own folder."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = [row for row in csv.reader(file) if row]
    except FileNotFoundError as error:
        raise DataError(f"there is no list of pairs {path}: check the path") from error
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} cannot be read as a list of pairs ({error}): write it as CSV") from error
    if rows and len(rows[0]) == 3 and rows[0][2].strip().lower() not in SAME:
        rows = rows[1:]  # a header
    if not rows:
        raise DataError(f"{path} lists no pairs: write a row first,second,same for each")
    first, second, same = zip(*(_pair(path, number, row) for number, row in enumerate(rows, 1)), strict=True)
    return PairList(first, second, same)


def _pair(path: Path, number: int, row: Sequence[str]) -> tuple[Path, Path, bool]:
    known = len(row) == 3 and SAME.get(row[2].strip().lower())
    if len(row) != 3 or known is None:
        raise DataError(
            f"pair {number} of {path} is {','.join(row)!r}: write two paths and 1 or 0, such as a.png,b.png,1"
        )
    return path.parent / row[0].strip(), path.parent / row[1].strip(), bool(known)
