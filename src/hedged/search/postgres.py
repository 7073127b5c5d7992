"""The store on a server, for galleries beyond one machine or one writer: PostgreSQL with pgvector.

The first stage is in the database, over plain vectors; ranking by match probability is here, the same as elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Self, final

import numpy as np

from hedged.errors import StoreError, ValueRangeError
from hedged.search.first_stage import Means
from hedged.search.index import EF_SEARCH, Index
from hedged.search.postgres_server import Address, connect, make_tables, read_header, told
from hedged.search.rerank import Candidates
from hedged.search.rows import Header, Keys, Packed, Rows, as_json
from hedged.search.sql import SqlStore, keys_of
from hedged.search.where import Filter, condition, tags

GRAPH = "component_mean"
MOST_EF = 1000  # that pgvector takes


@final
class PostgresStore(SqlStore):
    """A store in a schema of a database: `postgresql://host/database#name`."""

    def __init__(self, location: str) -> None:
        self._address = Address.of(location)
        self._connection = connect(self._address)
        try:
            self._header = read_header(self._connection, self._address)
        except BaseException:
            self._connection.close()
            raise

    @classmethod
    def create(cls, location: str, header: Header) -> Self:
        """A new store, empty, where there is none of this name yet."""
        make_tables(Address.of(location), header)
        return cls(location)

    @property
    def name(self) -> str:
        return str(self._address)

    def close(self) -> None:
        self._connection.close()

    def _told(self) -> AbstractContextManager[None]:
        return told(self._address)

    def _begin(self) -> None:
        self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def _end(self) -> None:
        if not self._connection.broken:
            self._connection.execute("ROLLBACK")  # nothing was written; and settings of the moment go

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._refuse_reading()
        with told(self._address), self._connection.transaction():
            yield

    def _write(self, rows: Rows, replace: bool) -> None:
        columns = list(zip(*((row.id, row.label, as_json(row.metadata)) for row in rows.described()), strict=True))
        packed = rows.packed()
        with self._writing():
            there = self._there(rows, replace)
            for table in ("tag", "component"):
                self._all(f"DELETE FROM {table} WHERE item = ANY(?) RETURNING item", there)
            written = self._all(
                "INSERT INTO item (id, label, metadata, embedding) "
                "SELECT id, label, metadata::jsonb, embedding FROM unnest(?::text[], ?::text[], ?::text[], ?::bytea[]) "
                "WITH ORDINALITY AS given (id, label, metadata, embedding, place) ORDER BY place "
                "ON CONFLICT (id) DO UPDATE SET label = excluded.label, metadata = excluded.metadata, "
                "embedding = excluded.embedding RETURNING id, key",
                *map(list, columns or [()] * 3),
                [numbers.tobytes() for numbers in packed],
            )
            keys = dict(written)
            self._copy("tag", ((*tag, keys[r.id]) for r in rows.described() for tag in tags(r.metadata)))
            self._copy("component", self._components([keys[one] for one in rows.ids], packed))

    def _components(self, keys: list[int], packed: Packed) -> Iterator[tuple[int, str]]:
        """A row a component: the key of its item, and its mean."""
        shape = (len(keys), self.header.components, self.header.dim)
        means = packed[:, : shape[1] * shape[2]].reshape(shape)
        for key, rows in zip(keys, means, strict=True):
            for mean in rows:
                yield key, vector(mean)

    def _copy(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        columns = {"tag": "name, value, item", "component": "item, mean"}[table]
        with self._connection.cursor() as cursor, cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)

    def remove(self, ids: Iterable[str]) -> int:
        with self._writing():
            return len(self._all("DELETE FROM item WHERE id = ANY(?) RETURNING key", list(ids)))

    def build_graph(self, links: int = 16, ef_construction: int = 64) -> None:
        """Build an HNSW graph over the means, so that searches need not look at all of them; in place of any other."""
        with self._writing():
            self._connection.execute(f"DROP INDEX IF EXISTS {GRAPH}")
            options = f"m = {int(links)}, ef_construction = {int(ef_construction)}"
            self._connection.execute(
                f"CREATE INDEX {GRAPH} ON component USING hnsw (mean vector_l2_ops) WITH ({options})"
            )

    def has_graph(self) -> bool:
        with self.reading():
            query = "SELECT 1 FROM pg_indexes WHERE schemaname = ? AND indexname = ?"
            return bool(self._all(query, self._address.store, GRAPH))

    def nearest(self, mean: Means, count: int, where: Filter, ef_search: int | None) -> list[int]:
        """Keys of the rows whose means are nearest to one `(D,)`, by the graph unless `ef_search` is None.

        A graph looks at `ef_search` rows, and so finds no more of them, unless there is a filter to pass.
        """
        if ef_search is None:
            self._set("enable_indexscan", "off")
        else:
            self._set("enable_seqscan", "off")
            self._set("hnsw.ef_search", str(min(ef_search, MOST_EF)))
            if where:  # go on until there are enough that pass
                self._set("hnsw.iterative_scan", "relaxed_order")
        sql, parameters = condition(where)
        passing = f"WHERE item IN (SELECT key FROM item WHERE {sql})" if where else ""
        query = f"SELECT item FROM component {passing} ORDER BY mean <-> ?::vector LIMIT {int(count)}"
        return [key for (key,) in self._all(query, *parameters, vector(mean))]

    def embeddings(self, keys: Sequence[int]) -> tuple[Keys, Packed]:
        """Keys, rising, and the embeddings of these rows."""
        rows = self._all("SELECT key, embedding FROM item WHERE key = ANY(?) ORDER BY key", list(keys))
        return keys_of(rows), self._packed(rows)

    def verify(self) -> None:
        with self.reading():
            self._check_tags()
            query = "SELECT count(*) FROM item LEFT JOIN component ON item = key GROUP BY key HAVING count(item) != ?"
            if self._all(query, self.header.components):
                raise StoreError(f"{self.name} is damaged (rows without their vectors): restore it, or build it again")

    def _set(self, name: str, value: str) -> None:
        """Change a setting until the transaction ends."""
        self._all("SELECT set_config(?, ?, true)", name, value)

    def _among(self, column: str, values: Sequence[Any]) -> tuple[str, Any]:
        return f"{column} = ANY(?)", list(values)

    def _all(self, query: str, *parameters: Any) -> list[Any]:
        return self._connection.execute(query.replace("?", "%s"), parameters).fetchall()

    def _some(self, query: str, parameters: Sequence[Any], size: int) -> Iterator[list[Any]]:
        with self._connection.cursor(name="rows") as cursor:
            cursor.execute(query.replace("?", "%s"), parameters)
            while rows := cursor.fetchmany(size):
                yield rows


@final
class PostgresIndex(Index):
    """Search in a store on a server: by its graph if one was built, else by looking at all means."""

    def __init__(self, store: PostgresStore, ef_search: int = EF_SEARCH, exact: bool = False) -> None:
        if ef_search < 1:
            raise ValueRangeError(f"ef_search is at least 1, got {ef_search}")
        self._store, self._ef_search, self._is_exact = store, ef_search, exact

    @property
    def store(self) -> PostgresStore:
        return self._store

    def keep(self) -> None:
        """Nothing to do: the server keeps its graph."""

    def _candidates(self, means: Means, count: int, where: Filter) -> Candidates:
        store = self._store
        ef_search = None if self._is_exact or not store.has_graph() else self._ef_search
        wanted = count * store.header.components
        found = [[key for mean in probe for key in store.nearest(mean, wanted, where, ef_search)] for probe in means]
        keys, packed = store.embeddings(sorted({key for row in found for key in row}))
        chosen = np.full((len(means), max(map(len, found), default=0)), -1, dtype=np.int64)
        for n, row in enumerate(found):
            chosen[n, : len(row)] = np.searchsorted(keys, row)
        return Candidates(keys, packed, chosen)


def vector(mean: Means) -> str:
    """A vector as pgvector reads it; every number in full, so that none is rounded.

    >>> vector(np.array([0.5, -1.0], np.float32))
    '[0.5,-1.0]'
    """
    return f"[{','.join(map(repr, mean.tolist()))}]"
