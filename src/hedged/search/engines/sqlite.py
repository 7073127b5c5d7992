"""The embedded store: one SQLite file, no server. Many may read while one writes; nothing acknowledged is lost.

First the store, then its file: how it is made, opened and checked, and what SQLite's errors mean to a user.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, final
from urllib.parse import quote

from hedged._files import write_atomically
from hedged.errors import StoreError
from hedged.search.engines._sql import VERSION, SqlStore, check_version, keys_of, read_header, tags
from hedged.search.rows import Header, Keys, Packed, Rows, as_json
from hedged.search.store import ROWS_PER_BATCH

if TYPE_CHECKING:
    from hedged.search.engines._faiss import FaissIndex
    from hedged.search.index import Plan

APPLICATION = 0x68656467  # "hedg", in the header of the file
TIMEOUT_SECONDS = 30.0  # to wait for another writer
SCHEMA = """
CREATE TABLE store (uuid TEXT NOT NULL, header TEXT NOT NULL);
-- one row for each write, with a random token: an index remembers the last it has seen
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


class State(NamedTuple):
    """A moment in the history of a store: its last write, by a number and a random token that no other write has."""

    uuid: str
    change: int
    token: str


@final
class SqliteStore(SqlStore, scheme=""):
    """A store in one file, in WAL mode: readers never wait, and see what was there when they began.

    Args:
        path: The file, which exists; `SqliteStore.create` makes one.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._connection = open_file(self._path)
        try:
            with translating_errors(self._path):
                columns = read_columns(self._connection)
            self._uuid = columns.get("uuid", "")
            self._header = read_header(columns, self.name)
        except BaseException:
            self._connection.close()
            raise

    @classmethod
    def open(cls, location: str) -> Self:
        return cls(location)

    @classmethod
    def create(cls, location: str | Path, header: Header) -> Self:
        """A new store, empty, where no file is yet.

        Args:
            location: The file.
            header: What its embeddings will have in common.
        """
        make_file(Path(location), header)
        return cls(location)

    @classmethod
    def refuse_existing(cls, location: str) -> None:
        if Path(location).exists():
            raise StoreError(f"{location} exists already: add to it with `hedged index add`, or choose another file")

    def index(self, plan: Plan | None = None, ef_search: int | None = None) -> FaissIndex:
        """FAISS over the means in memory, kept in a file beside the store.

        Args:
            plan: How candidates are found; None: as in the file, else by comparing all means.
            ef_search: How far a search in a graph looks around; None: the default.
        """
        from hedged.search.engines._faiss import FaissIndex

        return FaissIndex(self, plan, ef_search)

    @property
    def name(self) -> str:
        return str(self._path)

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    def close(self) -> None:
        self._connection.close()

    def _translating_errors(self) -> AbstractContextManager[None]:
        return translating_errors(self._path)

    def _begin(self) -> None:
        self._connection.execute("BEGIN")

    def _end(self) -> None:
        self._connection.execute("COMMIT")

    @contextmanager
    def _writing(self) -> Iterator[int]:
        """A transaction, all of which is kept or nothing; yields the number of the write."""
        self._refuse_reading()
        with translating_errors(self._path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                token = secrets.token_bytes(16)
                (change,) = self._all("INSERT INTO write (token) VALUES (?) RETURNING change", token)[0]
                yield change
                self._connection.execute("COMMIT")
            except BaseException:
                self._connection.rollback()
                raise

    def _write(self, rows: Rows, replace: bool) -> None:
        packed = rows.packed()
        with self._writing() as change:
            sql, given = self._among("item", self._existing(rows, replace))
            self._all(f"DELETE FROM tag WHERE {sql}", given)
            self._connection.executemany(
                "INSERT INTO item (id, label, metadata, embedding, changed) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (id) DO UPDATE SET (label, metadata, embedding, changed) = "
                "(excluded.label, excluded.metadata, excluded.embedding, excluded.changed)",
                (
                    (row.id, row.label, as_json(row.metadata), numbers.tobytes(), change)
                    for row, numbers in zip(rows.described(), packed, strict=True)
                ),
            )
            self._connection.executemany(
                "INSERT INTO tag (name, value, item) SELECT ?, ?, key FROM item WHERE id = ?",
                ((*tag, row.id) for row in rows.described() for tag in tags(row.metadata)),
            )

    def remove(self, ids: Iterable[str]) -> int:
        sql, given = self._among("id", list(ids))
        with self._writing() as change:
            self._all(f"INSERT INTO removed SELECT key, ? FROM item WHERE {sql}", change, given)
            return len(self._all(f"DELETE FROM item WHERE {sql} RETURNING key", given))

    def state(self) -> State:
        """The last write."""
        with self.reading():
            rows = self._all("SELECT change, hex(token) FROM write ORDER BY change DESC LIMIT 1")
        return State(self._uuid, *rows[0]) if rows else State(self._uuid, 0, "")

    def has_been(self, state: State) -> bool:
        """Whether a state belongs to the history of this store, so that what changed since is known.

        Args:
            state: The state.
        """
        if state.uuid != self._uuid:
            return False
        with self.reading():
            rows = self._all("SELECT hex(token) FROM write WHERE change = ?", state.change)
        return rows == [(state.token,)] or state.change == 0

    def changed_since(self, change: int, size: int = ROWS_PER_BATCH) -> Iterator[tuple[Keys, Packed]]:
        """Keys and embeddings of the rows that were written after a change, in the order of their keys.

        Args:
            change: The number of a write.
            size: How many rows to read at a time.
        """
        with self.reading():
            column = "changed" if change else "+changed"  # to read all rows, no index is faster
            query = f"SELECT key, embedding FROM item WHERE {column} > ? ORDER BY key"
            for rows in self._chunks(query, [change], size):
                yield keys_of(rows), self._packed(rows)

    def removed_since(self, change: int) -> Keys:
        """Keys of the rows that were removed after a change.

        Args:
            change: The number of a write.
        """
        with self.reading():
            return keys_of(self._all("SELECT key FROM removed WHERE changed > ?", change))

    def verify(self) -> None:
        with self.reading():
            (found,) = self._all("PRAGMA integrity_check(1)")[0]
            if found != "ok":
                raise StoreError(f"{self.name} is damaged ({found}): restore it, or build it again")
            self._check_tags()

    def _among(self, column: str, values: Sequence[Any]) -> tuple[str, Any]:
        return f"{column} IN (SELECT value FROM json_each(?))", json.dumps(list(values))

    def _all(self, query: str, *parameters: Any) -> list[Any]:
        return self._connection.execute(query, parameters).fetchall()

    def _chunks(self, query: str, parameters: Sequence[Any], size: int) -> Iterator[list[Any]]:
        cursor = self._connection.execute(query, parameters)
        while rows := cursor.fetchmany(size):
            yield rows


def make_file(path: Path, header: Header) -> None:
    """Make an empty store, which appears whole or not at all.

    Args:
        path: The file.
        header: What its embeddings will have in common.
    """
    SqliteStore.refuse_existing(str(path))
    write_atomically(path, lambda part: _make(part, path, header))


def _make(part: Path, path: Path, header: Header) -> None:
    with translating_errors(path), closing(sqlite3.connect(part, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(f"BEGIN; {SCHEMA}")
        connection.execute("INSERT INTO store VALUES (?, ?)", (uuid.uuid4().hex, json.dumps(header.describe())))
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")


def open_file(path: Path) -> sqlite3.Connection:
    """A connection to an existing store, its kind and version checked; read-only where nothing can be written.

    Args:
        path: The file.
    """
    if not path.is_file():
        raise StoreError(f"there is no store {path}: make one with `hedged index build RUN {path} IMAGES`")
    _refuse_truncated(path)
    with translating_errors(path):
        connection = _connect(path)
        try:
            _check_kind(path, connection)
            connection.execute("PRAGMA synchronous = FULL")  # a write is on disk when it is acknowledged
            connection.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            connection.close()
            raise
    return connection


def read_columns(connection: sqlite3.Connection) -> dict[str, Any]:
    """The one row of the table `store`, by column.

    Args:
        connection: To the store.
    """
    cursor = connection.execute("SELECT * FROM store")
    return dict(zip((name for name, *_ in cursor.description), cursor.fetchone() or (), strict=False))


def _connect(path: Path) -> sqlite3.Connection:
    """A write-ahead log needs a file beside the store even to read; where none can be made, nobody can be writing."""
    address = f"file:{quote(str(path))}"
    connection = sqlite3.connect(f"{address}?mode=rw", uri=True, isolation_level=None, timeout=TIMEOUT_SECONDS)
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
    check_version(version, str(path))


def _refuse_truncated(path: Path) -> None:
    """Compare the size that the first page of the file states with the real one; SQLite looks only where it reads."""
    with path.open("rb") as file:
        first = file.read(100)
    if first[:16] != b"SQLite format 3\0" or len(first) < 100:
        raise StoreError(f"{path} is not a store of hedged, or it is damaged: restore it, or build it again")
    page = int.from_bytes(first[16:18], "big")
    stated_size = (65536 if page == 1 else page) * int.from_bytes(first[28:32], "big")
    if path.stat().st_size < stated_size and not _log_size(path):
        raise StoreError(
            f"{path} is truncated, {path.stat().st_size:,} bytes of {stated_size:,}: restore it, or build it again"
        )


def _log_size(path: Path) -> int:
    """Bytes that were written and are not yet in the store's own file."""
    log = path.with_name(f"{path.name}-wal")
    return log.stat().st_size if log.exists() else 0


@contextmanager
def translating_errors(path: Path) -> Iterator[None]:
    """SQLite's errors as errors of hedged, which say what to do.

    Args:
        path: The file, for messages.
    """
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
    "BUSY": (
        "is being written by another process",
        f"nothing was changed in {TIMEOUT_SECONDS:g} seconds; try again",
    ),
    "CORRUPT": ("is damaged or truncated", "restore it, or build it again"),
    "NOTADB": ("is damaged, or no store of hedged", "restore it, or build it again"),
}
