"""The store on a server, for galleries beyond one machine or one writer: PostgreSQL with pgvector.

The first stage is in the database, over plain vectors; ranking by match probability is the same as elsewhere. First the
store and its index, then the server: how it is reached, the tables, and what its errors mean to a user.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Self, final

import numpy as np

from hedged.errors import ConfigError, MissingDependencyError, StoreError
from hedged.search.engines import _sql
from hedged.search.engines._sql import VERSION, SqlStore, check_version, condition, keys_of, tags
from hedged.search.index import Candidates, Index, Means, Plan, checked_ef_search
from hedged.search.rows import Filter, Header, Keys, Packed, Rows, as_json

if TYPE_CHECKING:
    import psycopg

TIMEOUT_SECONDS = 10  # to wait for a server
DEFAULT_NAME = "hedged"  # of a store whose address has none
GRAPH = "component_mean"  # the name of the HNSW graph in the database
MAX_EF_SEARCH = 1000  # that pgvector accepts
SCHEMA = """
CREATE TABLE store (version integer NOT NULL, uuid text NOT NULL, header text NOT NULL);
CREATE TABLE item (key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text NOT NULL UNIQUE, label text,
    metadata jsonb NOT NULL, embedding bytea NOT NULL);
CREATE INDEX item_label ON item (label);
CREATE TABLE tag (name text NOT NULL, value text NOT NULL,
    item bigint NOT NULL REFERENCES item (key) ON DELETE CASCADE, PRIMARY KEY (name, value, item));
CREATE INDEX tag_item ON tag (item);
CREATE TABLE component (item bigint NOT NULL REFERENCES item (key) ON DELETE CASCADE, mean vector({dim}) NOT NULL);
CREATE INDEX component_item ON component (item);
"""


@final
class PostgresStore(SqlStore, scheme=("postgresql", "postgres")):
    """A store in a schema of a database: `postgresql://host/database#name`.

    Args:
        location: The address of a store that exists; `PostgresStore.create` makes one.
    """

    def __init__(self, location: str) -> None:
        self._address = Address.of(location)
        self._connection = connect(self._address)
        try:
            self._header = read_header(self._connection, self._address)
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

    def index(self, plan: Plan | None = None, ef_search: int | None = None) -> PostgresIndex:
        """pgvector in the database.

        Args:
            plan: `exact` compares all means, `hnsw` builds a graph; None: by the graph if one was built.
            ef_search: How many rows a search in the graph looks at; None: the default.
        """
        if plan and plan.kind == "ivf":
            raise ConfigError("a server has no first stage ivf: choose exact or hnsw")
        if plan and plan.kind == "hnsw":
            self.build_graph(plan)
        return PostgresIndex(self, ef_search, exact=plan is not None and plan.kind == "exact")

    @property
    def name(self) -> str:
        return str(self._address)

    def close(self) -> None:
        self._connection.close()

    def _translating_errors(self) -> AbstractContextManager[None]:
        return translating_errors(self._address)

    def _begin(self) -> None:
        self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def _end(self) -> None:
        if not self._connection.broken:
            self._connection.execute("ROLLBACK")  # nothing was written, and settings of the transaction end with it

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._refuse_reading()
        with translating_errors(self._address), self._connection.transaction():
            yield

    def _write(self, rows: Rows, replace: bool) -> None:
        columns = list(zip(*((row.id, row.label, as_json(row.metadata)) for row in rows.described()), strict=True))
        packed = rows.packed()
        with self._writing():
            existing = self._existing(rows, replace)
            for table in ("tag", "component"):
                self._all(f"DELETE FROM {table} WHERE item = ANY(?) RETURNING item", existing)
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
            return len(self._all("DELETE FROM item WHERE id = ANY(?) RETURNING key", list(ids)))

    def build_graph(self, plan: Plan) -> None:
        """Build an HNSW graph over the means, so that a search need not look at all of them; it replaces any other.

        Args:
            plan: Its `links` and `ef_construction` are those of the graph.
        """
        with self._writing():
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
        return [key for (key,) in self._all(query, *parameters, vector(mean))]

    def embeddings(self, keys: Sequence[int]) -> tuple[Keys, Packed]:
        """Keys, in increasing order, and the embeddings of these rows.

        Args:
            keys: Which rows.
        """
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
    """A vector as pgvector reads it, every number in full, so that none is rounded.

    Args:
        mean: `(D,)`.

    >>> vector(np.array([0.5, -1.0], np.float32))
    '[0.5,-1.0]'
    """
    return f"[{','.join(map(repr, mean.tolist()))}]"


class Address(NamedTuple):
    """Where a store is: a server's database as a connection string, and the name of a schema in it."""

    conninfo: str
    store: str

    @classmethod
    def of(cls, location: str) -> Address:
        """Read `postgresql://host/database#name`.

        Args:
            location: The address.

        >>> Address.of("postgresql://localhost/dogs#gallery")
        Address(conninfo='postgresql://localhost/dogs', store='gallery')
        """
        conninfo, _, name = location.partition("#")
        name = name or DEFAULT_NAME
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,40}", name):
            raise StoreError(
                f"the name of a store, after #, has lower-case letters, digits and _ only, got {name!r}: rename it"
            )
        return cls(conninfo, name)

    def __str__(self) -> str:
        """The address without its secrets."""
        parts = import_psycopg().conninfo.conninfo_to_dict(self.conninfo)
        return f"postgresql://{parts.get('host', '')}/{parts.get('dbname', '')}#{self.store}"


def connect(address: Address) -> psycopg.Connection[Any]:
    """A connection whose tables are those of the store.

    Args:
        address: The store.
    """
    sql = import_psycopg().sql
    with translating_errors(address):
        connection = import_psycopg().connect(address.conninfo, autocommit=True, connect_timeout=TIMEOUT_SECONDS)
        connection.execute(sql.SQL("SET search_path TO {}, public").format(sql.Identifier(address.store)))
    return connection  # type: ignore[no-any-return]


def make_tables(address: Address, header: Header) -> None:
    """Make an empty store, all of it or nothing.

    Args:
        address: The store.
        header: What its embeddings will have in common.
    """
    sql = import_psycopg().sql
    with translating_errors(address), connect(address) as connection:
        refuse_tables(connection, address)
        with connection.transaction():
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(address.store)))
            connection.execute(SCHEMA.format(dim=header.dim))
            values = (VERSION, uuid.uuid4().hex, json.dumps(header.describe()))
            connection.execute("INSERT INTO store VALUES (%s, %s, %s)", values)


def has_tables(connection: psycopg.Connection[Any], address: Address) -> bool:
    """Whether there is a store of this name.

    Args:
        connection: To the database.
        address: The store.
    """
    query = "SELECT 1 FROM information_schema.tables WHERE table_schema = %s AND table_name = 'store'"
    return connection.execute(query, (address.store,)).fetchone() is not None


def refuse_tables(connection: psycopg.Connection[Any], address: Address) -> None:
    """Raise an error if there is a store of this name.

    Args:
        connection: To the database.
        address: The store.
    """
    if has_tables(connection, address):
        raise StoreError(f"{address} exists already: add to it with `hedged index add`, or choose another name")


def read_header(connection: psycopg.Connection[Any], address: Address) -> Header:
    """The header of a store, its version checked.

    Args:
        connection: To the database.
        address: The store.
    """
    with translating_errors(address):
        if not has_tables(connection, address):
            raise StoreError(f"there is no store {address}: make one with `hedged index build RUN '{address}' IMAGES`")
        cursor = connection.execute("SELECT * FROM store")
        names = [column.name for column in cursor.description or ()]
        columns = dict(zip(names, cursor.fetchone() or (), strict=False))
    check_version(columns.get("version"), str(address))
    return _sql.read_header(columns, str(address))


@contextmanager
def translating_errors(address: Address) -> Iterator[None]:
    """Errors of the server as errors of hedged, which say what to do.

    Args:
        address: The store, for messages.
    """
    psycopg = import_psycopg()
    try:
        yield
    except psycopg.OperationalError as error:
        raise StoreError(
            f"the server of {address} cannot be reached or gave up ({_first_line(error)}): start it, or check the "
            "address, the user and the network; what was not acknowledged is not stored"
        ) from error
    except (psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile, psycopg.errors.UndefinedObject) as error:
        raise StoreError(
            f"{address} needs the extension pgvector, version 0.8 or later ({_first_line(error)}): install it there"
        ) from error
    except psycopg.Error as error:
        raise StoreError(
            f"{address} refused ({_first_line(error)}): nothing was changed; check the rights there"
        ) from error


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def import_psycopg() -> Any:
    """psycopg, or how to install it."""
    try:
        import psycopg
        import psycopg.conninfo
        import psycopg.sql
    except ImportError as error:
        raise MissingDependencyError(
            "a store on a server needs psycopg, which is not installed: pip install 'hedged[postgres]'"
        ) from error
    return psycopg
