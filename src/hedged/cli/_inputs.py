"""What verbs embed: image files and folders of them, or rows of files with vectors (FILE for all, FILE:ROW for one)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from hedged._files import path_text
from hedged.cli._output import LOGGER
from hedged.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from hedged.distributions import Distribution
    from hedged.models import Embedder

Images = Annotated[
    list[Path],
    typer.Argument(
        metavar="INPUTS",
        help="Image files, or folders (searched recursively). For a model of vectors: .npy, .npz or .parquet files.",
    ),
]
SkipBroken = Annotated[
    bool, typer.Option("--skip-broken", help="List files that cannot be decoded, and continue with the others.")
]
CHUNK = 256  # inputs that are embedded, and stored or searched for, at a time
ONE = re.compile(r"(.+\.(?:npy|npz|parquet)):(\d+)", re.IGNORECASE)


class Inputs(NamedTuple):
    """What is to be embedded, and a name for each.

    Args:
        ids: the path of an image; of a vector its id if the file has ids, else FILE:ROW.
        vectors: float32 (n, F), for a model of vectors; else the inputs are the images at `paths`.
        paths: the image files.
        labels: of vectors, whose each is, if its file says.
        novelty: of inputs that were embedded, how unlike its training inputs the model finds each; empty if unknown.
    """

    ids: list[str]
    vectors: NDArray[np.float32] | None = None
    paths: Sequence[Path] = ()
    labels: Sequence[str | None] = ()
    novelty: Sequence[float] = ()

    def at(self, places: Tensor) -> list[Path] | NDArray[np.float32]:
        """The inputs at some places, as an `Embedder` takes them."""
        return [self.paths[i] for i in places.tolist()] if self.vectors is None else self.vectors[places.numpy()]

    def subset(self, places: Tensor) -> Inputs:
        """The inputs at some places, with their names."""
        ids = [self.ids[i] for i in places.tolist()]
        if self.vectors is None:
            return Inputs(ids, paths=[self.paths[i] for i in places.tolist()])
        return Inputs(ids, self.vectors[places.numpy()], labels=[self.labels[i] for i in places.tolist()])


def inputs_of(embedder: Embedder, given: Sequence[Path], once: bool = True) -> Inputs:
    """All that the arguments name: images and those of folders, or rows of files with vectors.

    Args:
        embedder: the model that they are for.
        given: the arguments.
        once: whether an image that is named twice is taken once.
    """
    if takes_vectors(embedder):
        return read_rows(given, embedder.architecture.shape[0])
    paths = [path for image in given for path in files_of(image)]
    if once:
        from hedged.data.photos.listing import warn_of_one_file_twice

        paths = list(dict.fromkeys(paths))
        warn_of_one_file_twice(paths)
    return Inputs([path_text(path) for path in paths], paths=paths)


def embedded(
    embedder: Embedder, inputs: Inputs, broken: list[str] | None = None
) -> Iterator[tuple[Inputs, Distribution]]:
    """Inputs with their novelty, and their embeddings, some at a time, with progress; each may be kept before the next.

    Args:
        embedder: the model.
        inputs: what to embed.
        broken: if given, files that cannot be decoded are left out, and why is appended to it.
    """
    from hedged._progress import progress
    from hedged.models import embed_chunks

    with progress("embedding", len(inputs.ids)) as update:
        for places, z, novelty in embed_chunks(embedder, inputs.at, len(inputs.ids), CHUNK, CHUNK, broken):
            told = () if novelty is None else novelty.tolist()
            yield inputs.subset(places)._replace(novelty=told), z
            update(int(places[-1]) + 1)


def embedded_sound(embedder: Embedder, inputs: Inputs, skip_broken: bool) -> Iterator[tuple[Inputs, Distribution]]:
    """As `embedded`; with `skip_broken`, a warning names the files that were left out, unless none is left.

    Args:
        embedder: the model.
        inputs: what to embed.
        skip_broken: whether to leave out files that cannot be decoded; else the first of them is an error.
    """
    broken: list[str] = []
    yield from embedded(embedder, inputs, broken if skip_broken else None)
    report_skipped(broken, len(inputs.ids))


def report_skipped(broken: Sequence[str], total: int) -> None:
    """Warn of files that were left out; if these are all, refuse.

    Args:
        broken: why each of them cannot be embedded.
        total: how many files were given.
    """
    if broken and len(broken) == total:
        raise DataError(refusal(broken, total))
    for words in broken:
        LOGGER.warning("skipped: %s", words)


def refusal(broken: Sequence[str], total: int) -> str:
    """The message that names all broken files.

    Args:
        broken: why each of them cannot be embedded.
        total: how many files were given.
    """
    if total == 1:
        return broken[0]
    named = "".join(f"\n  {words}" for words in broken)
    return (
        f"{len(broken):,} of {total:,} files cannot be embedded: remove them, or use --skip-broken for the rest{named}"
    )


def files_of(path: Path) -> list[Path]:
    """An image itself; of a folder, the images in it and in the folders below."""
    if not path.is_dir():
        return [path]
    from hedged.data.photos.listing import image_files

    files = image_files(path)
    if not files:
        raise DataError(f"the folder {path} holds no image: expected files such as .png or .jpg in it")
    return files


def takes_vectors(embedder: Embedder) -> bool:
    return len(embedder.architecture.shape) == 1


def read_rows(given: Sequence[Path], size: int) -> Inputs:
    """All rows that the arguments name, in order, each of `size` numbers."""
    import numpy as np

    parts = [_rows(path) for path in given]
    for path, part in zip(given, parts, strict=True):
        if part.vectors.shape[1] != size:
            raise DataError(f"{path} has vectors of {part.vectors.shape[1]} numbers, this model takes {size}")
    ids, labels = ([one for part in parts for one in getattr(part, name)] for name in ("ids", "labels"))
    return Inputs(ids, np.concatenate([part.vectors for part in parts]), labels=labels)


def read_row(given: Path, size: int) -> Inputs:
    """The one row that an argument names."""
    rows = read_rows([given], size)
    if len(rows.ids) != 1:
        raise DataError(f"{given} has {len(rows.ids):,} vectors: name one of them, such as {given}:0")
    return rows


class _Rows(NamedTuple):
    """Rows of a file of vectors."""

    ids: list[str]
    vectors: NDArray[np.float32]
    labels: list[str | None]


def _rows(given: Path) -> _Rows:
    """The rows that an argument names."""
    from hedged.data.features.files import read_features

    one = None if given.exists() else ONE.fullmatch(str(given))
    path = Path(one[1]) if one else given
    table = read_features(path)
    count = len(table.vectors)
    names = [f"{path}:{i}" for i in range(count)] if table.ids is None else table.ids.tolist()
    labels = [None] * count if table.labels is None else table.labels.tolist()
    if one is None:
        return _Rows(names, table.vectors, labels)
    row = int(one[2])
    if row >= count:
        raise DataError(f"{path} has rows 0 to {count - 1}, so there is no row {row}")
    return _Rows([names[row]], table.vectors[row : row + 1], [labels[row]])
