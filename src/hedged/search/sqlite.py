"""The embedded store: one SQLite file, no server. Many may read while one writes; nothing acknowledged is lost."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self, final

from hedged.errors import StoreError
from hedged.search.rows import Header, Keys, Packed, Rows, as_json
from hedged.search.sql import SqlStore, keys_of
from hedged.search.sqlite_file import make_file, open_file, told
from hedged.search.store import BATCH
from hedged.search.where import tags


class State(NamedTuple):
    """A moment in the life of a store: its last write, which no other store and no other history has."""

    uuid: str
    change: int
    token: str


@final
class SqliteStore(SqlStore):
    """A store in one file, in WAL mode: readers never wait, and see what was there when they began."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._connection = open_file(self._path)
        with told(self._path):
            self._uuid, *header = self._connection.execute("SELECT * FROM store").fetchone()
        self._header = Header(*header)

    @classmethod
    def create(cls, path: str | Path, header: Header) -> Self:
        """A new store, empty, where no file is yet."""
        make_file(Path(path), header)
        return cls(path)

    @property
    def name(self) -> str:
        return str(self._path)

    @property
    def path(self) -> Path:
        return self._path

    def close(self) -> None:
        self._connection.close()

    def _told(self) -> AbstractContextManager[None]:
        return told(self._path)

    def _begin(self) -> None:
        self._connection.execute("BEGIN")

    def _end(self) -> None:
        self._connection.execute("COMMIT")

    @contextmanager
    def _writing(self) -> Iterator[int]:
        """The number of the write; all of it is kept, or nothing."""
        self._refuse_reading()
        with told(self._path):
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
            sql, given = self._among("item", self._there(rows, replace))
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
        """Whether a moment is one of this store's past, so that what changed since can be told."""
        if state.uuid != self._uuid:
            return False
        with self.reading():
            rows = self._all("SELECT hex(token) FROM write WHERE change = ?", state.change)
        return rows == [(state.token,)] or state.change == 0

    def changed_since(self, change: int, size: int = BATCH) -> Iterator[tuple[Keys, Packed]]:
        """Keys and embeddings of the rows that were written after a change, in the order of their keys."""
        with self.reading():
            column = "changed" if change else "+changed"  # of all rows, no index is the quicker way
            query = f"SELECT key, embedding FROM item WHERE {column} > ? ORDER BY key"
            for rows in self._some(query, [change], size):
                yield keys_of(rows), self._packed(rows)

    def removed_since(self, change: int) -> Keys:
        """Keys of the rows that were removed after a change."""
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

    def _some(self, query: str, parameters: Sequence[Any], size: int) -> Iterator[list[Any]]:
        cursor = self._connection.execute(query, parameters)
        while rows := cursor.fetchmany(size):
            yield rows
