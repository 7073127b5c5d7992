"""The interface of every store: rows are added, replaced, removed, filtered and read in batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Self, final

from hedged.search.rows import Batch, Described, Header, Keys, Rows
from hedged.search.where import Filter, refuse_unknown

BATCH = 4096  # rows read at a time


class Store(ABC):
    """Embeddings of one model with ids, labels and metadata, on a disk or a server.

    When a method that writes returns, what it wrote is on disk, all of it; if it raises, nothing of it is. Rows have
    keys, integers that are never used again. A store is used by one thread; others open it for themselves.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Where the store is, for messages."""

    @property
    @abstractmethod
    def header(self) -> Header:
        """What all its embeddings have in common."""

    @final
    def add(self, rows: Rows) -> None:
        """Add rows whose ids are new."""
        self.header.check(rows.z, rows.fingerprint)
        self._write(rows, replace=False)

    @final
    def upsert(self, rows: Rows) -> None:
        """Add rows, and replace those whose ids are there already."""
        self.header.check(rows.z, rows.fingerprint)
        self._write(rows, replace=True)

    @abstractmethod
    def remove(self, ids: Iterable[str]) -> int:
        """Remove the rows with these ids, and tell how many there were."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[None]:
        """All that is read inside is of one moment, whatever is written meanwhile."""

    @final
    def count(self, where: Filter = ()) -> int:
        """How many rows pass a filter."""
        with self.reading():
            self.check(where)
            return self._count(where)

    @final
    def keys(self, where: Filter = ()) -> Keys:
        """The keys of the rows that pass a filter, rising."""
        with self.reading():
            self.check(where)
            return self._keys(where)

    @final
    def batches(self, where: Filter = (), size: int = BATCH) -> Iterator[Batch]:
        """The rows that pass a filter, in the order of their keys, all of one moment."""
        with self.reading():
            self.check(where)
            yield from self._batches(where, size)

    @abstractmethod
    def describe(self, keys: Sequence[int]) -> Mapping[int, Described]:
        """What is told of the rows with these keys; those that were removed are left out."""

    @abstractmethod
    def label_count(self) -> int:
        """How many different labels there are."""

    @abstractmethod
    def verify(self) -> None:
        """Read everything, and raise an error if anything is not as it was written."""

    @abstractmethod
    def metadata_keys(self) -> list[str]:
        """The keys that the metadata of some row have."""

    @final
    def check(self, where: Filter) -> None:
        """Refuse a filter on a key that no row has."""
        for key, _ in where:
            if key not in ("id", "label") and not self._has_key(key):
                refuse_unknown(key, self.metadata_keys(), self.name)

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def _write(self, rows: Rows, replace: bool) -> None: ...

    @abstractmethod
    def _count(self, where: Filter) -> int: ...

    @abstractmethod
    def _keys(self, where: Filter) -> Keys: ...

    @abstractmethod
    def _batches(self, where: Filter, size: int) -> Iterator[Batch]: ...

    @abstractmethod
    def _has_key(self, key: str) -> bool: ...
