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
from urllib.parse import quote, unquote

from hedged.errors import MissingDependencyError, StoreError
from hedged.search._versions import PGVECTOR, is_older
from hedged.search.engines._checks import header_checksum
from hedged.search.engines._sql import READABLE, check_version
from hedged.search.rows import Header

if TYPE_CHECKING:
    import psycopg

# How long to wait: in seconds for a server to answer, or to show that it is still there, and in milliseconds for it to
# take what it is sent; then for a lock that another holds, and for one statement.
CONNECTION_LIMITS = {
    "connect_timeout": 4,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,
}
STATEMENT_LIMITS = {"lock_timeout": "30s", "statement_timeout": "10min"}
VERSION = 4  # of the tables: version 4 has embeddings as numbers, too, by which the server ranks
FIRST_WITH_NUMBERS = 4
DEFAULT_NAME = "hedged"  # of a store whose address has none
UNREADABLE = (
    "this address of a store cannot be read (it is not shown, for it may hold a password): it reads "
    "postgresql://user:password@host:port/database#name, with %40 for an @ after the password, and the password is "
    "better kept in ~/.pgpass or PGPASSWORD"
)
UNENDED = re.compile(r"[?&]\w*password=[^&]*[#@]", re.IGNORECASE)  # a password of which nobody knows where it ends
BUILDING = 0x68656467  # "hedg", with the name of a store: the lock of the one that builds it
SCHEMA = """
CREATE TABLE store (version integer NOT NULL, uuid text NOT NULL, header text NOT NULL,
    checksum bigint NOT NULL);
CREATE TABLE item (key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text NOT NULL UNIQUE, label text,
    metadata jsonb NOT NULL, embedding bytea NOT NULL, checksum bytea NOT NULL,
    numbers real[] NOT NULL);
CREATE INDEX item_label ON item (label);
CREATE TABLE tag (name text NOT NULL, value text NOT NULL,
    item bigint NOT NULL REFERENCES item (key) ON DELETE CASCADE, PRIMARY KEY (name, value, item));
CREATE INDEX tag_item ON tag (item);
CREATE TABLE component (item bigint NOT NULL REFERENCES item (key) ON DELETE CASCADE, mean vector({dim}) NOT NULL);
CREATE INDEX component_item ON component (item);
"""


class Address(NamedTuple):
    """Where a store is: a server's database as a connection string, and the name of a schema in it.

    It may hold a password, which is never shown: not by `str`, not by `repr`, and not in errors.
    """

    conninfo: str
    store: str

    @classmethod
    def of(cls, location: str) -> Address:
        """Read `postgresql://user:password@host/database#name`; the last @ ends the password, whatever is in it.

        Args:
            location: The address.

        >>> Address.of("postgresql://me:se#c/r@t@localhost/dogs#gallery")
        postgresql://localhost/dogs#gallery
        """
        scheme, _, rest = location.partition("://")
        login, at, place = rest.rpartition("@")
        user, colon, password = login.partition(":")
        place, _, name = place.partition("#")
        conninfo = f"{scheme}://{_quoted(user)}{colon}{_quoted(password)}{at}{place}"
        if set(user) & set("/?#") or UNENDED.search(rest) or not _is_readable(conninfo):
            raise StoreError(UNREADABLE)
        name = name or DEFAULT_NAME
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,40}", name):
            raise StoreError(
                "the name of a store, after #, has up to 41 lower-case letters, digits and _, and begins with a letter "
                "(what was given is not shown, for it may be of a password): rename it, or write %23 for another #"
            )
        return cls(conninfo, name)

    def __str__(self) -> str:
        """The address without its secrets."""
        parts = import_psycopg().conninfo.conninfo_to_dict(self.conninfo)
        return f"postgresql://{parts.get('host', '')}/{parts.get('dbname', '')}#{self.store}"

    def __repr__(self) -> str:
        return str(self)

    def without_secrets(self, text: str) -> str:
        """A text of the server's with a mark instead of a password.

        Args:
            text: The text.
        """
        parts = import_psycopg().conninfo.conninfo_to_dict(self.conninfo)
        for secret in {str(value) for key, value in parts.items() if key.endswith("password")} - {""}:
            text = text.replace(secret, "***")
        return text


def _quoted(text: str) -> str:
    """Part of an address with its special characters encoded, whether they were before or not."""
    return quote(unquote(text, errors="surrogateescape"), safe="", errors="surrogateescape")


def _is_readable(conninfo: str) -> bool:
    """Whether an address can be understood. What is wrong with one that cannot is not told: it may be a password."""
    psycopg = import_psycopg()
    try:
        parts = psycopg.conninfo.conninfo_to_dict(conninfo)
    except (psycopg.Error, UnicodeError):
        return False
    return all(port.isdigit() for port in str(parts.get("port", "")).split(",") if port)


def connect(address: Address) -> psycopg.Connection[Any]:
    """A connection whose tables are those of the store.

    Args:
        address: The store.
    """
    psycopg = import_psycopg()
    sql, chosen = psycopg.sql, psycopg.conninfo.conninfo_to_dict(address.conninfo)
    limits = {name: value for name, value in CONNECTION_LIMITS.items() if name not in chosen}
    with translating_errors(address):
        connection = psycopg.connect(address.conninfo, autocommit=True, application_name=own_name(), **limits)
        connection.execute(sql.SQL("SET search_path TO {}, public").format(sql.Identifier(address.store)))
        for name, value in STATEMENT_LIMITS.items():
            connection.execute("SELECT set_config(%s, %s, false)", (name, value))
    return connection  # type: ignore[no-any-return]


def own_name() -> str:
    """What the server calls this process, to tell those who have to wait for it."""
    return f"hedged: process {os.getpid()} on host {socket.gethostname()}"[:63]


def require_pgvector(connection: psycopg.Connection[Any], address: Address) -> None:
    """Refuse a database without pgvector, or with one that is too old, before anything is done in it.

    Args:
        connection: To the database.
        address: The store.
    """
    with translating_errors(address):
        made = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
        query = "SELECT default_version FROM pg_available_extensions WHERE name = 'vector'"
        (version,) = made or connection.execute(query).fetchone() or ("",)
    if version and not is_older(version, PGVECTOR):
        return
    found = f"has {version}" if version else "has none"
    then = ", and run ALTER EXTENSION vector UPDATE in this database" if made else ""
    raise StoreError(
        f"{address} needs pgvector, version {PGVECTOR} or later, and the server {found}: nothing was done. Install it "
        f"there{then}"
    )


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
        require_pgvector(connection, address)
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
        raise StoreError(
            f"{address} exists already: add to it with `hedged index add`, which continues what was interrupted if "
            "given --skip-existing, or choose another name"
        )


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
    check_version(columns.get("version"), str(address), (*READABLE, VERSION))
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
    except psycopg.errors.ConnectionTimeout as error:
        raise StoreError(
            f"the server of {address} does not answer: check the address and that it is well; one that is slow to wake "
            "is waited for longer with ?connect_timeout=30 after the name of the database"
        ) from error
    except psycopg.OperationalError as error:
        raise StoreError(
            f"the server of {address} cannot be reached or gave up ({_reason(error, address)}): start it, or check the "
            "address, the user and the network; what was not acknowledged is not stored"
        ) from error
    except (psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile, psycopg.errors.UndefinedObject) as error:
        raise StoreError(
            f"{address} needs pgvector, version {PGVECTOR} or later ({_reason(error, address)}): install it there"
        ) from error
    except psycopg.Error as error:
        raise StoreError(
            f"{address} refused ({_reason(error, address)}): nothing was changed; check the rights there"
        ) from error


def _reason(error: Exception, address: Address) -> str:
    """The first line of what the server says."""
    return address.without_secrets((str(error).strip().splitlines() or [type(error).__name__])[0])


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
