"""The server of a store: how it is reached, the tables on it, and what its errors mean to a user."""

from __future__ import annotations

import json
import os
import re
import socket
import uuid
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from hedged.errors import MissingDependencyError, StoreError
from hedged.search.engines._checks import header_checksum
from hedged.search.engines._sql import VERSION, check_version
from hedged.search.rows import Header

if TYPE_CHECKING:
    import psycopg

TIMEOUT_SECONDS = 10  # to wait for a server
DEFAULT_NAME = "hedged"  # of a store whose address has none
BUILDING = 0x68656467  # "hedg", with the name of a store: the lock of the one that builds it
SCHEMA = """
CREATE TABLE store (version integer NOT NULL, uuid text NOT NULL, header text NOT NULL,
    checksum bigint NOT NULL);
CREATE TABLE item (key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text NOT NULL UNIQUE, label text,
    metadata jsonb NOT NULL, embedding bytea NOT NULL, checksum bytea NOT NULL);
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
        connection = import_psycopg().connect(
            address.conninfo, autocommit=True, connect_timeout=TIMEOUT_SECONDS, application_name=own_name()
        )
        connection.execute(sql.SQL("SET search_path TO {}, public").format(sql.Identifier(address.store)))
    return connection  # type: ignore[no-any-return]


def own_name() -> str:
    """What the server calls this process, to tell those who have to wait for it."""
    return f"hedged: process {os.getpid()} on host {socket.gethostname()}"[:63]


def take_lock(connection: psycopg.Connection[Any], address: Address) -> None:
    """Lock the name of a store for the one that builds it, until the connection ends; refused if another has it.

    Args:
        connection: To the database.
        address: The store.
    """
    with translating_errors(address):
        key = (BUILDING, zlib.crc32(address.store.encode()) - 2**31)
        if connection.execute("SELECT pg_try_advisory_lock(%s, %s)", key).fetchone() == (True,):
            return
        query = (
            "SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' AND "
            "granted AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND "
            "classid = %s::bigint::oid AND objid = %s::bigint::oid"
        )
        found = connection.execute(query, (key[0], key[1] % 2**32)).fetchone()
    holder = str(found[0]).removeprefix("hedged: ") if found and found[0] else "another process"
    raise StoreError(f"{address} is being built by {holder}: wait until it is done, or choose another name")


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
            name, text = uuid.uuid4().hex, json.dumps(header.describe())
            values = (VERSION, name, text, header_checksum(name, text))
            connection.execute("INSERT INTO store VALUES (%s, %s, %s, %s)", values)


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


def read_columns(connection: psycopg.Connection[Any], address: Address) -> dict[str, Any]:
    """The one row of the table `store`, by column, its version checked.

    Args:
        connection: To the database.
        address: The store.
    """
    with translating_errors(address):
        if not has_tables(connection, address):
            raise StoreError(f"there is no store {address}: make one with `hedged index build RUN '{address}' INPUTS`")
        cursor = connection.execute("SELECT * FROM store")
        names = [column.name for column in cursor.description or ()]
        columns = dict(zip(names, cursor.fetchone() or (), strict=False))
    check_version(columns.get("version"), str(address))
    return columns


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
