"""The embedded store: one SQLite file, no server. Many may read while one writes; nothing acknowledged is lost."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, final

from hedged.errors import StoreError
from hedged.search.engines._sql import SqlStore, keys_of, read_header, tags
from hedged.search.engines._sqlite_file import (
    identity_of,
    log_of,
    make_file,
    open_file,
    owning_file,
    read_columns,
    refuse_existing,
    translating_errors,
)
from hedged.search.rows import Header, Keys, Packed, Rows, as_json
from hedged.search.store import ROWS_PER_BATCH

if TYPE_CHECKING:
    from hedged.search.engines._faiss import FaissIndex
    from hedged.search.index import Plan


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
        self._connection, self._opened = open_file(self._path)
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
        refuse_existing(Path(location))

    @classmethod
    @contextmanager
    def reserve(cls, location: str) -> Iterator[None]:
        with owning_file(Path(location)):
            cls.refuse_existing(location)
            yield

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

    def how_to_move(self) -> str:
        file, log = self._path.name, log_of(self._path).name
        return (
            f"close what uses it, run `hedged index info` once, which takes in what a killed writer left in {log}, "
            f"then move {file}; or move {file} and {log} together. {file}.index may stay behind: it is made again"
        )

    def close(self) -> None:
        self._connection.close()

    def _translating_errors(self) -> AbstractContextManager[None]:
        return translating_errors(self._path)

    def _begin(self) -> None:
        self._check_in_place("nothing was read")
        self._connection.execute("BEGIN")

    def _end(self) -> None:
        self._connection.execute("COMMIT")

    @contextmanager
    def _writing(self) -> Iterator[int]:
        """A transaction, all of which is kept or nothing; yields the number of the write."""
        self._refuse_reading()
        self._check_in_place("nothing was written")
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

    def _check_in_place(self, consequence: str) -> None:
        """Refuse to go on with a file that is no longer at the path: it was deleted, and perhaps built anew."""
        there = identity_of(self._path)
        if there != self._opened:
            what = "was deleted" if there is None else "was deleted and built anew, or replaced,"
            raise StoreError(f"{self.name} {what} since it was opened: {consequence}. Open the store again")

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
