"""What the verbs that use a store share: their arguments, and images on their way into rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from hedged.cli._vectors import read_rows, takes_vectors
from hedged.cli.embed import files_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hedged.distributions import Distribution
    from hedged.models import Embedder
    from hedged.search import Store, Where

StoreName = Annotated[
    str, typer.Argument(metavar="STORE", help="A file of embeddings, or the address of one on a server: postgresql://…")
]
Images = Annotated[
    list[Path],
    typer.Argument(
        metavar="IMAGES",
        help="Image files, or folders of them (searched whole); for a model of vectors, .npy, .npz or .parquet.",
    ),
]
Wheres = Annotated[
    list[str],
    typer.Option("--where", metavar="KEY=VALUE", help="Only rows with this label, id or metadata; may be repeated."),
]
CandidateCount = Annotated[
    int | None,
    typer.Option("--candidates", min=1, metavar="N", help="Rows that the first stage hands on. [1000, or 10 × K]"),
]
EfSearch = Annotated[
    int, typer.Option("--ef-search", min=1, metavar="N", help="How far a graph looks around, if there is one.")
]
EF_SEARCH = 200
BATCH = 256


def filters(texts: list[str]) -> list[Where]:
    from hedged.search import parse_where

    return [parse_where(text) for text in texts]


def check_model(store: Store, embedder: Embedder) -> None:
    """Refuse a model that did not make the embeddings of a store, before any work is done."""
    store.header.check_model(embedder.fingerprint())


class Inputs(NamedTuple):
    """What is to be embedded: image files, or vectors for a model of vectors; and an id for each."""

    ids: list[str]
    items: list[Path] | NDArray[np.float32]


def inputs_of(embedder: Embedder, given: list[Path]) -> Inputs:
    """All that the arguments name, each once: images and those of folders, or rows of files with vectors."""
    if takes_vectors(embedder):
        return Inputs(*read_rows(given, embedder.architecture.shape[0]))
    paths = list(dict.fromkeys(path for image in given for path in files_of(image)))
    return Inputs([name_of(path) for path in paths], paths)


def embedded(embedder: Embedder, inputs: Inputs) -> Iterator[tuple[Inputs, Distribution]]:
    """Inputs and their embeddings, some at a time, with progress; what is yielded may be kept before the next."""
    from hedged._progress import progress

    with progress("embedding", len(inputs.ids)) as update:
        for start in range(0, len(inputs.ids), BATCH):
            part = slice(start, start + BATCH)
            some = Inputs(inputs.ids[part], inputs.items[part])
            yield some, embedder.embed(some.items, BATCH)
            update(start + len(some.ids))


def name_of(path: Path) -> str:
    """A path as text: a disk may hold any bytes as a name."""
    return str(path).encode(errors="replace").decode()
