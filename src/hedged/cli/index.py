"""`hedged index`."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedged.cli._audit import AUDIT_EXAMPLES, audit, warn_of_enrolments
from hedged.cli._inputs import Images, SkipBroken
from hedged.cli._metadata import Described, read_metadata
from hedged.cli._output import LOGGER, Json, examples, print_json, print_table, printable, say
from hedged.cli._runs import Model, load_embedder
from hedged.cli._sources import rows_of, source_of
from hedged.cli._stores import StoreName, Wheres, filters
from hedged.errors import ConfigError, DataError, HedgedError, RunError

if TYPE_CHECKING:
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


class Stage(StrEnum):
    """How the first stage looks for candidates."""

    EXACT = "exact"
    HNSW = "hnsw"
    IVF = "ivf"


@app.callback()
def index() -> None:
    """Build and change stores, for search and identification."""


@app.command(
    "build",
    epilog=examples(
        "hedged index build runs/demo digits.db photos/",
        "hedged index build runs/dogs dogs.db photos/ --first-stage hnsw",
        "hedged index build runs/dogs postgresql:///dogs photos/ --metadata dogs.csv",
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
        Stage,
        typer.Option(
            "--first-stage", help="exact looks at all rows; hnsw and ivf at some, by their means: approximate."
        ),
    ] = Stage.EXACT,
    json: Json = False,
) -> None:
    """Embed images or vectors into a new store, and build its index.

    The id of a row is the path as given; a vector has the id and the label that its file gives it, or is FILE:ROW. If
    the model tells novelty, it is kept with each row, among the metadata. A store is one SQLite file, tables on a
    PostgreSQL server, or Lance tables in a folder or on object storage. Rows reported as done are on disk; if the
    command is interrupted, continue with `hedged index add --skip-existing`. INPUTS may be a folder of shards of
    `hedged embed --ray`, which are not embedded again.
    """
    from hedged.search import Header, Plan, check_plan, create_store, reserve

    plan = Plan(first_stage.value)
    check_plan(location, plan)
    with reserve(location):  # of two that build one store, the second is refused before it does any work
        embedder = load_embedder(run)
        header = Header.of(embedder)
        source = source_of(embedder, header.fingerprint, images, skip_broken)
        _refuse_twice(source.ids)
        batches = rows_of(source, header.fingerprint, _described(source.ids, metadata), folder_labels)
        options = _options(folder_labels, metadata, skip_broken)
        first = next(batches)  # before there is a store: what cannot be read leaves no empty one behind
        with (
            create_store(location, header) as store,
            _continued_by(store, len(source.ids), [run, store.name, *images, "--skip-existing", *options]),
        ):
            store.add(first)
            store.index(plan).keep()  # known from the start, should this be interrupted
            done = len(first) + _write(store.add, batches)
            store.index(plan).keep()
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
    skip_existing: Annotated[
        bool, typer.Option("--skip-existing", help="Leave out inputs whose ids are already in the store.")
    ] = False,
    json: Json = False,
) -> None:
    """Embed images or vectors and add them to a store.

    The id of a row is the path as given; a vector has the id and the label that its file gives it, or is FILE:ROW. With
    --skip-existing, what was interrupted is continued, and nothing is embedded twice.
    """
    if replace and skip_existing:
        raise ConfigError("--replace and --skip-existing both say what to do about ids that exist: give one of them")
    embedder = load_embedder(run)
    from hedged.search import open_store  # after it: loading a model decides how torch is imported

    fingerprint = embedder.fingerprint()
    source = source_of(embedder, fingerprint, images, skip_broken)
    _refuse_twice(source.ids)
    described = _described(source.ids, metadata)
    with open_store(location) as store:
        store.header.check_model(fingerprint)
        store.check_writable()
        there = 0
        if skip_existing:
            given = len(source.ids)
            source = source.without({row.id for row in store.describe(store.keys().tolist()).values()})
            there = given - len(source.ids)
        mode = "--replace" if replace else "--skip-existing"
        options = _options(folder_labels, metadata, skip_broken)
        with _continued_by(store, len(source.ids) + there, [run, store.name, *images, mode, *options]):
            batches = rows_of(source, fingerprint, described, folder_labels)
            done = _write(store.upsert if replace else store.add, batches)
        warn_of_enrolments(store, source.ids)
        words = f"added {done:,} embeddings to {store.name}" + (f", {there:,} were there" if there else "")
        _report(store, words, {"added": done} | ({"existing": there} if skip_existing else {}), json)


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


@app.command(
    "list",
    epilog=examples("hedged index list dogs.db", "hedged index list dogs.db --where label=rex --limit 20 --json"),
)
def list_rows(
    location: StoreName,
    where: Wheres = [],  # noqa: B006 - typer reads it, nobody writes it
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="Rows to show.")] = 100,
    json: Json = False,
) -> None:
    """List the rows of a store in the order they were added."""
    from hedged.search import open_store

    with open_store(location) as store, store.reading():
        chosen = filters(where)
        store.check(chosen)
        keys = store.keys(chosen).tolist()
        described = store.describe(keys[:limit])
        name, rows = store.name, [described[key] for key in keys[:limit]]
    if json:
        print_json({"store": name, "rows": len(keys), "listed": [row._asdict() for row in rows]})
        return
    shown = [(row.id, row.label or "", ", ".join(f"{k}={v}" for k, v in row.metadata.items())) for row in rows]
    columns = [i for i in range(3) if i == 0 or any(row[i] for row in shown)]
    title = f"{len(keys):,} rows of {name}" + (f", the first {len(rows):,}" if len(rows) < len(keys) else "")
    print_table(title, [("id", "label", "metadata")[i] for i in columns], [[row[i] for i in columns] for row in shown])


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
        print_json(content | ({"checked": True} if check else {}) | ({"to_move_it": move} if move else {}))
        return
    rows = [(name, ", ".join(value) if isinstance(value, list) else _cell(value)) for name, value in content.items()]
    print_table(f"the store {content['store']}", ("", "value"), rows[1:])
    if check:
        say("\nchecked: every row is whole")
    if move:
        say(f"\nto move it: {printable(move)}")


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
    """Copy what is whole of a damaged store into a new one.

    What is lost is listed. STORE is left as it is.
    """
    from hedged.search import Header, repair_store

    header = Header.of(load_embedder(model)) if model else None
    done = repair_store(location, into, header)
    if json:
        print_json({"kept": done.kept, "lost": done.lost})
        return
    say(f"kept {done.kept:,} rows" + (f"; lost {len(done.lost):,}:" if done.lost else "; nothing was lost"))
    for words in done.lost:
        say(f"  {printable(words)}")


app.command("audit", epilog=AUDIT_EXAMPLES)(audit)


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)


def _described(ids: Sequence[str], metadata: Path | None) -> dict[str, Described]:
    """What a table says of the inputs."""
    if metadata is None:
        return {}
    described = read_metadata(metadata)
    missing = [name for name in ids if name not in described]
    unused = len(described) + len(missing) - len(ids)
    if len(missing) == len(ids):
        raise DataError(f"{metadata} names none of these inputs: its ids must be such as {ids[0]}")
    if missing:
        LOGGER.warning(
            "%s says nothing of %s of %s inputs, such as %s: they are stored without label and metadata of it",
            *(metadata, f"{len(missing):,}", f"{len(ids):,}", missing[0]),
        )
    if unused:
        LOGGER.warning("%s has %s rows of inputs that are not given: they are not used", metadata, f"{unused:,}")
    return described


def _refuse_twice(ids: Sequence[str]) -> None:
    """Refuse inputs of which two have one id, before any of them is stored."""
    twice = [name for name, count in Counter(ids).items() if count > 1]
    if twice:
        raise DataError(
            f"{len(twice):,} ids are given twice, such as {twice[0]!r}: ids must differ within a store; nothing was "
            "stored"
        )


def _options(folder_labels: bool, metadata: Path | None, skip_broken: bool) -> list[str]:
    """The options that say what is stored of an input, as they are typed."""
    return [
        *(["--folder-labels"] if folder_labels else []),
        *(["--metadata", str(metadata)] if metadata else []),
        *(["--skip-broken"] if skip_broken else []),
    ]


@contextmanager
def _continued_by(store: Store, total: int, arguments: Sequence[str | Path]) -> Iterator[None]:
    """If what is done within is interrupted or fails, say how many rows are there and how to continue."""
    try:
        yield
    except (KeyboardInterrupt, HedgedError, OSError) as error:
        command = shlex.join(["hedged", "index", "add", *map(str, arguments)])
        reason = "interrupted" if isinstance(error, KeyboardInterrupt) else str(error)
        told = "\nwhat is there is not embedded again" if "--skip-existing" in arguments else ""
        raise RunError(
            f"{reason}\n{store.name} holds {store.count():,} rows now, {total:,} inputs were given: continue with\n"
            f"  {command}{told}"
        ) from error


def _write(write: Callable[[Rows], None], batches: Iterable[Rows]) -> int:
    """Write rows as they come, and count them."""
    done = 0
    for rows in batches:
        write(rows)
        done += len(rows)
    return done


def _report(store: Store, words: str, numbers: dict[str, int], as_json: bool) -> None:
    if as_json:
        print_json({"store": store.name, **numbers, "rows": store.count()})
    else:
        say(printable(f"{words}; it holds {store.count():,} now"))
