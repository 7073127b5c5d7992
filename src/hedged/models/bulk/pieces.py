"""The inputs of a large job in pieces, which are always the same for the same inputs: a piece becomes a shard.

Inputs are image files, images in WebDataset tars, and rows of Parquet files: images, or vectors.
"""

from __future__ import annotations

import tarfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, final

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from hedged._decode import image_suffixes
from hedged._files import path_text
from hedged._reading import named_in_utf8, open_file
from hedged.data.features.files import IDS, LABELS, VECTORS, rows_of_lists
from hedged.data.inputs import ImageContent
from hedged.data.photos.listing import files_ending_in
from hedged.data.tables import require_pyarrow
from hedged.errors import DataError

CHUNK = 256  # inputs that are in memory at a time
IMAGES = ("image", "images")  # the names of a column of images
TAR, PARQUET = ".tar", ".parquet"

One = TypeVar("One")


class Batch(NamedTuple):
    """Some inputs of a piece.

    Args:
        ids: A name for each.
        values: The inputs as an `Embedder` takes them.
        labels: Whose each is, if it is known.
        broken: Why others could not be read.
    """

    ids: list[str]
    values: Sequence[Path | ImageContent] | NDArray[np.float32]
    labels: list[str | None]
    broken: list[str]

    def at(self, places: Tensor) -> Any:
        """The inputs at some places.

        Args:
            places: Int64 (b,).
        """
        return self.values[places.numpy()] if isinstance(self.values, np.ndarray) else [self.values[i] for i in places]


@dataclass(frozen=True)
class Piece(ABC):
    """Inputs that become one shard.

    Args:
        source: The file that they are in, or the first of them.
    """

    source: Path

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def batches(self, root: Path) -> Iterator[Batch]:
        """All inputs, some at a time.

        Args:
            root: Where relative paths start.
        """


@final
@dataclass(frozen=True)
class ImageFiles(Piece):
    """Image files.

    Args:
        paths: As they were given.
    """

    paths: tuple[Path, ...]

    def __len__(self) -> int:
        return len(self.paths)

    def batches(self, root: Path) -> Iterator[Batch]:
        for paths in _parts(self.paths, CHUNK):
            ids = [path_text(path) for path in paths]
            yield Batch(ids, [root / path for path in paths], [None] * len(ids), [])


class Member(NamedTuple):
    """A file in a tar: its name, and where its bytes are."""

    name: str
    start: int
    size: int


@final
@dataclass(frozen=True)
class TarImages(Piece):
    """Images in a tar.

    Args:
        members: Of the tar.
    """

    members: tuple[Member, ...]

    def __len__(self) -> int:
        return len(self.members)

    def batches(self, root: Path) -> Iterator[Batch]:
        with open_file(root / self.source) as file:
            for members in _parts(self.members, CHUNK):
                ids = [f"{path_text(self.source)}/{path_text(member.name)}" for member in members]
                contents = []
                for name, member in zip(ids, members, strict=True):
                    file.seek(member.start)
                    contents.append(ImageContent(name, file.read(member.size)))
                yield Batch(ids, contents, [None] * len(ids), [])


@final
@dataclass(frozen=True)
class TableRows(Piece):
    """Rows of a Parquet file.

    Args:
        size: Of the file in bytes.
        first: The first row.
        last: The one after the last.
        column: The column of images or vectors.
    """

    size: int
    first: int
    last: int
    column: str

    def __len__(self) -> int:
        return self.last - self.first

    def batches(self, root: Path) -> Iterator[Batch]:
        from pyarrow import Table, parquet  # type: ignore[import-untyped]

        with named_in_utf8(root / self.source) as path, parquet.ParquetFile(path) as file:
            groups, start = self._groups(file.metadata)
            columns = [self.column, *(name for name in (*IDS, *LABELS) if name in file.schema_arrow.names)]
            for batch in file.iter_batches(CHUNK, groups, columns):
                low, high = max(self.first - start, 0), min(self.last - start, len(batch))
                if low < high:
                    yield self._batch(Table.from_batches([batch.slice(low, high - low)]), start + low)
                start += len(batch)

    def _groups(self, metadata: Any) -> tuple[list[int], int]:
        """The row groups that these rows are in, and the first row of the first of them."""
        ends = np.cumsum([metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)])
        first, last = np.searchsorted(ends, [self.first, self.last - 1], side="right").tolist()
        return list(range(first, last + 1)), int(ends[first - 1]) if first else 0

    def _batch(self, table: Any, start: int) -> Batch:
        def named(names: Sequence[str]) -> list[Any]:
            known = [name for name in names if name in table.column_names]
            return table[known[0]].to_pylist() if known else [None] * len(table)

        rows = [f"{path_text(self.source)}:{start + i}" for i in range(len(table))]
        ids = [row if name is None else str(name) for row, name in zip(rows, named(IDS), strict=True)]
        labels = [None if label is None else str(label) for label in named(LABELS)]
        if self.column in VECTORS:
            values: Any = rows_of_lists(table, self.column, self.source).astype(np.float32)
            wrong = np.flatnonzero(~np.isfinite(values).all(1)).tolist()
            why = "has numbers that are not finite"
        else:
            contents = [_content(value) for value in table[self.column].to_pylist()]
            values = [ImageContent(name, content) for name, content in zip(ids, contents, strict=True)]
            wrong = [i for i, content in enumerate(contents) if not content]
            why = "has no image"
        kept = sorted(set(range(len(ids))) - set(wrong))
        chosen = values[kept] if self.column in VECTORS else [values[i] for i in kept]
        return Batch([ids[i] for i in kept], chosen, [labels[i] for i in kept], [f"{ids[i]} {why}" for i in wrong])


def pieces_of(given: Sequence[Path], shape: Sequence[int], size: int) -> list[Piece]:
    """The pieces of all inputs that are named, in order; none is of two tars or tables.

    Args:
        given: Image files, tars and Parquet files, and folders of them.
        shape: Of one input of the model.
        size: How many inputs a piece has at most.
    """
    takes_vectors = len(shape) == 1
    endings = {PARQUET} if takes_vectors else {PARQUET, TAR, *image_suffixes()}
    files = list(dict.fromkeys(file for path in given for file in _files(path, endings)))
    pieces: list[Piece] = []
    for kind, some in groupby(files, lambda file: file.suffix.lower() if file.suffix.lower() in (PARQUET, TAR) else ""):
        if kind == PARQUET:
            pieces += [piece for file in some for piece in _of_table(file, VECTORS if takes_vectors else IMAGES, size)]
        elif takes_vectors:
            raise DataError(f"this model takes vectors, in {PARQUET} files, got {next(some)}: write them as such")
        elif kind == TAR:
            pieces += [TarImages(file, part) for file in some for part in _parts(_members(file), size)]
        else:
            pieces += [ImageFiles(part[0], part) for part in _parts(tuple(some), size)]
    return pieces


def _files(path: Path, endings: set[str]) -> list[Path]:
    if not path.is_dir():
        if not path.exists():
            raise DataError(f"there is no {path}: check the path")
        return [path]
    files = files_ending_in(endings, path)
    if not files:
        raise DataError(
            f"the folder {path} holds no file of this model's inputs: expected {', '.join(sorted(endings))}"
        )
    return files


def _members(path: Path) -> list[Member]:
    """The images in a tar, of which only the headers are read."""
    endings = image_suffixes()
    try:
        with open_file(path) as file, tarfile.open(fileobj=file, mode="r:") as tar:
            members = [
                Member(one.name, one.offset_data, one.size)
                for one in tar
                if one.isreg() and Path(one.name).suffix.lower() in endings
            ]
    except (tarfile.TarError, OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as a tar ({error}): write it again, without compression") from error
    if not members:
        raise DataError(f"{path} holds no image: expected members such as 000.jpg in it")
    return members


def _of_table(path: Path, names: Sequence[str], size: int) -> Iterator[TableRows]:
    require_pyarrow(f"reading {path}", instead="image files or tars")
    import pyarrow
    from pyarrow import parquet

    try:
        with named_in_utf8(path) as file, parquet.ParquetFile(file) as table:
            rows, columns = table.metadata.num_rows, table.schema_arrow.names
    except (OSError, pyarrow.ArrowException) as error:
        raise DataError(f"{path} cannot be read as Parquet ({str(error).splitlines()[0]}): write it again") from error
    column = next((name for name in names if name in columns), None)
    if column is None:
        raise DataError(f"{path} has no column `{names[0]}` (it has {', '.join(columns)}): name the inputs so")
    for first in range(0, rows, size):
        yield TableRows(path, path.stat().st_size, first, min(first + size, rows), column)


def _parts(some: Sequence[One], size: int) -> Iterator[tuple[One, ...]]:
    for start in range(0, len(some), size):
        yield tuple(some[start : start + size])


def _content(value: Any) -> bytes:
    """The bytes of an image, which may stand beside its path, as Hugging Face writes them."""
    content = value.get("bytes") if isinstance(value, dict) else value
    return content if isinstance(content, bytes) else b""
