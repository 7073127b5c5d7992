"""The store on a server, for galleries beyond one machine or one writer: PostgreSQL with pgvector.

Both stages are in the database: candidates by plain vectors, and their order by match probability, by the formula that
`hedged.search.scores` writes. Only results cross the network; their log-odds are worked out once more here, so that
they are what every other store gives. Where there is no formula for a server, candidates are ranked here.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from hedged.errors import HedgedError, StoreError
from hedged.search.engines._checks import RawRow, canonical, checksum
from hedged.search.engines._postgres_server import (
    FIRST_WITH_NUMBERS,
    Address,
    connect,
    has_tables,
    make_tables,
    read_columns,
    refuse_tables,
    require_pgvector,
    take_lock,
    translating_errors,
)
from hedged.search.engines._sql import SqlStore, condition, keys_of, read_header, tags
from hedged.search.index import Candidates, Index, Means, Plan, checked_ef_search, first_means
from hedged.search.rows import FLOAT, Filter, Header, Keys, Packed, Rows, as_column, as_json
from hedged.search.store import ROWS_PER_BATCH, Salvage

if TYPE_CHECKING:
    from hedged.distributions import Distribution

GRAPH = "component_mean"  # the name of the HNSW graph in the database
MAX_EF_SEARCH = 1000  # that pgvector accepts


@final
class PostgresStore(SqlStore, scheme=("postgresql", "postgres")):
    """A store in a schema of a database: `postgresql://host/database#name`.

    Args:
        location: The address of a store that exists; `PostgresStore.create` makes one.
    """

    first_stages = ("exact", "hnsw")

    def __init__(self, location: str) -> None:
        self._address = Address.of(location)
        self._connection = connect(self._address)
        try:
            columns = read_columns(self._connection, self._address)
            require_pgvector(self._connection, self._address)
            self._uuid, self._has_checksums = columns.get("uuid", ""), "checksum" in columns
            self._header = read_header(columns, self.name)
            self._has_numbers = int(columns["version"]) >= FIRST_WITH_NUMBERS
        except BaseException:
            self._connection.close()
            raise

    @classmethod
    def open(cls, location: str) -> Self:
        return cls(location)

    @classmethod
    def create(cls, location: str, header: Header) -> Self:
        make_tables(Address.of(location), header)
        return cls(location)

    @classmethod
    def refuse_existing(cls, location: str) -> None:
        address = Address.of(location)
        with connect(address) as connection:
            refuse_tables(connection, address)

    @classmethod
    @contextmanager
    def reserve(cls, location: str) -> Iterator[None]:
        address = Address.of(location)
        with connect(address) as connection:  # whose lock ends with it
            require_pgvector(connection, address)
            take_lock(connection, address)
            refuse_tables(connection, address)
            yield

    def index(self, plan: Plan | None = None, ef_search: int | None = None) -> PostgresIndex:
        """pgvector in the database.

        Args:
            plan: `exact` compares all means, `hnsw` builds a graph; None: by the graph if one was built.
            ef_search: How many rows a search in the graph looks at; None: the default.
        """
        self.check_plan(plan)
        if plan and plan.kind == "hnsw":
            self.build_graph(plan)
        return PostgresIndex(self, ef_search, exact=plan is not None and plan.kind == "exact")

    @property
    def name(self) -> str:
        return str(self._address)

    def wait_at_most(self, seconds: float) -> None:
        with translating_errors(self._address):
            self._all("SELECT set_config('lock_timeout', ?, false)", f"{int(1000 * seconds)}ms")

    def how_to_move(self) -> str:
        return f"on the server, `pg_dump --schema={self._address.store}` writes all of it, for psql to read elsewhere"

    def close(self) -> None:
        self._connection.close()

    def _translating_errors(self) -> AbstractContextManager[None]:
        return translating_errors(self._address)

    def _begin(self) -> None:
        self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            self._check_in_place()
        except BaseException:
            self._end()
            raise

    def _check_in_place(self) -> None:
        """Refuse to go on with a store that was deleted, and perhaps built anew, since it was opened."""
        found = self._all("SELECT uuid FROM store") if has_tables(self._connection, self._address) else []
        if found != [(self._uuid,)]:
            what = "was deleted and built anew" if found else "was deleted"
            raise StoreError(f"{self.name} {what} since it was opened: nothing was done. Open the store again")

    def _end(self) -> None:
        if not self._connection.broken:
            self._connection.execute("ROLLBACK")  # nothing was written, and settings of the transaction end with it

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._refuse_reading()
        with translating_errors(self._address), self._connection.transaction():
            self._check_in_place()
            yield

    def _write(self, rows: Rows, replace: bool) -> None:
        described, packed = rows.described(), rows.packed()
        texts, embeddings = [as_json(row.metadata) for row in described], [numbers.tobytes() for numbers in packed]
        given: list[tuple[str, str, list[Any]]] = [
            ("id", "text", [row.id for row in described]),
            ("label", "text", [row.label for row in described]),
            ("metadata", "text", texts),
            ("embedding", "bytea", embeddings),
        ]
        if self._has_checksums:
            of_rows = zip(embeddings, described, strict=True)
            sums = [checksum(content, row.id, row.label, canonical(row.metadata)) for content, row in of_rows]
            given.append(("checksum", "bytea", sums))
        if self._has_numbers:
            given.append(("numbers", "text", [f"{{{_listed(numbers)}}}" for numbers in packed]))
        names = [name for name, _, _ in given]
        kinds = {"metadata": "metadata::jsonb", "numbers": "numbers::real[]"}
        values = ", ".join(kinds.get(name, name) for name in names)
        with self._writing():
            existing = self._existing(rows, replace)
            for table in ("tag", "component"):
                self._all(f"DELETE FROM {table} WHERE item = ANY(?) RETURNING item", existing)
            written = self._all(
                f"INSERT INTO item ({', '.join(names)}) SELECT {values} "
                f"FROM unnest({', '.join(f'?::{kind}[]' for _, kind, _ in given)}) "
                f"WITH ORDINALITY AS given ({', '.join(names)}, place) ORDER BY place ON CONFLICT (id) "
                f"DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in names[1:])} RETURNING id, key",
                *(column for _, _, column in given),
            )
            keys = dict(written)
            self._copy("tag", ((*tag, keys[r.id]) for r in described for tag in tags(r.metadata)))
            self._copy("component", self._components([keys[one] for one in rows.ids], packed))

    def _components(self, keys: list[int], packed: Packed) -> Iterator[tuple[int, str]]:
        """One row for each component: the key of its item, and its mean."""
        means = self.header.means(packed).reshape(len(keys), self.header.components, self.header.dim)
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
            return len(self._all("DELETE FROM item WHERE id = ANY(?) RETURNING key", as_column("ids", ids)))

    def moment(self) -> Hashable:
        with self.reading():  # every row knows the transaction that wrote it; one that was removed is missing
            return self._uuid, *self._all("SELECT count(*), max(xmin::text::bigint) FROM item")[0]

    def build_graph(self, plan: Plan) -> None:
        """Build an HNSW graph over the means, so that a search need not look at all of them; it replaces any other.

        Args:
            plan: Its `links` and `ef_construction` are those of the graph.
        """
        with self._writing():
            self._set("statement_timeout", "0")  # a graph over millions of rows takes its time
            self._connection.execute(f"DROP INDEX IF EXISTS {GRAPH}")
            options = f"m = {int(plan.links)}, ef_construction = {int(plan.ef_construction)}"
            self._connection.execute(
                f"CREATE INDEX {GRAPH} ON component USING hnsw (mean vector_l2_ops) WITH ({options})"
            )

    def has_graph(self) -> bool:
        """Whether there is a graph over the means."""
        with self.reading():
            query = "SELECT 1 FROM pg_indexes WHERE schemaname = ? AND indexname = ?"
            return bool(self._all(query, self._address.store, GRAPH))

    def nearest(self, mean: Means, count: int, where: Filter, ef_search: int | None) -> list[int]:
        """Keys of the rows whose means are nearest to one.

        Args:
            mean: `(D,)`.
            count: How many rows to find.
            where: The filter that they pass.
            ef_search: How many rows the graph looks at, and so the most it finds unless there is a filter; None: look
                at all rows, without the graph.
        """
        query, parameters = self._nearest(mean, count, where, ef_search)
        return [key for (key,) in self._all(query, *parameters)]

    def _nearest(self, mean: Means, count: int, where: Filter, ef_search: int | None) -> tuple[str, list[Any]]:
        """A query for the keys of the rows whose means are nearest to one, and its parameters."""
        if ef_search is None:
            self._set("enable_indexscan", "off")
        else:
            self._set("enable_seqscan", "off")
            self._set("hnsw.ef_search", str(min(ef_search, MAX_EF_SEARCH)))
            if where:  # continue until enough of them pass
                self._set("hnsw.iterative_scan", "relaxed_order")
        sql, parameters = condition(where)
        passing = f"WHERE item IN (SELECT key FROM item WHERE {sql})" if where else ""
        query = f"SELECT item FROM component {passing} ORDER BY mean <-> ?::vector LIMIT {int(count)}"
        return query, [*parameters, vector(mean)]

    @cached_property
    def log_odds(self) -> str | None:
        """The log-odds of `probe` and a row of `item` in SQL; None where the server cannot rank.

        The server ranks points, Gaussians and mixtures with diagonal covariances, by a match model that has a formula.
        """
        if not self._has_numbers:
            return None
        from hedged.search.scores._sql import POSTGRESQL  # loads torch, which those who only look do not need

        try:
            score = self.header.score
        except HedgedError:
            return None
        means = self.header.components * self.header.dim
        lists = ["probe.mean", "probe.variance", f"numbers[1:{means}]", f"numbers[{means + 1}:{2 * means}]"]
        chosen = lists if score.has_variance else lists[::2]
        return POSTGRESQL.log_odds(score, self.header.components, chosen)

    def best(self, probe: Distribution, count: int, k: int, where: Filter, ef_search: int | None) -> list[int]:
        """Keys of the rows that match a probe best, best first, ranked in the server, which has `log_odds`.

        Args:
            probe: One embedding.
            count: How many rows the first stage hands on for each component of the probe.
            k: How many rows to find.
            where: The filter that they pass.
            ef_search: As for `nearest`.
        """
        means, variances = (part.double().numpy() for part in probe.parts())
        near = [self._nearest(mean.astype(np.float32), count, where, ef_search) for mean in means]
        query = (
            "WITH probe AS MATERIALIZED (SELECT ?::float8[] AS mean, ?::float8[] AS variance), "
            f"near AS MATERIALIZED ({' UNION '.join(f'({one})' for one, _ in near)}) "
            "SELECT key FROM item, probe WHERE key IN (SELECT item FROM near) "
            f"ORDER BY {self.log_odds} DESC, key LIMIT {int(k)}"
        )
        given = [means.ravel().tolist(), variances.ravel().tolist()]
        return [key for (key,) in self._all(query, *given, *(one for _, some in near for one in some))]

    def embeddings(self, keys: Sequence[int]) -> tuple[Keys, Packed]:
        """Keys, in increasing order, and the embeddings of these rows.

        Args:
            keys: Which rows.
        """
        rows = self._all(
            f"SELECT key, embedding, {self._checksum()} FROM item WHERE key = ANY(?) ORDER BY key", list(keys)
        )
        return keys_of(rows), self._packed(rows)

    def _faults_of_tables(self) -> list[str]:
        query = "SELECT key FROM item LEFT JOIN component ON item = key GROUP BY key HAVING count(item) != ?"
        faults = [f"row {key}: it is without its vectors" for (key,) in self._all(query, self.header.components)]
        if self._has_numbers:
            for rows in self._chunks("SELECT key, embedding, numbers FROM item ORDER BY key", [], ROWS_PER_BATCH):
                faults += [
                    f"row {key}: the numbers that it is ranked by are not its embedding"
                    for key, embedding, numbers in rows
                    if np.asarray(numbers, FLOAT).tobytes() != embedding
                ]
        return faults

    def _survey(self) -> Iterator[RawRow | str]:
        for rows in self._chunks(f"{self._raw_rows()} ORDER BY key", [], ROWS_PER_BATCH):
            yield from (RawRow(*row) for row in rows)

    @classmethod
    @contextmanager
    def salvaging(cls, location: str, header: Header | None = None) -> Iterator[Salvage]:
        with cls(location) as store, store.salvage() as found:
            yield found

    def _as_text(self, metadata: Any) -> Any:
        return canonical(metadata) if isinstance(metadata, Mapping) else metadata

    def _set(self, name: str, value: str) -> None:
        """Change a setting until the transaction ends."""
        self._all("SELECT set_config(?, ?, true)", name, value)

    def _among(self, column: str, values: Sequence[Any]) -> tuple[str, Any]:
        return f"{column} = ANY(?)", list(values)

    def _all(self, query: str, *parameters: Any) -> list[Any]:
        return self._connection.execute(query.replace("?", "%s"), parameters).fetchall()

    def _chunks(self, query: str, parameters: Sequence[Any], size: int) -> Iterator[list[Any]]:
        with self._connection.cursor(name="rows") as cursor:
            cursor.execute(query.replace("?", "%s"), parameters)
            while rows := cursor.fetchmany(size):
                yield rows


@final
class PostgresIndex(Index):
    """Search in a store on a server: by its graph if one was built, else by looking at all means.

    Args:
        store: The store.
        ef_search: How many rows a search in the graph looks at; None: the default.
        exact: Whether to look at all means although there is a graph.
    """

    def __init__(self, store: PostgresStore, ef_search: int | None = None, exact: bool = False) -> None:
        self._store, self._ef_search, self._is_exact = store, checked_ef_search(ef_search), exact

    @property
    def store(self) -> PostgresStore:
        return self._store

    def keep(self) -> None:
        """Nothing to do: the server keeps its graph."""

    def _candidates(self, probes: Distribution, count: int, where: Filter) -> Candidates:
        wanted = count * self._store.header.components
        ef_search = self._looks_at()
        return self._fetched(
            [
                [key for mean in probe for key in self._store.nearest(mean, wanted, where, ef_search)]
                for probe in first_means(probes)
            ]
        )

    def _found(self, probes: Distribution, count: int, k: int, where: Filter) -> Candidates:
        if self._store.log_odds is None:
            return super()._found(probes, count, k, where)
        wanted = count * self._store.header.components
        ef_search = self._looks_at()
        return self._fetched([self._store.best(probes[n], wanted, k, where, ef_search) for n in range(len(probes))])

    def _looks_at(self) -> int | None:
        """How many rows a search in the graph looks at; None: all rows, without the graph."""
        return None if self._is_exact or not self._store.has_graph() else self._ef_search

    def _fetched(self, found: list[list[int]]) -> Candidates:
        """Rows that were found for each probe, by key, with their embeddings."""
        keys, packed = self._store.embeddings(sorted({key for row in found for key in row}))
        chosen = np.full((len(found), max(map(len, found), default=0)), -1, dtype=np.int64)
        for n, row in enumerate(found):
            chosen[n, : len(row)] = np.searchsorted(keys, row)
        return Candidates(keys, packed, chosen)


def vector(mean: Means) -> str:
    """A vector as pgvector reads it, every number in full, so that none is rounded.

    Args:
        mean: `(D,)`.

    >>> vector(np.array([0.5, -1.0], np.float32))
    '[0.5,-1.0]'
    """
    return f"[{_listed(mean)}]"


def _listed(numbers: Means) -> str:
    return ",".join(map(repr, numbers.tolist()))
