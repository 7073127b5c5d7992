"""What stores in SQL databases have in common: the same tables, and so the same queries.

The table `item` has one row for each embedding, `tag` one for each value that filters look up. Parameters are marked
`?`.
"""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from hedged.errors import DataError, StoreError
from hedged.search.rows import FLOAT, OWN_KEYS, Batch, Described, Filter, Header, Keys, Packed, Rows, as_text
from hedged.search.store import ROWS_PER_BATCH, Store

VERSION, READABLE = 2, (1, 2)  # of the tables; version 1 had a column for each value of the header
MAX_VALUE = 256  # characters of a value that are kept as they are; longer ones are looked up by their hash


class SqlStore(Store):
    """A store whose rows are in the tables `item` and `tag`."""

    _header: Header
    _depth = 0  # of `reading` inside `reading`

    @property
    def header(self) -> Header:
        return self._header

    @contextmanager
    def reading(self) -> Iterator[None]:
        with self._translating_errors():
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
        """Refuse a write inside `reading`."""
        if self._depth:
            raise StoreError(f"{self.name} cannot be written while it is read from: finish reading, or open it twice")

    @abstractmethod
    def _translating_errors(self) -> AbstractContextManager[None]:
        """Errors of the database as errors of hedged, which say what to do."""

    @abstractmethod
    def _begin(self) -> None:
        """Begin a snapshot."""

    @abstractmethod
    def _end(self) -> None:
        """End the snapshot."""

    @abstractmethod
    def _all(self, query: str, *parameters: Any) -> list[Any]:
        """All rows of the result of a query."""

    @abstractmethod
    def _chunks(self, query: str, parameters: Sequence[Any], size: int) -> Iterator[list[Any]]:
        """The rows of the result, `size` at a time."""

    @abstractmethod
    def _among(self, column: str, values: Sequence[Any]) -> tuple[str, Any]:
        """An SQL condition that a column has one of these values, however many, and its one parameter."""

    def _count(self, where: Filter) -> int:
        sql, parameters = condition(where)
        return int(self._all(f"SELECT count(*) FROM item WHERE {sql}", *parameters)[0][0])

    def _keys(self, where: Filter) -> Keys:
        sql, parameters = condition(where)
        return keys_of(self._all(f"SELECT key FROM item WHERE {sql} ORDER BY key", *parameters))

    def _batches(self, where: Filter, size: int) -> Iterator[Batch]:
        sql, parameters = condition(where)
        query = f"SELECT key, embedding, id, label, metadata FROM item WHERE {sql} ORDER BY key"
        for rows in self._chunks(query, parameters, size):
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

    def _existing(self, rows: Rows, replace: bool) -> list[int]:
        """Keys of the rows whose ids exist; it is an error if there are any, unless they are to be replaced."""
        sql, given = self._among("id", list(rows.ids))
        existing = self._all(f"SELECT key, id FROM item WHERE {sql} ORDER BY key", given)
        if existing and not replace:
            raise DataError(
                f"{self.name} holds {existing[0][1]!r} already, and {len(existing) - 1} more of these ids: nothing was "
                "added. Give new ids, or replace the rows (upsert, `hedged index add --replace`)"
            )
        return [key for key, _ in existing]

    def _check_tags(self) -> None:
        """Compare what filters look up with the metadata that it is made of."""
        stored = sorted(map(tuple, self._all("SELECT name, value, item FROM tag")))
        batches = self._batches((), ROWS_PER_BATCH)
        rows = [(int(key), row) for batch in batches for key, row in zip(batch.keys, batch.described, strict=True)]
        if stored != sorted((*tag, key) for key, row in rows for tag in tags(row.metadata)):
            raise StoreError(f"{self.name} is damaged (metadata and filters differ): restore it, or build it again")

    def _packed(self, rows: list[Any]) -> Packed:
        """The second column, embeddings, as `(n, width)`."""
        content = b"".join(row[1] for row in rows)
        if len(content) != len(rows) * self.header.width * FLOAT.itemsize:
            raise StoreError(f"{self.name} is damaged (embeddings of another size): restore it, or build it again")
        return np.frombuffer(content, FLOAT).reshape(len(rows), self.header.width).copy()


def condition(where: Filter) -> tuple[str, list[str]]:
    """An SQL condition on `item` for the rows that pass a filter, and its parameters.

    Args:
        where: The filter.

    >>> from hedged.search import Where
    >>> condition([Where("label", "Rex"), Where("year", "2019")])
    ('label = ? AND key IN (SELECT item FROM tag WHERE name = ? AND value = ?)', ['Rex', 'year', '2019'])
    """
    parts, parameters = [], []
    for key, value in where:
        if key in OWN_KEYS:
            parts.append(f"{key} = ?")
            parameters.append(value)
        else:
            parts.append("key IN (SELECT item FROM tag WHERE name = ? AND value = ?)")
            parameters += [key, _short(value)]
    return " AND ".join(parts) or "TRUE", parameters


def tags(metadata: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is kept of metadata for filters to look up: keys and values as text.

    Args:
        metadata: Of one row.
    """
    for key, value in metadata.items():
        yield key, _short(as_text(value))


def check_version(version: object, name: str) -> None:
    """Refuse a store whose tables this version of hedged cannot read.

    Args:
        version: That the store states.
        name: Of the store, for messages.
    """
    if version not in READABLE:
        raise StoreError(
            f"{name} is of version {version}, this version of hedged reads versions "
            f"{' and '.join(map(str, READABLE))}: use the version that wrote it, or build the store again"
        )


def read_header(columns: Mapping[str, Any], name: str) -> Header:
    """The header of a store, from the row of its table `store`; stores of version 1 have a column for each value.

    Args:
        columns: The row, by column.
        name: Of the store, for messages.
    """
    try:
        if "header" in columns:
            return Header.restore(json.loads(columns["header"]))
        return Header.restore({key: columns[key] for key in columns if key not in ("uuid", "version")})
    except (ValueError, TypeError, KeyError) as error:
        raise StoreError(f"{name} is damaged (its header cannot be read): restore it, or build it again") from error


def keys_of(rows: list[Any]) -> Keys:
    """The first column of a result, as keys.

    Args:
        rows: The result.
    """
    return np.array([row[0] for row in rows], dtype=np.int64)


def _short(text: str) -> str:
    return text if len(text) <= MAX_VALUE else f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _described(name: str, label: str | None, metadata: str | Mapping[str, Any]) -> Described:
    return Described(name, label, json.loads(metadata) if isinstance(metadata, str) else metadata)
