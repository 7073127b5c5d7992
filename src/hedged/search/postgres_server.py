"""Reaching a PostgreSQL server, the tables of a store on it, and what its failures mean to a user."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple
from typing import TYPE_CHECKING, Any, NamedTuple

from hedged.errors import MissingDependencyError, StoreError
from hedged.search.rows import Header

if TYPE_CHECKING:
    import psycopg

VERSION = 1  # of the tables below
PATIENCE = 10  # seconds to wait for a server
USUAL = "hedged"  # name of a store that has none
SCHEMA = """
CREATE TABLE store (version integer NOT NULL, uuid text NOT NULL, fingerprint text NOT NULL, kind text NOT NULL,
    dim integer NOT NULL, components integer NOT NULL, scale float8 NOT NULL, bias float8 NOT NULL);
CREATE TABLE item (key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text NOT NULL UNIQUE, label text,
    metadata jsonb NOT NULL, embedding bytea NOT NULL);
CREATE INDEX item_label ON item (label);
CREATE TABLE tag (name text NOT NULL, value text NOT NULL,
    item bigint NOT NULL REFERENCES item (key) ON DELETE CASCADE, PRIMARY KEY (name, value, item));
CREATE INDEX tag_item ON tag (item);
CREATE TABLE component (item bigint NOT NULL REFERENCES item (key) ON DELETE CASCADE, mean vector({dim}) NOT NULL);
CREATE INDEX component_item ON component (item);
"""


class Address(NamedTuple):
    """Where a store is: a server's database as a connection string, and the name of a schema in it."""

    conninfo: str
    store: str

    @classmethod
    def of(cls, location: str) -> Address:
        """Read `postgresql://host/database#name`.

        >>> Address.of("postgresql://localhost/dogs#gallery")
        Address(conninfo='postgresql://localhost/dogs', store='gallery')
        """
        conninfo, _, name = location.partition("#")
        name = name or USUAL
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,40}", name):
            raise StoreError(f"a store is named by lower-case letters, digits and _, got {name!r} after #: rename it")
        return cls(conninfo, name)

    def __str__(self) -> str:
        """The address without what is secret."""
        parts = import_psycopg().conninfo.conninfo_to_dict(self.conninfo)
        return f"postgresql://{parts.get('host', '')}/{parts.get('dbname', '')}#{self.store}"


def connect(address: Address) -> psycopg.Connection[Any]:
    """A connection whose tables are those of the store."""
    sql = import_psycopg().sql
    with told(address):
        connection = import_psycopg().connect(address.conninfo, autocommit=True, connect_timeout=PATIENCE)
        connection.execute(sql.SQL("SET search_path TO {}, public").format(sql.Identifier(address.store)))
    return connection  # type: ignore[no-any-return]


def make_tables(address: Address, header: Header) -> None:
    """Make an empty store, all of it or nothing."""
    sql = import_psycopg().sql
    with told(address), connect(address) as connection:
        if has_tables(connection, address):
            raise StoreError(f"{address} exists already: add to it with `hedged index add`, or choose another name")
        with connection.transaction():
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(address.store)))
            connection.execute(SCHEMA.format(dim=header.dim))
            values = (VERSION, uuid.uuid4().hex, *astuple(header))
            connection.execute("INSERT INTO store VALUES (%s, %s, %s, %s, %s, %s, %s, %s)", values)


def has_tables(connection: psycopg.Connection[Any], address: Address) -> bool:
    query = "SELECT 1 FROM information_schema.tables WHERE table_schema = %s AND table_name = 'store'"
    return connection.execute(query, (address.store,)).fetchone() is not None


def read_header(connection: psycopg.Connection[Any], address: Address) -> Header:
    """The header of a store, its version checked."""
    with told(address):
        if not has_tables(connection, address):
            raise StoreError(f"there is no store {address}: make one with `hedged index build RUN '{address}' IMAGES`")
        row = connection.execute("SELECT * FROM store").fetchone()
    if row is None or row[0] != VERSION:
        raise StoreError(
            f"{address} is of version {row and row[0]}, this version of hedged reads version {VERSION}: use the "
            "version that wrote it, or build the store again"
        )
    return Header(*row[2:])


@contextmanager
def told(address: Address) -> Iterator[None]:
    """Turn failures of the server into messages that say what to do."""
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
    try:
        import psycopg
        import psycopg.conninfo
        import psycopg.sql
    except ImportError as error:
        raise MissingDependencyError(
            "a store on a server needs psycopg, which is not installed: pip install 'hedged[postgres]'"
        ) from error
    return psycopg
