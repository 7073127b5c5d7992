"""Opening and making the file of an SQLite store, and what SQLite's failures mean to a user."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import astuple
from pathlib import Path
from urllib.parse import quote

from hedged._files import write_atomically
from hedged.errors import StoreError
from hedged.search.rows import Header

APPLICATION, VERSION = 0x68656467, 1  # "hedg" in the file's header, and the version of the tables below
PATIENCE = 30.0  # seconds to wait for another writer
SCHEMA = """
CREATE TABLE store (uuid TEXT NOT NULL, fingerprint TEXT NOT NULL, kind TEXT NOT NULL, dim INTEGER NOT NULL,
    components INTEGER NOT NULL, scale REAL NOT NULL, bias REAL NOT NULL);
-- one row a write, its token at random: an index remembers the last it has seen
CREATE TABLE write (change INTEGER PRIMARY KEY AUTOINCREMENT, token BLOB NOT NULL);
CREATE TABLE item (key INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, label TEXT,
    metadata TEXT NOT NULL, embedding BLOB NOT NULL, changed INTEGER NOT NULL);
CREATE INDEX item_label ON item (label);
CREATE INDEX item_changed ON item (changed);
CREATE TABLE tag (name TEXT NOT NULL, value TEXT NOT NULL,
    item INTEGER NOT NULL REFERENCES item (key) ON DELETE CASCADE, PRIMARY KEY (name, value, item)) WITHOUT ROWID;
CREATE INDEX tag_item ON tag (item);
CREATE TABLE removed (key INTEGER PRIMARY KEY, changed INTEGER NOT NULL);
"""


def make_file(path: Path, header: Header) -> None:
    """Make an empty store, which appears whole or not at all."""
    if path.exists():
        raise StoreError(f"{path} exists already: add to it with `hedged index add`, or choose another file")
    write_atomically(path, lambda part: _make(part, path, header))


def _make(part: Path, path: Path, header: Header) -> None:
    with told(path), closing(sqlite3.connect(part, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(f"BEGIN; {SCHEMA}")
        connection.execute("INSERT INTO store VALUES (?, ?, ?, ?, ?, ?, ?)", (uuid.uuid4().hex, *astuple(header)))
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")


def open_file(path: Path) -> sqlite3.Connection:
    """A connection to an existing store, its kind and version checked; read-only where nothing can be written."""
    if not path.is_file():
        raise StoreError(f"there is no store {path}: make one with `hedged index build RUN {path} IMAGES`")
    _refuse_truncated(path)
    with told(path):
        connection = _connect(path)
        try:
            _check_kind(path, connection)
            connection.execute("PRAGMA synchronous = FULL")  # a write is on disk when it is acknowledged
            connection.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            connection.close()
            raise
    return connection


def _connect(path: Path) -> sqlite3.Connection:
    """Write-ahead logs need a file beside the store even to read; where none can be made, the store is at rest."""
    address = f"file:{quote(str(path))}"
    connection = sqlite3.connect(f"{address}?mode=rw", uri=True, isolation_level=None, timeout=PATIENCE)
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except sqlite3.OperationalError as error:
        connection.close()
        if error.sqlite_errorname.partition("_")[2].split("_")[0] not in ("CANTOPEN", "READONLY") or _log_size(path):
            raise
        connection = sqlite3.connect(f"{address}?mode=ro&immutable=1", uri=True, isolation_level=None)
    return connection


def _check_kind(path: Path, connection: sqlite3.Connection) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION:
        raise StoreError(f"{path} is not a store of hedged: give a file that `hedged index build` has made")
    if version != VERSION:
        raise StoreError(
            f"{path} is of version {version}, this version of hedged reads version {VERSION}: use the version that "
            "wrote it, or build the store again"
        )


def _refuse_truncated(path: Path) -> None:
    """Compare the size that the file's first page tells with the real one; SQLite looks only where it reads."""
    with path.open("rb") as file:
        first = file.read(100)
    if first[:16] != b"SQLite format 3\0" or len(first) < 100:
        raise StoreError(f"{path} is not a store of hedged, or it is damaged: restore it, or build it again")
    page = int.from_bytes(first[16:18], "big")
    told_size = (65536 if page == 1 else page) * int.from_bytes(first[28:32], "big")
    if path.stat().st_size < told_size and not _log_size(path):
        raise StoreError(
            f"{path} is truncated, {path.stat().st_size:,} bytes of {told_size:,}: restore it, or build it again"
        )


def _log_size(path: Path) -> int:
    """Bytes that were written and are not yet in the store's own file."""
    log = path.with_name(f"{path.name}-wal")
    return log.stat().st_size if log.exists() else 0


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Turn SQLite's failures into messages that say what to do."""
    try:
        yield
    except sqlite3.Error as error:
        name = (getattr(error, "sqlite_errorname", None) or "SQLITE_ERROR").split("_")[1]
        reason, advice = FAILURES.get(
            name, ("cannot be used", "check the file, its folder and the space left on the disk")
        )
        raise StoreError(f"{path} {reason} ({error}): {advice}") from error


FAILURES = {
    "READONLY": ("cannot be written", "nothing was changed; make the file and its folder writable, or copy the store"),
    "CANTOPEN": ("cannot be opened", "check that its folder exists and can be written"),
    "FULL": ("cannot be written", "nothing was changed; free space on the disk"),
    "IOERR": ("cannot be read or written", "nothing was changed; check the disk and the space left on it"),
    "BUSY": ("is being written by another process", f"nothing was changed after {PATIENCE:g} seconds; try again"),
    "CORRUPT": ("is damaged or truncated", "restore it, or build it again"),
    "NOTADB": ("is damaged, or no store of hedged", "restore it, or build it again"),
}
