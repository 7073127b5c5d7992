"""What stores in SQL databases have in common: the same tables, and so the same queries.

The table `item` has one row for each embedding, `tag` one for each value that filters look up. Parameters are marked
`?`.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from hedged._reading import parse_json
from hedged.errors import StoreError
from hedged.search.engines._checks import (
    RawRow,
    described,
    description_fault,
    embedding_fault,
    header_checksum,
    row_fault,
    value_fault,
)
from hedged.search.engines._refusals import damaged, taken, written_while_read
from hedged.search.rows import FLOAT, OWN_KEYS, Batch, Described, Filter, Header, Keys, Packed, Rows, as_text
from hedged.search.store import ROWS_PER_BATCH, Salvage, Store

# Of the tables: version 1 had a column for each value of the header, version 2 had no checksums.
VERSION, READABLE = 3, (1, 2, 3)
FIRST_WITH_CHECKSUMS = 3
TAGS = "SELECT name, value, item FROM tag ORDER BY item"
MAX_VALUE = 256  # characters of a value that are kept as they are; longer ones are looked up by their hash


class SqlStore(Store):
    """A store whose rows are in the tables `item` and `tag`."""

    _header: Header
    _has_checksums: bool
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
            raise written_while_read(self.name)

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
        for rows in self._chunks(f"{self._raw_rows()} WHERE {sql} ORDER BY key", parameters, size):
            raw = [RawRow(*row) for row in rows]
            yield Batch(keys_of(rows), [self._described(row) for row in raw], self._packed(rows))

    def _raw_rows(self) -> str:
        """The beginning of a query for rows as they are, of the columns of `RawRow`."""
        return f"SELECT key, embedding, {self._checksum()}, id, label, metadata FROM item"

    def _checksum(self) -> str:
        """An SQL expression for the checksum of a row; NULL in a store that was made before there were any."""
        return "coalesce(checksum, '')" if self._has_checksums else "NULL"

    @abstractmethod
    def _as_text(self, metadata: Any) -> Any:
        """Metadata, as a query has them, as the text that checksums are of; what is no metadata as it is."""

    def _described(self, row: RawRow) -> Described:
        """A row without its embedding; an error if it is not what was written."""
        if fault := description_fault(row.id, row.label, self._as_text(row.metadata), row.checksum):
            raise self._damaged([f"row {row.key}: {fault}"])
        return described(row)

    def _damaged(self, faults: Sequence[str]) -> StoreError:
        return damaged(self.name, faults)

    def describe(self, keys: Sequence[int]) -> Mapping[int, Described]:
        with self.reading():
            sql, given = self._among("key", [int(key) for key in keys])
            query = f"SELECT key, NULL, {self._checksum()}, id, label, metadata FROM item WHERE {sql}"
            rows = [RawRow(*row) for row in self._all(query, given)]
        return {row.key: self._described(row) for row in rows}

    def label_count(self) -> int:
        with self.reading():
            return int(self._all("SELECT count(DISTINCT label) FROM item")[0][0])

    def metadata_keys(self) -> list[str]:
        with self.reading():
            names = [name for (name,) in self._all("SELECT DISTINCT name FROM tag")]
        if not all(isinstance(name, str) for name in names):
            raise self._damaged(["a key that filters look up is no text"])
        return sorted(names)

    def _has_key(self, key: str) -> bool:
        return bool(self._all("SELECT 1 FROM tag WHERE name = ? LIMIT 1", key))

    def _existing(self, rows: Rows, replace: bool) -> list[int]:
        """Keys of the rows whose ids exist; it is an error if there are any, unless they are to be replaced."""
        sql, given = self._among("id", list(rows.ids))
        existing = self._all(f"SELECT key, id FROM item WHERE {sql} ORDER BY key", given)
        if existing and not replace:
            raise taken(self.name, [name for _, name in existing])
        return [key for key, _ in existing]

    def verify(self) -> None:
        with self.reading():
            faults = [*self._faults_of_tables(), *self._faults_of_rows()] or self._faults_of_index()
        if faults:
            raise self._damaged(faults)

    @abstractmethod
    def _faults_of_tables(self) -> list[str]:
        """What is wrong with the tables themselves."""

    def _faults_of_index(self) -> list[str]:
        """How an index beside the store disagrees with it."""
        return []

    def _stored_tags(self) -> Iterable[Any]:
        """What filters look up, as far as it can be read."""
        return self._all(TAGS)

    @abstractmethod
    def _survey(self) -> Iterator[RawRow | str]:
        """All rows as they are, or what is wrong where none can be read."""

    def _faults_of_rows(self) -> Iterator[str]:
        """What is wrong with each broken row, and with what filters look up, which is made of metadata."""
        looked_up: dict[Any, list[tuple[Any, Any]]] = {}
        for name, value, key in self._stored_tags():
            looked_up.setdefault(key, []).append((name, value))
        for row in self._survey():
            if isinstance(row, str):
                yield row
                continue
            stored = sorted(looked_up.pop(row.key, []), key=repr)
            if fault := row_fault(self.header, row, self._as_text(row.metadata)):
                yield _named(row, fault)
            elif stored != sorted(tags(described(row).metadata), key=repr):
                yield _named(row, "its metadata and what filters look up differ")
        if looked_up:
            yield f"filters look up {len(looked_up):,} rows that are not there"

    def _salvaged(self, lost: list[str], size: int = ROWS_PER_BATCH) -> Iterator[Batch]:
        """The rows that are whole, with what is wrong with the others in `lost`."""
        whole: list[RawRow] = []
        for row in self._survey():
            if isinstance(row, str):
                lost.append(row)
            elif fault := row_fault(self.header, row, self._as_text(row.metadata)):
                lost.append(_named(row, fault))
            else:
                whole.append(row)
            if len(whole) == size:
                yield self._batch(whole)
                whole = []
        if whole:
            yield self._batch(whole)

    def _batch(self, rows: list[RawRow]) -> Batch:
        return Batch(keys_of(rows), [described(row) for row in rows], self._packed(rows))

    @contextmanager
    def salvage(self) -> Iterator[Salvage]:
        """What can be read of this store, and what cannot."""
        with self.reading():
            lost: list[str] = []
            yield Salvage(self.name, self.header, self._salvaged(lost), lost)

    def _packed(self, rows: Sequence[Sequence[Any]]) -> Packed:
        """The second column, embeddings, as `(n, width)`; the third are their checksums."""
        for row in rows:
            if fault := embedding_fault(self.header, row[1], row[2]):
                raise self._damaged([f"row {row[0]}: {fault}"])
        content = b"".join(row[1] for row in rows)
        packed = np.frombuffer(content, FLOAT).reshape(len(rows), self.header.width).copy()
        if len(wrong := np.flatnonzero(~np.isfinite(packed).all(1))):  # as it was written, by somebody else
            row = rows[wrong[0]]
            raise self._damaged([f"row {row[0]}: {value_fault(self.header, row[1])}"])
        return packed


def _named(row: RawRow, fault: str) -> str:
    return f"row {row.key} ({row.id!r}): {fault}" if isinstance(row.id, str) else f"row {row.key}: {fault}"


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


def check_version(version: object, name: str, readable: Sequence[int] = READABLE) -> None:
    """Refuse a store whose tables this version of hedged cannot read.

    Args:
        version: That the store states.
        name: Of the store, for messages.
        readable: The versions that can be read.
    """
    if version not in readable:
        *others, last = map(str, readable)
        raise StoreError(
            f"{name} is of version {version}, this version of hedged reads versions {', '.join(others)} and {last}: "
            "use the version that wrote it, or build the store again"
        )


def read_header(columns: Mapping[str, Any], name: str) -> Header:
    """The header of a store, from the row of its table `store`; stores of version 1 have a column for each value.

    Args:
        columns: The row, by column.
        name: Of the store, for messages.
    """
    advice = f"restore a backup, or keep its rows with `hedged index repair {name} NEW --model RUN`"
    if "checksum" in columns:
        stated = columns["checksum"], header_checksum(str(columns.get("uuid")), str(columns.get("header")))
        if stated[0] != stated[1]:
            raise StoreError(f"{name} is damaged (its header is not what was written): {advice}")
    try:
        if "header" in columns:
            return Header.restore(parse_json(columns["header"]))
        return Header.restore({key: columns[key] for key in columns if key not in ("uuid", "version")})
    except (ValueError, TypeError, KeyError) as error:
        raise StoreError(f"{name} is damaged (its header cannot be read): {advice}") from error


def keys_of(rows: Sequence[Sequence[Any]]) -> Keys:
    """The first column of a result, as keys.

    Args:
        rows: The result.
    """
    return np.array([row[0] for row in rows], dtype=np.int64)


def _short(text: str) -> str:
    return text if len(text) <= MAX_VALUE else f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
