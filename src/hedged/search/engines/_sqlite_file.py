"""The file of an embedded store: how it is made, opened and checked, and what SQLite's errors mean to a user."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import stat
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hedged._files import write_atomically
from hedged._locks import owning
from hedged._reading import KINDS
from hedged.errors import StoreError
from hedged.search.engines._checks import header_checksum
from hedged.search.engines._sql import FIRST_WITH_CHECKSUMS, VERSION, check_version
from hedged.search.engines._sqlite_log import fault_of_log
from hedged.search.rows import Header

logger = logging.getLogger("hedged")

APPLICATION = 0x68656467  # "hedg", in the header of the file
ADVICE = "restore a backup, or keep what is whole with `hedged index repair`"
BESIDE = ("wal", "shm", "journal")  # the endings of what SQLite keeps beside a file
TRACES = "traces"  # a table that is there while something may be left of removed rows
SCRUB_SECONDS = 2.0  # to wait for others when a store is closed after rows were removed
TIMEOUT_SECONDS = 30.0  # to wait for another writer
SCHEMA = """
CREATE TABLE store (uuid TEXT NOT NULL, header TEXT NOT NULL, checksum INTEGER NOT NULL);
-- one row for each write, with a random token: an index remembers the last it has seen
CREATE TABLE write (change INTEGER PRIMARY KEY AUTOINCREMENT, token BLOB NOT NULL);
CREATE TABLE item (key INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, label TEXT,
    metadata TEXT NOT NULL, embedding BLOB NOT NULL, changed INTEGER NOT NULL, checksum BLOB NOT NULL);
CREATE INDEX item_label ON item (label);
CREATE INDEX item_changed ON item (changed);
CREATE TABLE tag (name TEXT NOT NULL, value TEXT NOT NULL,
    item INTEGER NOT NULL REFERENCES item (key) ON DELETE CASCADE, PRIMARY KEY (name, value, item)) WITHOUT ROWID;
CREATE INDEX tag_item ON tag (item);
CREATE TABLE removed (key INTEGER PRIMARY KEY, changed INTEGER NOT NULL);
"""

NO_FILES = KINDS | {stat.S_IFDIR: "a folder", stat.S_IFLNK: "a link"}
FileIdentity = tuple[int, int]  # device and number of a file
# What a damaged file raises: Python cannot decode messages of SQLite's that quote damaged bytes.
DAMAGED = (sqlite3.DatabaseError, UnicodeDecodeError)


def make_file(path: Path, header: Header, fill: Callable[[Path], object] | None = None) -> None:
    """Make a store, which appears whole or not at all, and where nothing is yet.

    Args:
        path: The file.
        header: What its embeddings will have in common.
        fill: Writes rows to the empty store at the path that it is given; None: it stays empty.
    """

    def write(part: Path) -> None:
        part.write_bytes(content)
        if fill is None:
            return
        try:
            fill(part)
            with translating_errors(path), closing(_connect(part)) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()  # to close alone tells no failure
        finally:
            _remove_log(part)

    with owning_file(path):
        refuse_existing(path)
        with translating_errors(path):
            content = _empty(header)
        _set_aside_left_files(path)
        write_atomically(path, write)


def refuse_existing(path: Path) -> None:
    """Raise an error if a file is there already.

    Args:
        path: The file.
    """
    if path.exists():
        count = _count(path)
        held = "" if count is None else f" and holds {count:,} rows"
        raise StoreError(
            f"{path} exists already{held}: add to it with `hedged index add`, which continues what was "
            "interrupted if given --skip-existing, or choose another file"
        )


def _count(path: Path) -> int | None:
    """How many rows a store has; None if there is no store, or a damaged one."""
    try:
        _refuse_what_is_no_file(path)
        alone = "" if _log_size(path) else "&immutable=1"  # without which a file is made beside it
        address = f"file:{quote(os.fsencode(path))}?mode=ro{alone}"
        with closing(sqlite3.connect(address, uri=True)) as connection:
            (count,) = connection.execute("SELECT count(*) FROM item").fetchone()
            return int(count)
    except (*DAMAGED, OSError):
        return None


def check_writable(path: Path) -> None:
    """Raise an error if a store, or the log beside it, cannot be written.

    Args:
        path: The file of the store.
    """
    if not all(os.access(one, os.W_OK) for one in (path, log_of(path).parent)):
        reason, advice = FAILURES["READONLY"]
        raise StoreError(f"{path} {reason}: {advice}")


def owning_file(path: Path) -> AbstractContextManager[None]:
    """The lock of the one process that makes a store.

    Args:
        path: The file of the store.
    """
    if not path.name:
        raise StoreError(f"a store is a file, and {str(path)!r} is a folder: give the name of a file")
    lock = path.with_name(f".{path.name}.lock")
    return owning(
        lock,
        lambda holder: StoreError(f"{path} is being built by {holder}: wait until it is done, or choose another file"),
    )


def _empty(header: Header) -> bytes:
    """The content of the file of an empty store."""
    name, text = uuid.uuid4().hex, json.dumps(header.describe())
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(f"BEGIN; {SCHEMA}")
        connection.execute("INSERT INTO store VALUES (?, ?, ?)", (name, text, header_checksum(name, text)))
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
        content = bytearray(connection.serialize())
    content[18:20] = b"\2\2"  # read and written with a write-ahead log, which a database in memory cannot have
    return bytes(content)


def _set_aside_left_files(path: Path) -> None:
    """Keep what is left beside the path of another store out of the new one: SQLite would take in its log.

    The log may hold rows of a store that was moved without it, so it is kept under another name.
    """
    log = log_of(path)
    if _log_size(path):
        aside = log.with_name(f"{log.name}.{uuid.uuid4().hex[:8]}")
        log.rename(aside)
        logger.warning(
            "%s was left by another store of this name; it is now %s: delete it, or, if that store was moved without "
            "it, put it beside the store, as its name with -wal added",
            log,
            aside,
        )
    _remove_log(path)


def _remove_log(path: Path) -> None:
    for ending in BESIDE:
        _beside(path, ending).unlink(missing_ok=True)


class _Connection(sqlite3.Connection):
    """A connection that is counted. While there is one, nothing but SQLite may open the file in this process: to close
    it again would end the locks of all connections, and another process could take away the log that they read.
    """

    _file: FileIdentity | None = None

    def count(self, file: FileIdentity) -> None:
        self._file = file
        _connections[file] += 1

    def close(self) -> None:
        file, self._file = self._file, None
        super().close()
        if file is not None:
            with _counting:
                _connections[file] -= 1


_connections: Counter[FileIdentity] = Counter()
_counting = threading.RLock()


def open_file(path: Path) -> tuple[sqlite3.Connection, FileIdentity]:
    """A connection to an existing store, its kind and version checked, and which file that is.

    It is read-only where nothing can be written.

    Args:
        path: The file.
    """
    while True:
        identity = identity_of(path)
        if identity is None:
            raise StoreError(f"there is no store {path}: make one with `hedged index build RUN {path} INPUTS`")
        _refuse_what_is_no_file(path)
        with translating_errors(path), _counting:
            if not _connections[identity]:
                _refuse_truncated(path)
                _refuse_damaged_log(path)
            connection = _connect(path)
            connection.count(identity)
            try:
                _check_kind(path, connection)
                connection.execute("PRAGMA synchronous = FULL")  # a write is on disk when it is acknowledged
                connection.execute("PRAGMA foreign_keys = ON")
                connection.execute("PRAGMA secure_delete = ON")  # what is removed is overwritten
            except BaseException:
                connection.close()
                raise
        if identity_of(path) == identity:
            return connection, identity
        connection.close()  # another file came to be there meanwhile


def identity_of(path: Path) -> FileIdentity | None:
    """Which file is at a path; None if there is none. As long as it is open, no other has its number.

    Args:
        path: The path.
    """
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino


def scrub(connection: sqlite3.Connection) -> None:
    """Leave nothing of removed rows: pages are written anew, for SQLite copies rows between them, and the log emptied.

    While others read, their pages stay in the log; whoever closes the store last removes it.

    Args:
        connection: To the store.
    """
    connection.execute(f"PRAGMA busy_timeout = {int(1000 * SCRUB_SECONDS)}")
    connection.execute("VACUUM")
    connection.execute(f"DROP TABLE IF EXISTS {TRACES}")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


def log_of(path: Path) -> Path:
    """The write-ahead log of a store.

    Args:
        path: The file of the store.
    """
    return _beside(path, "wal")


def _beside(path: Path, ending: str) -> Path:
    """A file of SQLite's beside a store: of a link, beside what it leads to."""
    file = Path(os.path.realpath(path)) if path.is_symlink() else path
    return file.with_name(f"{file.name}-{ending}")


def read_columns(connection: sqlite3.Connection) -> dict[str, Any]:
    """The one row of the table `store`, by column.

    Args:
        connection: To the store.
    """
    cursor = connection.execute("SELECT * FROM store")
    return dict(zip((name for name, *_ in cursor.description), cursor.fetchone() or (), strict=False))


def _connect(path: Path) -> _Connection:
    """A write-ahead log needs a file beside the store even to read; where none can be made, nobody can be writing."""
    address = f"file:{quote(os.fsencode(path))}"
    connection = sqlite3.connect(
        f"{address}?mode=rw", uri=True, isolation_level=None, timeout=TIMEOUT_SECONDS, factory=_Connection
    )
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except sqlite3.OperationalError as error:
        connection.close()
        if error.sqlite_errorname.partition("_")[2].split("_")[0] not in ("CANTOPEN", "READONLY") or _log_size(path):
            raise
        connection = sqlite3.connect(
            f"{address}?mode=ro&immutable=1", uri=True, isolation_level=None, factory=_Connection
        )
    return connection


def connect_to_read(path: Path) -> sqlite3.Connection:
    """A connection to a store that may be damaged, which is not written to and not checked.

    Args:
        path: The file.
    """
    if identity_of(path) is None:
        raise StoreError(f"there is no store {path}: give a file that `hedged index build` has made")
    _refuse_what_is_no_file(path)
    address = f"file:{quote(os.fsencode(path))}?mode=ro"
    for mode in ("", "&immutable=1"):
        connection = sqlite3.connect(f"{address}{mode}", uri=True, isolation_level=None)
        try:
            connection.execute("PRAGMA writable_schema = ON")  # nothing is written: it lets SQLite read on after damage
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        except sqlite3.OperationalError:
            connection.close()
            if mode or _log_size(path):
                raise
        except BaseException:
            connection.close()
            raise
        else:
            return connection
    raise AssertionError("unreachable")


def _check_kind(path: Path, connection: sqlite3.Connection) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION:
        raise StoreError(f"{path} is not a store of hedged: give a file that `hedged index build` has made")
    check_version(version, str(path))
    has_checksums = "checksum" in {name for _, name, *_ in connection.execute("PRAGMA table_info(store)")}
    if has_checksums != (version >= FIRST_WITH_CHECKSUMS):
        raise StoreError(
            f"{path} is damaged (it says that it is of version {version}, which its tables are not): restore a backup, "
            f"or keep what is whole with `hedged index repair {path} NEW`"
        )


def _refuse_truncated(path: Path) -> None:
    """Compare the size that the first page of the file states with the real one; SQLite looks only where it reads."""
    with path.open("rb") as file:
        first = file.read(100)
    if first[:16] != b"SQLite format 3\0" or len(first) < 100:
        raise StoreError(f"{path} is not a store of hedged, or it is damaged: {ADVICE}")
    page = int.from_bytes(first[16:18], "big")
    stated_size = (65536 if page == 1 else page) * int.from_bytes(first[28:32], "big")
    if path.stat().st_size < stated_size and not _log_size(path):
        raise StoreError(f"{path} is truncated, {path.stat().st_size:,} bytes of {stated_size:,}: {ADVICE}")


def _refuse_damaged_log(path: Path) -> None:
    """Refuse a log of which SQLite would take in a part, and then delete it: the rest was acknowledged, too."""
    if fault := fault_of_log(log_of(path)):
        raise StoreError(f"{path} is damaged ({fault}); nothing was changed: {ADVICE}")


def _refuse_what_is_no_file(path: Path) -> None:
    """Say what a store is that is no file; what is no file beside it, SQLite would wait for, or write to."""
    if kind := _no_file(path.stat().st_mode):
        raise StoreError(f"{path} is {kind}, where a store needs a file: give one that `hedged index build` has made")
    for file in (_beside(path, ending) for ending in BESIDE):
        with suppress(FileNotFoundError):
            if kind := _no_file(file.lstat().st_mode):
                raise StoreError(f"{file} is {kind}, where a store needs a file: remove it")


def _no_file(mode: int) -> str:
    """What it is that is no file; empty if it is one."""
    return "" if stat.S_ISREG(mode) else NO_FILES.get(stat.S_IFMT(mode), "no file")


def _log_size(path: Path) -> int:
    """Bytes that were written and are not yet in the store's own file."""
    log = log_of(path)
    return log.stat().st_size if log.exists() else 0


@contextmanager
def translating_errors(path: Path) -> Iterator[None]:
    """SQLite's errors as errors of hedged, which say what to do.

    Args:
        path: The file, for messages.
    """
    try:
        yield
    except UnicodeDecodeError as error:
        raise StoreError(f"{path} is damaged: {ADVICE}") from error
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
    "BUSY": ("is being written by another process", "nothing was changed; try again when that is done"),
    "CORRUPT": ("is damaged or truncated", ADVICE),
    "NOTADB": (
        "is damaged, or no store of hedged",
        "restore a backup, or keep what is whole with `hedged index repair`",
    ),
}
