"""`hedged index`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from hedged._files import path_text
from hedged.cli._inputs import Images, Inputs, SkipBroken, embedded_sound, inputs_of
from hedged.cli._metadata import Described, read_metadata
from hedged.cli._output import Json, examples, print_json, print_table, printable
from hedged.cli._runs import Model, load_embedder
from hedged.cli._stores import StoreName, Wheres, check_model, filters
from hedged.errors import ConfigError, DataError

if TYPE_CHECKING:
    from hedged.models import Embedder
    from hedged.search import Rows, Store

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)

FolderLabels = Annotated[
    bool, typer.Option("--folder-labels", help="Use the name of each image's folder as its label.")
]
Metadata = Annotated[
    Path | None,
    typer.Option(
        "--metadata",
        metavar="F",
        help="A .csv, .jsonl or .parquet with columns id (as in the store), label, and any others.",
    ),
]


class Source(NamedTuple):
    """What is to be embedded and stored, and what is known of it.

    Args:
        inputs: The inputs.
        described: Labels and metadata by id.
        folder_labels: Whether images without a label there get the name of their folder.
        skip_broken: Whether to leave out files that cannot be decoded.
    """

    inputs: Inputs
    described: dict[str, Described]
    folder_labels: bool
    skip_broken: bool

    def rows(self, embedder: Embedder, fingerprint: str) -> Iterator[Rows]:
        """The rows of the store, some at a time.

        Args:
            embedder: The model.
            fingerprint: Of the model: it takes long to find, so it is found once.
        """
        from hedged.search import Rows

        for inputs, z in embedded_sound(embedder, self.inputs, self.skip_broken):
            of_each = [self.described.get(name, Described(None, {})) for name in inputs.ids]
            own = _folders(inputs) if self.folder_labels else inputs.labels or [None] * len(inputs.ids)
            labels = [known.label or label for known, label in zip(of_each, own, strict=True)]
            yield Rows(inputs.ids, z, fingerprint, labels, [known.metadata for known in of_each])


class Stage(StrEnum):
    """How the first stage looks for candidates."""

    EXACT = "exact"
    HNSW = "hnsw"
    IVF = "ivf"


@app.callback()
def index() -> None:
    """Build and update stores of embeddings, for search and identification."""


@app.command(
    "build",
    epilog=examples(
        "hedged index build runs/demo digits.db photos/",
        "hedged index build runs/dogs dogs.db photos/ --folder-labels --first-stage hnsw",
        "hedged index build runs/dogs 'postgresql://localhost/dogs#gallery' photos/ --metadata photos.csv",
    ),
)
def build(
    run: Model,
    location: StoreName,
    images: Images,
    folder_labels: FolderLabels = False,
    metadata: Metadata = None,
    skip_broken: SkipBroken = False,
    first_stage: Annotated[
        Stage, typer.Option("--first-stage", help="exact compares all means; hnsw and ivf are faster, but approximate.")
    ] = Stage.EXACT,
    json: Json = False,
) -> None:
    """Embed images or vectors into a new store, and build its index.

    The id of a row is the path as given; a vector has the id and the label that its file gives it, or is FILE:ROW.
    A store is one SQLite file, or tables on a PostgreSQL server. Rows reported as done are on disk; if the command is
    interrupted, continue with `hedged index add`.
    """
    from hedged.search import Header, Plan, create_store, reserve

    with reserve(location):  # of two that build one store, the second is refused before it does any work
        embedder = load_embedder(run)
        inputs = inputs_of(embedder, images)
        source = Source(inputs, _described(inputs, metadata), folder_labels, skip_broken)
        header = Header.of(embedder)
        batches = source.rows(embedder, header.fingerprint)
        first = next(batches)  # before there is a store: what cannot be read leaves no empty one behind
        with create_store(location, header) as store:
            done = _write(store.add, chain([first], batches))
            store.index(Plan(first_stage.value)).keep()
            _report(store, f"stored {done:,} embeddings in {store.name}", {"added": done}, json)


@app.command(
    "add",
    epilog=examples(
        "hedged index add runs/demo digits.db more/", "hedged index add runs/demo digits.db photos/ --replace"
    ),
)
def add(
    run: Model,
    location: StoreName,
    images: Images,
    folder_labels: FolderLabels = False,
    metadata: Metadata = None,
    skip_broken: SkipBroken = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace rows whose ids are already in the store.")
    ] = False,
    json: Json = False,
) -> None:
    """Embed images or vectors and add them to a store.

    The id of a row is the path as given; a vector has the id and the label that its file gives it, or is FILE:ROW.
    """
    from hedged.search import open_store

    embedder = load_embedder(run)
    inputs = inputs_of(embedder, images)
    source = Source(inputs, _described(inputs, metadata), folder_labels, skip_broken)
    with open_store(location) as store:
        check_model(store, embedder)
        batches = source.rows(embedder, store.header.fingerprint)
        done = _write(store.upsert if replace else store.add, batches)
        _report(store, f"added {done:,} embeddings to {store.name}", {"added": done}, json)


@app.command(
    "remove",
    epilog=examples("hedged index remove dogs.db photos/rex/1.jpg", "hedged index remove dogs.db --where label=rex"),
)
def remove(
    location: StoreName,
    ids: Annotated[list[str] | None, typer.Argument(metavar="[IDS]", help="Ids of the rows to remove.")] = None,
    where: Wheres = [],  # noqa: B006 - typer reads it, nobody writes it
    json: Json = False,
) -> None:
    """Remove rows from a store, by id or with a filter."""
    from hedged.search import open_store

    if bool(ids) == bool(where):
        raise ConfigError("rows are removed by their ids or by --where: give one of the two")
    with open_store(location) as store:
        named = ids or [row.id for row in store.describe(store.keys(filters(where)).tolist()).values()]
        count = store.remove(named)
        missing = len(set(named)) - count
        words = f"removed {count:,} rows of {store.name}" + (f"; {missing:,} ids were not found" if missing else "")
        _report(store, words, {"removed": count, "missing": missing}, json)


@app.command("info", epilog=examples("hedged index info dogs.db", "hedged index info dogs.db --check --json"))
def info(
    location: StoreName,
    check: Annotated[bool, typer.Option("--check", help="Read every row, and fail if anything is damaged.")] = False,
    json: Json = False,
) -> None:
    """Describe a store: rows, labels, metadata and model."""
    from hedged.search import open_store

    with open_store(location) as store:
        if check:
            store.verify()
        header, keys, move = store.header, store.metadata_keys(), store.how_to_move()
        content: dict[str, Any] = {
            "store": store.name, "rows": store.count(), "labels": store.label_count(), "metadata": keys,
            "model": header.fingerprint, "kind": header.kind, "dim": header.dim, "components": header.components,
            "match_model": header.match["kind"], **{key: header.match[key] for key in header.match if key != "kind"},
        }  # fmt: skip
    if json:
        print_json(content | ({"to_move_it": move} if move else {}))
        return
    rows = [(name, ", ".join(value) if isinstance(value, list) else _cell(value)) for name, value in content.items()]
    print_table(f"the store {content['store']}", ("", "value"), rows[1:])
    if move:
        print(f"\nto move it: {printable(move)}")


@app.command(
    "repair",
    epilog=examples("hedged index repair dogs.db whole.db", "hedged index repair dogs.db whole.db --model runs/dogs"),
)
def repair(
    location: StoreName,
    into: Annotated[str, typer.Argument(metavar="NEW", help="A file for the new store, or an address on a server.")],
    model: Annotated[
        Path | None,
        typer.Option("--model", metavar="RUN", help="The model of STORE, if STORE no longer says which it was."),
    ] = None,
    json: Json = False,
) -> None:
    """Copy what is whole of a damaged store into a new one, and list what is lost; STORE is left as it is."""
    from hedged.search import Header, repair_store

    header = Header.of(load_embedder(model)) if model else None
    done = repair_store(location, into, header)
    if json:
        print_json({"kept": done.kept, "lost": done.lost})
        return
    print(f"kept {done.kept:,} rows" + (f"; lost {len(done.lost):,}:" if done.lost else "; nothing was lost"))
    for words in done.lost:
        print(f"  {printable(words)}")


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)


def _described(inputs: Inputs, metadata: Path | None) -> dict[str, Described]:
    """What a table says of the inputs."""
    described = read_metadata(metadata) if metadata else {}
    if metadata and not described.keys() & set(inputs.ids):
        raise DataError(f"{metadata} names none of these inputs: its ids must be such as {inputs.ids[0]}")
    return described


def _write(write: Callable[[Rows], None], batches: Iterable[Rows]) -> int:
    """Write rows as they come, and count them."""
    done = 0
    for rows in batches:
        write(rows)
        done += len(rows)
    return done


def _folders(inputs: Inputs) -> list[str]:
    """The names of the folders of the images."""
    if inputs.vectors is not None:
        raise ConfigError("vectors are in no folders: give their labels in their file, or by a table, --metadata F")
    return [path_text(path.resolve().parent.name) for path in inputs.paths]


def _report(store: Store, words: str, numbers: dict[str, int], as_json: bool) -> None:
    if as_json:
        print_json({"store": store.name, **numbers, "rows": store.count()})
    else:
        print(printable(f"{words}; it holds {store.count():,} now"))
