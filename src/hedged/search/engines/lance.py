"""A store in Lance tables, in a folder or on object storage, without a server: `lance://PATH`, `lance://s3://…`.

A write is one commit of the table of rows; a reader keeps the version that it began with. The likeliest rows are found
by the distance of their means in Lance, and ranked here, by what comes as Arrow batches.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from hedged._locks import owning
from hedged.errors import StoreError
from hedged.search.engines._checks import (
    RawRow,
    checksum,
    described,
    description_fault,
    embedding_fault,
    header_checksum,
    row_fault,
    value_fault,
)
from hedged.search.engines._lance_tables import (
    SCHEME,
    Arrow,
    among,
    condition,
    connect,
    is_local,
    keys_of,
    lists_of,
    looked_up,
    place_of,
    quoted,
    schema_of,
    translating_errors,
)
from hedged.search.engines._refusals import damaged, taken, written_while_read
from hedged.search.engines._sql import check_version, read_header
from hedged.search.index import Candidates, Index, Means, Plan, checked_ef_search, first_means
from hedged.search.rows import FLOAT, Batch, Described, Filter, Header, Keys, Packed, Rows, as_column, as_json
from hedged.search.store import ROWS_PER_BATCH, Salvage, Store

if TYPE_CHECKING:
    from hedged.distributions import Distribution
    from hedged.search.index import Means

VERSION, READABLE = 1, (1,)  # of the tables
WAIT_SECONDS = 30.0  # for another writer
ROW = ("key", "id", "label", "metadata")  # the columns of a row without its embedding
NEAR = ("key", "embedding", "checksum", "_distance")  # those that a search reads
LEAST_OF_LIST = 16  # rows of a list of an approximate index


@final
class LanceStore(Store, scheme="lance"):
    """Rows in a Lance table. On one machine writers wait for each other; on object storage one may write at a time.

    Args:
        location: `lance://` and a folder, or the address of one on object storage as LanceDB takes it.
    """

    first_stages = ("exact", "ivf")
    _depth = 0  # of `reading` inside `reading`
    _patience = WAIT_SECONDS

    def __init__(self, location: str) -> None:
        self._place = place_of(location)
        if is_local(self._place) and not Path(self._place).is_dir():
            raise StoreError(f"there is no store {self.name}: build it with `hedged index build`, or check the address")
        with translating_errors(self.name):
            database = connect(self._place)
            self._about, self._table = database.open_table("store"), database.open_table("item")
            columns = self._said()
            check_version(columns.get("version"), self.name, READABLE)
            self._header, self._uuid = read_header(columns, self.name), columns["uuid"]

    @classmethod
    def open(cls, location: str) -> Self:
        return cls(location)

    @classmethod
    def create(cls, location: str, header: Header) -> Self:
        import pyarrow as pa  # type: ignore[import-untyped]

        place = place_of(location)
        with cls.reserve(location):
            text, name = json.dumps(header.describe()), uuid.uuid4().hex
            about = {
                "version": VERSION,
                "uuid": name,
                "header": text,
                "checksum": header_checksum(name, text),
                "key": 1,
            }
            with translating_errors(f"{SCHEME}{place}"):
                database = connect(place)
                database.drop_table("item", ignore_missing=True)  # of one that was not finished
                database.create_table("item", schema=schema_of(header))
                database.create_table("store", pa.Table.from_pylist([about]))
        return cls(location)

    @classmethod
    def refuse_existing(cls, location: str) -> None:
        place = place_of(location)
        if is_local(place):
            found = [path.name for path in Path(place).iterdir()] if Path(place).is_dir() else []
            is_there = "store.lance" in found or set(found) - {"item.lance"} or Path(place).is_file()
        else:
            with translating_errors(f"{SCHEME}{place}"):
                is_there = "store" in connect(place).list_tables().tables
        if is_there:
            raise StoreError(f"{SCHEME}{place} exists already: choose another name, or add to it")

    @classmethod
    @contextmanager
    def reserve(cls, location: str) -> Iterator[None]:
        place = place_of(location)

        def refusal(holder: str) -> StoreError:
            return StoreError(f"{holder} is building {SCHEME}{place}: wait for it, or choose another name")

        if is_local(place):
            path = Path(place)
            if not path.name:
                raise StoreError(f"{SCHEME}{place} is a folder without a name: give the name of one in it")
            path.parent.mkdir(parents=True, exist_ok=True)
            with owning(path.with_name(f".{path.name}.building"), refusal):
                cls.refuse_existing(location)
                yield
        else:
            cls.refuse_existing(location)
            yield

    @property
    def name(self) -> str:
        return f"{SCHEME}{self._place}"

    @property
    def header(self) -> Header:
        return self._header

    def how_to_move(self) -> str:
        return "copy the folder with all that is in it while nobody writes"

    def wait_at_most(self, seconds: float) -> None:
        self._patience = seconds

    def close(self) -> None:
        """Nothing is held open."""

    def moment(self) -> Hashable:
        with self.reading():
            return self._uuid, self._table.version

    def index(self, plan: Plan | None = None, ef_search: int | None = None) -> LanceIndex:
        """Search by the distance of means in Lance.

        Args:
            plan: How candidates are found: `exact` compares all means, `ivf` looks in lists; None: in lists if there
                are any.
            ef_search: Of no meaning here: there is no graph.
        """
        checked_ef_search(ef_search)
        self.check_plan(plan)
        if plan and plan.kind == "ivf":
            self.build_lists()
        return LanceIndex(self, plan)

    def build_lists(self) -> None:
        """Sort the means of all rows into lists, so that a search looks at few; those added later are found too."""
        from lancedb.index import IvfFlat

        with self._writing():
            rows = self._table.count_rows()
            lists = IvfFlat(distance_type="l2", num_partitions=max(min(rows // LEAST_OF_LIST, int(rows**0.5)), 1))
            for name in self._means():
                self._table.create_index(name, config=lists)

    def compact(self) -> None:
        """Join the files of many small writes, and drop what no version needs any more."""
        with self._writing():
            self._table.optimize()
            self._about.optimize()

    def has_lists(self) -> bool:
        """Whether there are lists of means."""
        with self.reading(), translating_errors(self.name):
            return bool(self._table.list_indices())

    @contextmanager
    def reading(self) -> Iterator[None]:
        if not self._depth:
            self._check_in_place()
        self._depth += 1
        try:
            yield  # the table stays at its version until it is told otherwise
        finally:
            self._depth -= 1

    @contextmanager
    def _writing(self) -> Iterator[None]:
        if self._depth:
            raise written_while_read(self.name)
        lock: AbstractContextManager[None] = nullcontext()
        if is_local(self._place):
            if not Path(self._place).is_dir():
                raise self._deleted()
            lock = owning(Path(self._place) / "write.lock", self._busy, self._patience)
        with translating_errors(self.name), lock:
            self._check_in_place()
            yield

    def _busy(self, holder: str) -> StoreError:
        return StoreError(f"{holder} writes to {self.name}: nothing was written. Try again when it is done")

    def _check_in_place(self) -> None:
        """Go to the latest version; a store that was deleted since it was opened, or built anew, is refused."""
        try:
            self._about.checkout_latest()
            is_same = self._said()["uuid"] == self._uuid
            self._table.checkout_latest()
        except (ValueError, RuntimeError, OSError) as error:
            raise self._deleted() from error
        if not is_same:
            raise StoreError(f"{self.name} was deleted and built anew since it was opened: open the store again")

    def _deleted(self) -> StoreError:
        return StoreError(f"{self.name} was deleted since it was opened: nothing was done")

    def _said(self) -> dict[str, Any]:
        """What the store says of itself."""
        rows = self._about.to_arrow().to_pylist()
        return rows[0] if rows else {}

    def _new_keys(self, count: int) -> int:
        """The first of as many keys that nobody else gets."""
        first = int(self._said()["key"])
        if self._about.update(where=f"key = {first}", values={"key": first + count}).rows_updated != 1:
            raise self._busy("another process")
        return first

    def _write(self, rows: Rows, replace: bool) -> None:
        if not len(rows):
            return
        with self._writing():
            old = {row["id"]: row["key"] for row in self._read(among("id", rows.ids), ("id", "key")).to_pylist()}
            if old and not replace:
                raise taken(self.name, [name for name in rows.ids if name in old])
            new = iter(range(self._new_keys(len(rows) - len(old)), 2**63))
            keys = [old[name] if name in old else next(new) for name in rows.ids]
            merge = self._table.merge_insert("id").when_not_matched_insert_all()
            (merge.when_matched_update_all() if replace else merge).execute(self._arrow(keys, rows))

    def _arrow(self, keys: list[int], rows: Rows) -> Arrow:
        """Rows as the table has them."""
        import pyarrow as pa

        all_described, packed = rows.described(), rows.packed()
        texts = [as_json(row.metadata) for row in all_described]
        means = self._header.means(packed).reshape(len(rows), self._header.components, self._header.dim)
        of_rows = zip(packed, all_described, texts, strict=True)
        columns = {
            "key": keys,
            "id": list(rows.ids),
            "label": [row.label for row in all_described],
            "metadata": texts,
            "names": [sorted(row.metadata) for row in all_described],
            "tags": [looked_up(row.metadata) for row in all_described],
            "checksum": [checksum(numbers.tobytes(), row.id, row.label, text) for numbers, row, text in of_rows],
            "embedding": lists_of(packed),
            **{name: lists_of(means[:, i]) for i, name in enumerate(self._means())},
        }
        return pa.table(columns, schema=schema_of(self._header))

    def remove(self, ids: Iterable[str]) -> int:
        """Remove rows, and return how many there were. Earlier versions of the table keep them until they are dropped.

        Args:
            ids: Their ids; those that no row has are passed over.
        """
        given = as_column("ids", ids)
        if not given:
            return 0
        with self._writing():
            return int(self._table.delete(among("id", given)).num_deleted_rows)

    def _count(self, where: Filter) -> int:
        with translating_errors(self.name):
            return int(self._table.count_rows(condition(where)))

    def _keys(self, where: Filter) -> Keys:
        return np.sort(keys_of(self._read(condition(where), ("key",))))

    def _read(self, where: str | None, columns: Sequence[str], limit: int | None = None) -> Arrow:
        return self._found(self._table.search().select(list(columns)).limit(limit), where)

    def _found(self, query: Any, where: str | None) -> Arrow:
        """The rows that a query finds among those that meet a condition."""
        with translating_errors(self.name):
            return (query.where(where) if where else query).to_arrow()

    def _tables(self, where: Filter, columns: Sequence[str], size: int) -> Iterator[Arrow]:
        """Rows that pass a filter, in the order of their keys, some at a time."""
        query = self._table.search().select(["key"]).with_row_id(True).limit(None)
        places = self._found(query, condition(where)).sort_by("key")["_rowid"].to_pylist()
        for start in range(0, len(places), size):
            some = self._table.take_row_ids(places[start : start + size]).select(list(columns))
            yield self._found(some, None).sort_by("key")

    def _batches(self, where: Filter, size: int) -> Iterator[Batch]:
        for table in self._tables(where, (*ROW, "embedding", "checksum"), size):
            rows = [self._described(row) for row in self._raw(table)]
            yield Batch(keys_of(table), rows, self.packed(table))

    def _raw(self, table: Arrow) -> Iterator[RawRow]:
        embeddings: Iterable[Any] = [None] * len(table)
        if "embedding" in table.column_names:
            embeddings = (numbers.tobytes() for numbers in self._numbers(table))
        for row, embedding in zip(table.drop_columns(["embedding"]).to_pylist(), embeddings, strict=True):
            yield RawRow(row["key"], embedding, row["checksum"], row["id"], row["label"], row["metadata"])

    def _numbers(self, table: Arrow, column: str = "embedding") -> Packed:
        lists = table[column].combine_chunks()
        flat = lists.flatten().to_numpy(zero_copy_only=False)
        return np.ascontiguousarray(flat, FLOAT).reshape(len(table), lists.type.list_size)

    def packed(self, table: Arrow) -> Packed:
        """The embeddings of rows, `(n, width)`; an error if they are not what was written.

        Args:
            table: Rows, with their keys and checksums.
        """
        packed = self._numbers(table)
        written = table.select(["key", "checksum"]).to_pylist()
        for row, numbers in zip(written, packed, strict=True):
            if fault := embedding_fault(self._header, numbers.tobytes(), row["checksum"]):
                raise damaged(self.name, [f"row {row['key']}: {fault}"])
        for i in np.flatnonzero(~np.isfinite(packed).all(1))[:1]:  # as it was written, by somebody else
            fault = value_fault(self._header, packed[i].tobytes())
            raise damaged(self.name, [f"row {written[i]['key']}: {fault}"])
        return packed

    def _described(self, row: RawRow) -> Described:
        if fault := description_fault(row.id, row.label, row.metadata, row.checksum):
            raise damaged(self.name, [f"row {row.key}: {fault}"])
        return described(row)

    def describe(self, keys: Sequence[int]) -> Mapping[int, Described]:
        with self.reading():
            if not len(keys):
                return {}
            table = self._read(f"key IN ({', '.join(str(int(key)) for key in keys)})", (*ROW, "checksum"))
            rows = [RawRow(row["key"], None, row["checksum"], *(row[n] for n in ROW[1:])) for row in table.to_pylist()]
            return {row.key: self._described(row) for row in rows}

    def label_count(self) -> int:
        with self.reading():
            return len(self._read("label IS NOT NULL", ("label",))["label"].unique())

    def metadata_keys(self) -> list[str]:
        with self.reading():
            return sorted(self._read(None, ("names",))["names"].combine_chunks().flatten().unique().to_pylist())

    def _has_key(self, key: str) -> bool:
        return len(self._read(f"array_has(names, {quoted(key)})", ("key",), limit=1)) > 0

    def nearest(self, mean: Means, component: int, count: int, where: Filter, lists: int | None) -> Arrow:
        """The rows of which a component's mean is nearest to one, with their embeddings.

        Args:
            mean: `(D,)`.
            component: Which of a mixture; else 0.
            count: How many rows to find.
            where: The filter that they pass.
            lists: How many lists to look in; None: compare all means.
        """
        query = self._table.search(mean, vector_column_name=self._means()[component]).distance_type("l2").limit(count)
        query = query.bypass_vector_index() if lists is None else query.nprobes(lists)
        return self._found(query.select(list(NEAR)), condition(where))

    def _means(self) -> list[str]:
        return [f"mean_{i}" for i in range(self._header.components)]

    def verify(self) -> None:
        with self.reading():
            if faults := [fault for rows in self._survey() for _, fault in rows if fault]:
                raise damaged(self.name, faults)

    def _survey(self) -> Iterator[list[tuple[RawRow, str]]]:
        """All rows, with what is wrong with each, some at a time."""
        columns = (*ROW, "tags", "checksum", "embedding", *self._means())
        for table in self._tables((), columns, ROWS_PER_BATCH):
            means = self._header.means(self._numbers(table)).reshape(len(table), -1)
            kept = np.concatenate([self._numbers(table, name) for name in self._means()], axis=1)
            found = table.select(["tags"]).to_pylist()
            of_rows = zip(self._raw(table), found, (means == kept).all(1), strict=True)
            yield [(row, self._fault(row, one["tags"], is_same)) for row, one, is_same in of_rows]

    def _fault(self, row: RawRow, known: list[str], is_found: bool) -> str:
        """What is wrong with a row, given what filters look up and whether it is found by its own means."""
        fault = row_fault(self._header, row, row.metadata)
        if not fault and not is_found:
            fault = "the means that it is found by are not those of its embedding"
        if not fault and known != looked_up(described(row).metadata):
            fault = "its metadata and what filters look up differ"
        return fault and f"row {row.key} ({row.id!r}): {fault}"

    @classmethod
    @contextmanager
    def salvaging(cls, location: str, header: Header | None = None) -> Iterator[Salvage]:
        with cls.open(location) as store, store.reading():
            lost: list[str] = []
            yield Salvage(store.name, store.header, store._salvaged(lost), lost)

    def _salvaged(self, lost: list[str]) -> Iterator[Batch]:
        """The rows that are whole, with what is wrong with the others in `lost`."""
        for rows in self._survey():
            lost += [fault for _, fault in rows if fault]
            whole = [row for row, fault in rows if not fault]
            if whole:
                packed = np.frombuffer(b"".join(row.embedding for row in whole), FLOAT).reshape(len(whole), -1)
                yield Batch(np.array([row.key for row in whole]), [described(row) for row in whole], packed.copy())


@final
class LanceIndex(Index):
    """Search in a Lance store: by its lists if it has any, else by comparing all means.

    Args:
        store: The store.
        plan: How candidates are found; None: as the store has it.
    """

    def __init__(self, store: LanceStore, plan: Plan | None = None) -> None:
        self._store, self._plan = store, plan

    @property
    def store(self) -> LanceStore:
        return self._store

    def keep(self) -> None:
        """Nothing is kept but what Lance keeps; the files of many small writes are joined."""
        self._store.compact()

    def _candidates(self, probes: Distribution, count: int, where: Filter) -> Candidates:
        plan = self._plan or Plan("ivf" if self._store.has_lists() else "exact")
        lists = plan.lists_searched if plan.kind == "ivf" else None
        components = range(self._store.header.components)
        tables = [
            [self._store.nearest(mean, one, count, where, lists) for mean in probe for one in components]
            for probe in first_means(probes)
        ]
        found = [np.concatenate([keys_of(table) for table in of_probe]) for of_probe in tables]
        keys, first = np.unique(np.concatenate(found), return_index=True)
        packed = np.concatenate([self._store.packed(table) for of_probe in tables for table in of_probe])[first]
        chosen = np.full((len(found), max(map(len, found))), -1, dtype=np.int64)
        for n, of_probe in enumerate(found):
            chosen[n, : len(of_probe)] = np.searchsorted(keys, of_probe)
        return Candidates(keys, packed, chosen)
