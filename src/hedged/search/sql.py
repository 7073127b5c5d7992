"""What stores in SQL databases have in common: the same tables, and so the same questions.

`item` has a row an embedding, `tag` what filters look up. Parameters are marked `?`.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from hedged.errors import DataError, StoreError
from hedged.search.rows import FLOAT, Batch, Described, Header, Keys, Packed, Rows
from hedged.search.store import BATCH, Store
from hedged.search.where import Filter, condition, tags


class SqlStore(Store):
    """A store whose rows are in the tables `item` and `tag`."""

    _header: Header
    _depth = 0  # of `reading` inside `reading`

    @property
    def header(self) -> Header:
        return self._header

    @contextmanager
    def reading(self) -> Iterator[None]:
        with self._told():
            if self._depth == 0:
                self._begin()
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                if self._depth == 0:
                    self._end()

    def _refuse_reading(self) -> None:
        """Say no to a write inside `reading`."""
        if self._depth:
            raise StoreError(f"{self.name} cannot be written while it is read from: finish reading, or open it twice")

    @abstractmethod
    def _told(self) -> AbstractContextManager[None]:
        """Failures of the database turned into messages."""

    @abstractmethod
    def _begin(self) -> None:
        """Begin to see one moment."""

    @abstractmethod
    def _end(self) -> None:
        """See what is there now."""

    @abstractmethod
    def _all(self, query: str, *parameters: Any) -> list[Any]:
        """All rows of the answer to a query."""

    @abstractmethod
    def _some(self, query: str, parameters: Sequence[Any], size: int) -> Iterator[list[Any]]:
        """The rows of the answer, so many at a time."""

    @abstractmethod
    def _among(self, column: str, values: Sequence[Any]) -> tuple[str, Any]:
        """SQL that holds where a column has one of these values, however many, and its one parameter."""

    def _count(self, where: Filter) -> int:
        sql, parameters = condition(where)
        return int(self._all(f"SELECT count(*) FROM item WHERE {sql}", *parameters)[0][0])

    def _keys(self, where: Filter) -> Keys:
        sql, parameters = condition(where)
        return keys_of(self._all(f"SELECT key FROM item WHERE {sql} ORDER BY key", *parameters))

    def _batches(self, where: Filter, size: int) -> Iterator[Batch]:
        sql, parameters = condition(where)
        query = f"SELECT key, embedding, id, label, metadata FROM item WHERE {sql} ORDER BY key"
        for rows in self._some(query, parameters, size):
            yield Batch(keys_of(rows), [_described(*row[2:]) for row in rows], self._packed(rows))

    def describe(self, keys: Sequence[int]) -> Mapping[int, Described]:
        with self.reading():
            sql, given = self._among("key", [int(key) for key in keys])
            rows = self._all(f"SELECT key, id, label, metadata FROM item WHERE {sql}", given)
        return {key: _described(*row) for key, *row in rows}

    def label_count(self) -> int:
        with self.reading():
            return int(self._all("SELECT count(DISTINCT label) FROM item")[0][0])

    def metadata_keys(self) -> list[str]:
        with self.reading():
            return sorted(name for (name,) in self._all("SELECT DISTINCT name FROM tag"))

    def _has_key(self, key: str) -> bool:
        return bool(self._all("SELECT 1 FROM tag WHERE name = ? LIMIT 1", key))

    def _there(self, rows: Rows, replace: bool) -> list[int]:
        """Keys of the rows whose ids are there already, which is refused unless they are to be replaced."""
        sql, given = self._among("id", list(rows.ids))
        there = self._all(f"SELECT key, id FROM item WHERE {sql} ORDER BY key", given)
        if there and not replace:
            raise DataError(
                f"{self.name} holds {there[0][1]!r} already, and {len(there) - 1} more of these ids: nothing was "
                "added. Give new ids, or replace the rows (upsert, `hedged index add --replace`)"
            )
        return [key for key, _ in there]

    def _check_tags(self) -> None:
        """Compare what filters look up with the metadata that it is made of."""
        stored = sorted(map(tuple, self._all("SELECT name, value, item FROM tag")))
        batches = self._batches((), BATCH)
        rows = [(int(key), row) for batch in batches for key, row in zip(batch.keys, batch.described, strict=True)]
        if stored != sorted((*tag, key) for key, row in rows for tag in tags(row.metadata)):
            raise StoreError(f"{self.name} is damaged (metadata and filters differ): restore it, or build it again")

    def _packed(self, rows: list[Any]) -> Packed:
        """The second column, embeddings, as `(n, width)`."""
        content = b"".join(row[1] for row in rows)
        if len(content) != len(rows) * self.header.width * FLOAT.itemsize:
            raise StoreError(f"{self.name} is damaged (embeddings of another size): restore it, or build it again")
        return np.frombuffer(content, FLOAT).reshape(len(rows), self.header.width).copy()


def keys_of(rows: list[Any]) -> Keys:
    """The first column."""
    return np.array([row[0] for row in rows], dtype=np.int64)


def _described(name: str, label: str | None, metadata: str | Mapping[str, Any]) -> Described:
    return Described(name, label, json.loads(metadata) if isinstance(metadata, str) else metadata)
