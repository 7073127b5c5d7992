"""Lists of pairs to verify: LFW's pairs.txt, or a table of two paths and whether they show the same."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from hedged._reading import read_lines
from hedged.data.tables import read_columns
from hedged.errors import DataError

TABLES = (".csv", ".parquet")
YES, NO = ("1", "true", "yes", "same"), ("0", "false", "no", "different")
MAX_DIGITS = 9  # of the number of a photo
SUFFIX = ".jpg"  # of LFW's photos


class _Row(NamedTuple):
    one: Path
    other: Path
    same: bool


@final
@dataclass(frozen=True, eq=False)
class PairList:
    """Pairs of image files: pair k is `paths[first[k]]` and `paths[second[k]]`.

    Args:
        paths: the files, each once.
        first: places in `paths`, (n,).
        second: places in `paths`, (n,).
        matches: whether the two show the same identity, (n,).
    """

    paths: list[Path]
    first: NDArray[np.intp]
    second: NDArray[np.intp]
    matches: NDArray[np.bool_]

    def without(self, broken: Iterable[int]) -> tuple[PairList, NDArray[np.intp]]:
        """The pairs of which neither file is broken, and where the files that they need were in `paths`.

        Args:
            broken: places of broken files in `paths`.
        """
        bad = np.array(sorted(broken), dtype=np.intp)
        left = ~(np.isin(self.first, bad) | np.isin(self.second, bad))
        needed, places = np.unique([self.first[left], self.second[left]], return_inverse=True)
        first, second = places.reshape(2, -1)
        return PairList([self.paths[i] for i in needed], first, second, self.matches[left]), needed


def read_pairs(file: str | Path, images: str | Path | None = None) -> PairList:
    """The pairs of a .csv or .parquet file with columns pathA, pathB and same, or else of a text file in LFW's format.

    In LFW's format a line is "name i j" for photos name/name_000i.jpg and name/name_000j.jpg of one person, or
    "name i other j" for two.

    Args:
        file: the list.
        images: the folder that paths start at, by default that of the file.
    """
    file = Path(file)
    if file.exists() and not file.is_file():
        raise DataError(f"{file} is no file: a list of pairs is a .txt, .csv or .parquet file")
    if not file.is_file():
        raise DataError(f"there is no list of pairs {file}: check the path")
    root = file.parent if images is None else Path(images)
    rows = _from_table(file, root) if file.suffix.lower() in TABLES else _from_lfw(file, root)
    if not rows:
        raise DataError(f"{file} lists no pair")
    numbers = {path: i for i, path in enumerate(dict.fromkeys(path for row in rows for path in (row.one, row.other)))}
    first = np.array([numbers[row.one] for row in rows], dtype=np.intp)
    second = np.array([numbers[row.other] for row in rows], dtype=np.intp)
    return PairList(list(numbers), first, second, np.array([row.same for row in rows]))


def _from_table(file: Path, root: Path) -> list[_Row]:
    columns = {name.replace("_", "").lower(): values for name, values in read_columns(file).items()}
    missing = [name for name in ("pathA", "pathB", "same") if name.lower() not in columns]
    if missing:
        raise DataError(f"{file} has no column {missing[0]}; a list of pairs has pathA, pathB and same")
    rows = []
    for i, (a, b, same) in enumerate(zip(columns["patha"], columns["pathb"], columns["same"], strict=True), 1):
        if not a or not b or same.lower() not in (*YES, *NO):
            raise DataError(f"{file}, row {i}: expected two paths and 1 or 0 for same, got {a!r}, {b!r} and {same!r}")
        rows.append(_Row(root / a, root / b, same.lower() in YES))
    return rows


def _from_lfw(file: Path, root: Path) -> list[_Row]:
    try:
        lines = [line.rstrip("\r\n") for line in read_lines(file)]
    except (OSError, ValueError) as error:
        raise DataError(f"{file} cannot be read as a list of pairs ({error})") from error
    rows = []
    for number, line in enumerate(lines, 1):
        fields = [field.strip() for field in line.split("\t")] if "\t" in line else line.split()
        if not line.strip() or (number == 1 and all(field.isdecimal() for field in fields) and len(fields) < 3):
            continue  # the head says how many folds and pairs there are
        if len(fields) not in (3, 4) or not (_is_number(fields[1]) and _is_number(fields[-1])):
            raise DataError(f'{file}, line {number}: expected "name i j" or "name i other j", got {line[:200]!r}')
        other = fields[0] if len(fields) == 3 else fields[2]
        rows.append(_Row(_photo(root, fields[0], fields[1]), _photo(root, other, fields[-1]), len(fields) == 3))
    return rows


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) <= MAX_DIGITS


def _photo(root: Path, name: str, number: str) -> Path:
    """LFW's file of a person's photo, or one of the same name in another format if that is what there is."""
    usual = root / name / f"{name}_{int(number):04d}{SUFFIX}"
    try:
        if usual.exists():
            return usual
        return next((path for path in sorted(usual.parent.glob("*")) if path.stem == usual.stem), usual)
    except (OSError, ValueError):  # a name that is too long for a file, or has a zero in it: whoever reads it tells
        return usual
