"""Stores of embeddings, the logs and index files beside them, and tables of metadata."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import final

from fuzz.seeds import FileTarget
from search.gallery import KINDS, MODEL, embeddings, header_of, rows

from hedged.cli._metadata import read_metadata
from hedged.errors import HedgedError, StoreError
from hedged.search import Plan, Rows, SqliteStore, open_store, repair_store
from hedged.search.engines._faiss import FaissIndex
from hedged.search.identify import Identifier, Identities
from hedged.search.index import Kind

FILE = "a.db"
COUNT = 40  # rows of a store
LISTED = 100  # rows from which on an index has lists


def attempt_all(*attempts: Callable[[], object]) -> None:
    """Make all attempts, though some are refused, and then raise the first refusal."""
    refusals = []
    for attempt in attempts:
        try:
            attempt()
        except HedgedError as error:
            refusals.append(error)
    if refusals:
        raise refusals[0]


@final
class Stores(FileTarget):
    """The file of a store, and a log that a killed writer left: read, checked, searched, written to and repaired."""

    name = "stores"

    def write_seeds(self, folder: Path) -> list[Path]:
        for kind in KINDS:
            place = folder / kind
            place.mkdir()
            with SqliteStore.create(place / FILE, header_of(kind)) as store:
                store.add(rows(kind, COUNT))
                store.remove(["row 3"])
        _leave_log(folder / "gaussian", folder / "log")
        return sorted(folder.iterdir())

    def use(self, folder: Path) -> None:
        path = folder / FILE
        attempt_all(
            lambda: _read(path),
            lambda: _check(path),
            lambda: _search(path),
            lambda: _write(path),
            lambda: repair_store(str(path), str(folder / "new.db")),
        )


def _leave_log(store: Path, place: Path) -> None:
    """A store whose last rows are in its log alone, as a kill leaves it."""
    whole = place.with_name("whole")
    shutil.copytree(store, whole)
    with SqliteStore(whole / FILE) as writer:
        writer.add(rows("gaussian", 5, first=COUNT))
        shutil.copytree(whole, place, ignore=shutil.ignore_patterns("*-shm"))
    shutil.rmtree(whole)


def _read(path: Path) -> None:
    with open_store(path) as store:
        store.count()
        store.label_count()
        store.metadata_keys()
        for _ in store.batches():
            pass


def _check(path: Path) -> None:
    with open_store(path) as store:
        store.verify()


def _search(path: Path) -> None:
    with open_store(path) as store:
        kind = store.header.kind
        if kind not in KINDS:
            raise StoreError(f"another kind: {kind}")
        probes = embeddings(kind, 2, seed=5)
        attempt_all(
            lambda: store.index().search(probes, 3, candidates=5),
            lambda: Identifier(Identities.read(store)).identify(probes, 2),
        )


def _write(path: Path) -> None:
    with open_store(path) as store:
        kind = store.header.kind
        if kind in KINDS:
            store.upsert(rows(kind, 3, first=COUNT - 1))
        store.remove(["row 1", "row 2"])


@final
class IndexFiles(FileTarget):
    """The .index file beside a store: of any damage, it is made again."""

    name = "index-files"

    def write_seeds(self, folder: Path) -> list[Path]:
        kinds: tuple[Kind, ...] = ("exact", "hnsw", "ivf")
        for kind in kinds:
            place = folder / kind
            place.mkdir()
            with SqliteStore.create(place / FILE, header_of("gaussian")) as store:
                store.add(rows("gaussian", LISTED))
                FaissIndex(store, Plan(kind, links=4)).save()
        return sorted(folder.iterdir())

    def is_damaged(self, name: str) -> bool:
        return name.endswith(".index")

    def use(self, folder: Path) -> None:
        with SqliteStore(folder / FILE) as store:
            found = FaissIndex(store).search(embeddings("gaussian", 2, seed=5), 3, candidates=5)
            assert [len(hits) for hits in found] == [3, 3]
            store.remove(["row 1"])


@final
class MetadataTables(FileTarget):
    """What `--metadata` takes, and its way into a store."""

    name = "metadata"

    def write_seeds(self, folder: Path) -> list[Path]:
        import pyarrow as pa  # type: ignore[import-untyped]
        from pyarrow import parquet

        contents = {
            "table.csv": 'id,label,year,note\na.png,Rex,2019,"a, b"\nb.png,,2020,\nc.png,Ada,2021,é\n',
            "table.jsonl": '{"id": "a", "label": "Rex", "year": 2019, "tags": [1, null, {"x": 2.5}]}\n{"id": "b"}\n',
        }
        for name, text in contents.items():
            (folder / name).mkdir()
            (folder / name / name).write_text(text, encoding="utf-8")
        (folder / "parquet").mkdir()
        table = pa.table({"id": ["a", "b"], "label": ["Rex", None], "year": [2019, 2020], "weight": [1.5, 2.5]})
        parquet.write_table(table, folder / "parquet" / "table.parquet")
        return sorted(folder.iterdir())

    def use(self, folder: Path) -> None:
        (path,) = folder.iterdir()
        described = read_metadata(path)
        names = list(described)[:20]
        z = embeddings("gaussian", len(names))
        given = Rows(names, z, MODEL, [described[n].label for n in names], [described[n].metadata for n in names])
        with SqliteStore.create(folder / FILE, header_of("gaussian")) as store:
            store.add(given)
            store.verify()
