"""The embedded store: one SQLite file, no server. Many may read while one writes; nothing acknowledged is lost."""

from __future__ import annotations

import json
import logging
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, final

from hedged.errors import StoreError
from hedged.search.engines._checks import RawRow, checksum
from hedged.search.engines._refusals import MAX_NAMED
from hedged.search.engines._sql import TAGS, SqlStore, keys_of, read_header, tags
from hedged.search.engines._sqlite_file import (
    DAMAGED,
    TIMEOUT_SECONDS,
    TRACES,
    FileIdentity,
    check_writable,
    connect_to_read,
    identity_of,
    log_of,
    make_file,
    open_file,
    owning_file,
    read_columns,
    refuse_existing,
    scrub,
    translating_errors,
)
from hedged.search.engines._sqlite_log import fault_of_log
from hedged.search.rows import Described, Header, Keys, Packed, Rows, as_column, as_json
from hedged.search.store import ROWS_PER_BATCH, Salvage

if TYPE_CHECKING:
    from hedged.search.engines._faiss import FaissIndex
    from hedged.search.index import Plan


logger = logging.getLogger("hedged")


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

    first_stages = ("exact", "hnsw", "ivf")
    _has_written = False

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._opened: FileIdentity | None
        self._connection, self._opened = open_file(self._path)
        try:
            with translating_errors(self._path):
                columns = read_columns(self._connection)
            self._uuid, self._has_checksums = columns.get("uuid", ""), "checksum" in columns
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
    def build(cls, location: str, header: Header, parts: Iterable[Rows]) -> int:
        counted: list[int] = []

        def fill(part: Path) -> None:
            with cls(part) as store:
                for rows in parts:
                    store.add(rows)
                counted.append(store.count())

        make_file(Path(location), header, fill)
        return counted[0]

    @classmethod
    def refuse_existing(cls, location: str) -> None:
        refuse_existing(Path(location))

    @classmethod
    @contextmanager
    def salvaging(cls, location: str, header: Header | None = None) -> Iterator[Salvage]:
        path = Path(location)
        with translating_errors(path), closing(connect_to_read(path)) as connection:
            store = cls.__new__(cls)
            store._path, store._connection, store._opened = path, connection, identity_of(path)
            store._has_checksums = bool(
                connection.execute("SELECT 1 FROM pragma_table_info('item') WHERE name = 'checksum'").fetchall()
            )
            try:
                columns = read_columns(connection)
                store._uuid, store._header = columns.get("uuid", ""), read_header(columns, str(path))
            except (*DAMAGED, StoreError):
                if header is None:
                    yield Salvage(str(path), None, iter(()), [])
                    return
                store._uuid, store._header = "", header
            with store.salvage() as found:
                found.lost.extend(filter(None, [fault_of_log(log_of(path))]))
                yield found

    @classmethod
    @contextmanager
    def reserve(cls, location: str) -> Iterator[None]:
        with owning_file(Path(location)):
            cls.refuse_existing(location)
            yield

    def index(self, plan: Plan | None = None, ef_search: int | None = None) -> FaissIndex:
        """FAISS over the means in memory, kept in a file beside the store.

        Args:
            plan: How candidates are found; None: as in the file, else by looking at all rows.
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

    def check_writable(self) -> None:
        check_writable(self._path)

    def wait_at_most(self, seconds: float) -> None:
        self._connection.execute(f"PRAGMA busy_timeout = {int(1000 * seconds)}")

    def how_to_move(self) -> str:
        file, log = self._path.name, log_of(self._path).name
        return (
            f"close what uses it, run `hedged index info` once, which takes in what a killed writer left in {log}, "
            f"then move {file}; or move {file} and {log} together. {file}.index may stay behind: it is made again"
        )

    def close(self) -> None:
        """Let go of the file; if rows were removed, leave nothing of them in it."""
        has_written, self._has_written = self._has_written, False
        try:
            if has_written and identity_of(self._path) == self._opened:
                self._scrub()
        finally:
            self._connection.close()

    def _scrub(self) -> None:
        try:
            if self._has_traces():
                scrub(self._connection)
        except sqlite3.Error as error:
            logger.warning(
                "rows were removed from %s, but something of them may be left in free parts of the file (%s): close "
                "what uses it, then run `hedged index remove` on it again, with any id",
                self.name,
                error,
            )

    def _translating_errors(self) -> AbstractContextManager[None]:
        return translating_errors(self._path)

    def _begin(self) -> None:
        self._check_in_place("nothing was read")
        self._connection.execute("BEGIN")

    def _end(self) -> None:
        try:
            self._connection.execute("COMMIT")
        except sqlite3.DatabaseError:  # of a damaged file, to which nothing was written
            self._connection.rollback()

    @contextmanager
    def _writing(self) -> Iterator[int]:
        """A transaction, all of which is kept or nothing; yields the number of the write."""
        self._refuse_reading()
        self._check_in_place("nothing was written")
        self._has_written = True
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
        self._check_in_place("what was being written is lost with it")

    @contextmanager
    def unchanging(self, patience: float = TIMEOUT_SECONDS) -> Iterator[None]:
        """Until the end of `with` the store may be read, and nobody writes to it: who wants to waits.

        Args:
            patience: Seconds to wait for a writer.
        """
        self._refuse_reading()
        with translating_errors(self._path):
            ((usual,),) = self._all("PRAGMA busy_timeout")
            self.wait_at_most(patience)
            try:
                self._connection.execute("BEGIN IMMEDIATE")
            finally:
                self.wait_at_most(usual / 1000)
            self._depth = 1  # all that is read is read within
            try:
                self._check_in_place("nothing was written")
                yield
            finally:
                self._depth = 0
                self._connection.rollback()

    def _check_in_place(self, consequence: str) -> None:
        """Refuse to go on with a file that is no longer at the path: it was deleted, and perhaps built anew."""
        there = identity_of(self._path)
        if there != self._opened:
            what = "was deleted" if there is None else "was deleted and built anew, or replaced,"
            raise StoreError(f"{self.name} {what} since it was opened: {consequence}. Open the store again")

    def _write(self, rows: Rows, replace: bool) -> None:
        packed = rows.packed()
        columns = ["label", "metadata", "embedding", "changed", *(["checksum"] if self._has_checksums else [])]
        names = ", ".join(columns)
        with self._forgetting() as (change, outdated):
            outdated += self._existing(rows, replace)
            sql, given = self._among("item", outdated)
            self._all(f"DELETE FROM tag WHERE {sql}", given)
            self._connection.executemany(
                f"INSERT INTO item (id, {names}) VALUES (?{', ?' * len(columns)}) "
                f"ON CONFLICT (id) DO UPDATE SET ({names}) = ({', '.join(f'excluded.{name}' for name in columns)})",
                (
                    self._values(row, as_json(row.metadata), numbers.tobytes(), change)
                    for row, numbers in zip(rows.described(), packed, strict=True)
                ),
            )
            self._connection.executemany(
                "INSERT INTO tag (name, value, item) SELECT ?, ?, key FROM item WHERE id = ?",
                ((*tag, row.id) for row in rows.described() for tag in tags(row.metadata)),
            )

    def _values(self, row: Described, metadata: str, embedding: bytes, change: int) -> tuple[Any, ...]:
        values = (row.id, row.label, metadata, embedding, change)
        return (*values, checksum(embedding, row.id, row.label, metadata)) if self._has_checksums else values

    def remove(self, ids: Iterable[str]) -> int:
        """Remove rows, and return how many there were. Once the store is closed nothing of them is left in its files.

        Args:
            ids: Their ids; those that no row has are passed over.
        """
        sql, given = self._among("id", as_column("ids", ids))
        with self._forgetting() as (change, outdated):
            outdated += keys_of(self._all(f"SELECT key FROM item WHERE {sql}", given)).tolist()
            self._all(f"INSERT INTO removed SELECT key, ? FROM item WHERE {sql}", change, given)
            self._all(f"DELETE FROM item WHERE {sql}", given)
        return len(outdated)

    @contextmanager
    def _forgetting(self) -> Iterator[tuple[int, list[int]]]:
        """A transaction that may remove or replace rows, of which nothing is left in the files once all is closed.

        Yields the number of the write, and a list for the keys of the rows whose embeddings are to be forgotten.
        """
        from hedged.search.engines._index_file import forget_rows

        outdated: list[int] = []
        with self._writing() as change:
            yield change, outdated
            if outdated:
                self._all(f"CREATE TABLE IF NOT EXISTS {TRACES} (key)")
        if self._has_traces():  # of these rows, or of some whose removal was cut short
            forget_rows(self)

    def _has_traces(self) -> bool:
        """Whether something may be left of removed rows."""
        return bool(self._all("SELECT 1 FROM sqlite_schema WHERE name = ?", TRACES))

    def moment(self) -> State:
        return self.state()

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
            query = f"SELECT key, embedding, {self._checksum()} FROM item WHERE {column} > ? ORDER BY key"
            for rows in self._chunks(query, [change], size):
                yield keys_of(rows), self._packed(rows)

    def removed_since(self, change: int) -> Keys:
        """Keys of the rows that were removed after a change.

        Args:
            change: The number of a write.
        """
        with self.reading():
            return keys_of(self._all("SELECT key FROM removed WHERE changed > ?", change))

    def _faults_of_tables(self) -> list[str]:
        try:
            faults = [line for (line,) in self._all(f"PRAGMA integrity_check({MAX_NAMED})") if line != "ok"]
            if self._all("SELECT 1 FROM removed JOIN item USING (key) LIMIT 1"):
                faults.append("rows are there that were removed")
            if self._all("SELECT 1 FROM item WHERE changed > (SELECT max(change) FROM write) LIMIT 1"):
                faults.append("rows are of writes that never were")
        except DAMAGED as error:
            return [f"its tables cannot be read ({error})"]
        return faults

    def _faults_of_index(self) -> list[str]:
        from hedged.search.engines._index_file import index_file_faults

        return index_file_faults(self)

    def _stored_tags(self) -> Iterable[Any]:
        return self._reached(TAGS)

    def _survey(self) -> Iterator[RawRow | str]:
        reachable = sorted(self._reachable())
        ids: dict[int, str] | None = None
        for start in range(0, len(reachable), ROWS_PER_BATCH):
            keys = reachable[start : start + ROWS_PER_BATCH]
            found = {row.key: row for row in self._read_whole(keys)}
            for key in keys:
                if key in found:
                    yield found[key]
                else:
                    ids = self._ids() if ids is None else ids
                    name = f" ({ids[key]!r})" if key in ids else ""
                    yield f"row {key}{name}: it cannot be read"

    def _ids(self) -> dict[int, str]:
        """Ids by key, as far as the index of ids can be read."""
        return dict(self._reached("SELECT key, id FROM item INDEXED BY sqlite_autoindex_item_1 ORDER BY id"))

    def _reachable(self) -> set[int]:
        """Keys of rows, by whichever way leads to them: the table and its indexes, from both ends."""
        ways = (("NOT INDEXED", "key"), ("INDEXED BY sqlite_autoindex_item_1", "id"),
                ("INDEXED BY item_label", "label"), ("INDEXED BY item_changed", "changed"))  # fmt: skip
        queries = [
            f"SELECT key FROM item {way} ORDER BY {column} {order}" for way, column in ways for order in ("", "DESC")
        ]
        return {key for query in queries for (key,) in self._reached(query) if isinstance(key, int)}

    def _reached(self, query: str) -> Iterator[Any]:
        """The rows of a result up to where it can be read."""
        try:
            yield from self._connection.execute(query)
        except DAMAGED:
            return

    def _read_whole(self, keys: list[int]) -> Iterator[RawRow]:
        """The rows with these keys, in order, and those between, without those that cannot be read.

        Where some cannot, each half of the keys is tried by itself: damaged keys may lie far apart.
        """
        try:
            rows = self._all(f"{self._raw_rows()} WHERE key BETWEEN ? AND ?", keys[0], keys[-1])
        except DAMAGED:
            middle = len(keys) // 2
            if middle:
                yield from self._read_whole(keys[:middle])
                yield from self._read_whole(keys[middle:])
        else:
            yield from (RawRow(*row) for row in rows)

    def _as_text(self, metadata: Any) -> Any:
        return metadata

    def _among(self, column: str, values: Sequence[Any]) -> tuple[str, Any]:
        return f"{column} IN (SELECT value FROM json_each(?))", json.dumps(list(values))

    def _all(self, query: str, *parameters: Any) -> list[Any]:
        return self._connection.execute(query, parameters).fetchall()

    def _chunks(self, query: str, parameters: Sequence[Any], size: int) -> Iterator[list[Any]]:
        cursor = self._connection.execute(query, parameters)
        while rows := cursor.fetchmany(size):
            yield rows
