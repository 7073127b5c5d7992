"""Rows of files with vectors as verbs take them: FILE for all of them, FILE:ROW for one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hedged.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hedged.models import Embedder

ONE = re.compile(r"(.+\.(?:npy|npz|parquet)):(\d+)", re.IGNORECASE)


class Rows(NamedTuple):
    """Vectors (n, F) and a name for each: its id if the file has ids, else FILE:ROW."""

    names: list[str]
    vectors: NDArray[np.float32]


def takes_vectors(embedder: Embedder) -> bool:
    return len(embedder.architecture.shape) == 1


def read_rows(given: Sequence[Path], size: int) -> Rows:
    """All rows that the arguments name, in order, each of `size` numbers."""
    import numpy as np

    parts = [_rows(path) for path in given]
    for path, part in zip(given, parts, strict=True):
        if part.vectors.shape[1] != size:
            raise DataError(f"{path} has vectors of {part.vectors.shape[1]} numbers, this model takes {size}")
    return Rows([name for part in parts for name in part.names], np.concatenate([part.vectors for part in parts]))


def read_row(given: Path, size: int) -> Rows:
    """The one row that an argument names."""
    rows = read_rows([given], size)
    if len(rows.names) != 1:
        raise DataError(f"{given} has {len(rows.names):,} vectors: name one of them, such as {given}:0")
    return rows


def _rows(given: Path) -> Rows:
    from hedged.data.features.files import read_features

    one = None if given.exists() else ONE.fullmatch(str(given))
    path = Path(one[1]) if one else given
    table = read_features(path)
    count = len(table.vectors)
    names = [f"{path}:{i}" for i in range(count)] if table.ids is None else table.ids.tolist()
    if one is None:
        return Rows(names, table.vectors)
    row = int(one[2])
    if row >= count:
        raise DataError(f"{path} has rows 0 to {count - 1}, so there is no row {row}")
    return Rows([names[row]], table.vectors[row : row + 1])
