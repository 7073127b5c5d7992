"""The embedded store: one SQLite file, no server. Many may read while one writes; nothing acknowledged is lost."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self, final

import numpy as np

from hedged.errors import DataError, StoreError
from hedged.search.rows import FLOAT, Batch, Described, Header, Keys, Packed, Rows, as_json
from hedged.search.sqlite_file import make_file, open_file, told
from hedged.search.store import BATCH, Store
from hedged.search.where import Filter, condition, tags

GIVEN = "(SELECT value FROM json_each(?))"  # a list of any length as one parameter
EVERY_TAG = "SELECT name, value, item FROM tag ORDER BY item"


class State(NamedTuple):
    """A moment in the life of a store: its last write, which no other store and no other history has."""

    uuid: str
    change: int
    token: str


@final
class SqliteStore(Store):
    """A store in one file, in WAL mode: readers never wait, and see what was there when they began."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._connection = open_file(self._path)
        self._depth = 0
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

    @property
    def header(self) -> Header:
        return self._header

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def reading(self) -> Iterator[None]:
        with told(self._path):
            if self._depth == 0:
                self._connection.execute("BEGIN")
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                if self._depth == 0:
                    self._connection.execute("COMMIT")

    @contextmanager
    def _writing(self) -> Iterator[int]:
        """The number of the write; all of it is kept, or nothing."""
        if self._depth:
            raise StoreError(f"{self.name} cannot be written while it is read from: finish reading, or open it twice")
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
        ids, packed = json.dumps(list(rows.ids)), rows.packed()
        with self._writing() as change:
            there = self._all(f"SELECT key, id FROM item WHERE id IN {GIVEN}", ids)
            if there and not replace:
                raise DataError(
                    f"{self.name} holds {there[0][1]!r} already, and {len(there) - 1} more of these ids: nothing was "
                    "added. Give new ids, or replace the rows (upsert, `hedged index add --replace`)"
                )
            self._all(f"DELETE FROM tag WHERE item IN {GIVEN}", json.dumps([key for key, _ in there]))
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
        given = json.dumps(list(ids))
        with self._writing() as change:
            self._all(f"INSERT INTO removed SELECT key, ? FROM item WHERE id IN {GIVEN}", change, given)
            return len(self._all(f"DELETE FROM item WHERE id IN {GIVEN} RETURNING key", given))

    def _count(self, where: Filter) -> int:
        sql, parameters = condition(where, "?")
        return int(self._all(f"SELECT count(*) FROM item WHERE {sql}", *parameters)[0][0])

    def _keys(self, where: Filter) -> Keys:
        sql, parameters = condition(where, "?")
        return _keys_of(self._all(f"SELECT key FROM item WHERE {sql} ORDER BY key", *parameters))

    def _batches(self, where: Filter, size: int) -> Iterator[Batch]:
        sql, parameters = condition(where, "?")
        query = f"SELECT key, embedding, id, label, metadata FROM item WHERE {sql} ORDER BY key"
        for rows in self._some(query, parameters, size):
            yield Batch(_keys_of(rows), [_described(*row[2:]) for row in rows], self._packed(rows))

    def describe(self, keys: Sequence[int]) -> Mapping[int, Described]:
        with self.reading():
            given = json.dumps([int(key) for key in keys])
            rows = self._all(f"SELECT key, id, label, metadata FROM item WHERE key IN {GIVEN}", given)
        return {key: _described(*row) for key, *row in rows}

    def label_count(self) -> int:
        with self.reading():
            return int(self._all("SELECT count(DISTINCT label) FROM item")[0][0])

    def metadata_keys(self) -> list[str]:
        with self.reading():
            return [name for (name,) in self._all("SELECT DISTINCT name FROM tag ORDER BY name")]

    def _has_key(self, key: str) -> bool:
        return bool(self._all("SELECT 1 FROM tag WHERE name = ? LIMIT 1", key))

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
                yield _keys_of(rows), self._packed(rows)

    def removed_since(self, change: int) -> Keys:
        """Keys of the rows that were removed after a change."""
        with self.reading():
            return _keys_of(self._all("SELECT key FROM removed WHERE changed > ?", change))

    def verify(self) -> None:
        with self.reading():
            (found,) = self._all("PRAGMA integrity_check(1)")[0]
            stored = self._all(EVERY_TAG)
            wanted = sorted(
                (k, v, int(key))
                for b in self._batches((), BATCH)
                for key, row in zip(b.keys, b.described, strict=True)
                for k, v in tags(row.metadata)
            )
        if found != "ok" or sorted(stored) != wanted:
            raise StoreError(f"{self.name} is damaged ({found}): restore it, or build it again")

    def _all(self, query: str, *parameters: Any) -> list[Any]:
        return self._connection.execute(query, parameters).fetchall()

    def _some(self, query: str, parameters: Sequence[Any], size: int) -> Iterator[list[Any]]:
        cursor = self._connection.execute(query, parameters)
        while rows := cursor.fetchmany(size):
            yield rows

    def _packed(self, rows: list[Any]) -> Packed:
        """The second column, embeddings, as `(n, width)`."""
        content = b"".join(row[1] for row in rows)
        if len(content) != len(rows) * self.header.width * FLOAT.itemsize:
            raise StoreError(f"{self.name} is damaged (embeddings of another size): restore it, or build it again")
        return np.frombuffer(content, FLOAT).reshape(len(rows), self.header.width).copy()


def _keys_of(rows: list[Any]) -> Keys:
    """The first column."""
    return np.array([row[0] for row in rows], dtype=np.int64)


def _described(name: str, label: str | None, metadata: str) -> Described:
    return Described(name, label, json.loads(metadata))
