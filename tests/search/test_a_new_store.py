"""A new kind of store is a class in a file of its own: this one keeps rows in memory, and nothing else knows of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import ClassVar, Self, final

import numpy as np
import pytest
import torch
from search.gallery import MODEL, embeddings, header_of, rows
from search.test_stores import content, expected

from hedged import Architecture, Embedder, Gallery, best_matches
from hedged.errors import ConfigError, DataError, StoreError
from hedged.search import (
    Batch,
    Described,
    Header,
    Plan,
    Rows,
    SqliteStore,
    Store,
    Where,
    create_store,
    open_store,
    refuse_existing,
)
from hedged.search.rows import Filter, Keys, Packed


@final
class ToyStore(Store, scheme="toy"):
    """Rows in the memory of this process, by name: `toy://name`."""

    made: ClassVar[dict[str, ToyStore]] = {}

    def __init__(self, location: str, header: Header) -> None:
        self._location, self._header = location, header
        self._rows: dict[int, tuple[Described, Packed]] = {}
        self._next = 1

    @classmethod
    def open(cls, location: str) -> ToyStore:
        if location not in cls.made:
            raise StoreError(f"there is no store {location}")
        return cls.made[location]

    @classmethod
    def create(cls, location: str, header: Header) -> Self:
        cls.refuse_existing(location)
        store = cls(location, header)
        cls.made[location] = store
        return store

    @classmethod
    def refuse_existing(cls, location: str) -> None:
        if location in cls.made:
            raise StoreError(f"{location} exists already")

    @property
    def name(self) -> str:
        return self._location

    @property
    def header(self) -> Header:
        return self._header

    def remove(self, ids: Iterable[str]) -> int:
        unwanted = set(ids)
        keys = [key for key, (row, _) in self._rows.items() if row.id in unwanted]
        for key in keys:
            del self._rows[key]
        return len(keys)

    def reading(self) -> AbstractContextManager[None]:
        return nullcontext()

    def describe(self, keys: Sequence[int]) -> Mapping[int, Described]:
        return {key: self._rows[key][0] for key in keys if key in self._rows}

    def label_count(self) -> int:
        return len({row.label for row, _ in self._rows.values() if row.label is not None})

    def verify(self) -> None:
        """Nothing can go wrong."""

    def metadata_keys(self) -> list[str]:
        return sorted({key for row, _ in self._rows.values() for key in row.metadata})

    def close(self) -> None:
        """Nothing to let go of."""

    def _write(self, rows: Rows, replace: bool) -> None:
        keys = {row.id: key for key, (row, _) in self._rows.items()}
        if not replace and keys.keys() & set(rows.ids):
            raise DataError(f"{self.name} holds some of these ids already")
        for row, packed in zip(rows.described(), rows.packed(), strict=True):
            key = keys.get(row.id)
            if key is None:
                key, self._next = self._next, self._next + 1
            self._rows[key] = row, packed

    def _count(self, where: Filter) -> int:
        return len(self._keys(where))

    def _keys(self, where: Filter) -> Keys:
        passing = [key for key, (row, _) in self._rows.items() if all(one.passes(row) for one in where)]
        return np.array(sorted(passing), dtype=np.int64)

    def _batches(self, where: Filter, size: int) -> Iterator[Batch]:
        keys = self._keys(where)
        for start in range(0, len(keys), size):
            some = keys[start : start + size]
            found = [self._rows[key] for key in some.tolist()]
            yield Batch(some, [row for row, _ in found], np.stack([packed for _, packed in found]))

    def _has_key(self, key: str) -> bool:
        return key in self.metadata_keys()


@pytest.fixture(autouse=True)
def forget() -> None:
    ToyStore.made.clear()


def test_it_is_found_by_its_address() -> None:
    made = create_store("toy://a", header_of("gaussian"))
    assert open_store("toy://a") is made
    with pytest.raises(StoreError, match="exists already"):
        refuse_existing("toy://a")
    with pytest.raises(
        StoreError, match=r"no kind of store for milvus://.* or one of lance://, postgres://, postgresql://, toy://"
    ):
        open_store("milvus://a")


def test_it_keeps_and_filters_rows_as_every_store() -> None:
    store, some = create_store("toy://a", header_of("mixture")), rows("mixture", 30)
    store.add(some)
    assert content(store) == expected(some)
    assert store.count([Where("even", "true"), Where("label", "label 1")]) == 5
    store.upsert(rows("mixture", 10, seed=1, first=25))
    assert store.count() == 35
    assert store.remove(["row 3", "nobody"]) == 1
    with pytest.raises(ConfigError, match="filter by one of even, number, parity, label, id"):
        store.count([Where("breed", "beagle")])


@pytest.mark.parametrize("kind", ["point", "gaussian", "mixture"])
def test_search_finds_what_it_finds_in_a_file(kind: str, tmp_path: Path) -> None:
    toy, given, probes = create_store("toy://a", header_of(kind)), rows(kind, 300), embeddings(kind, 5, seed=1)
    toy.add(given)
    with SqliteStore.create(tmp_path / "a.db", header_of(kind)) as sqlite:
        sqlite.add(given)
        for where in ((), [Where("parity", "1")]):
            assert toy.index().search(probes, 7, where) == sqlite.index().search(probes, 7, where, candidates=300)
    best = best_matches(probes, given.z, toy.header.match_model, k=3).items.tolist()
    assert [[int(hit.id.removeprefix("row ")) for hit in hits] for hits in toy.index(Plan()).search(probes, 3)] == best
    with pytest.raises(ConfigError, match="has no first stage hnsw"):
        toy.index(Plan("hnsw"))


def test_a_gallery_in_it() -> None:
    embedder = Embedder.new(Architecture(dim=2, shape=(1, 28, 56)), seed=0)
    images = torch.rand(12, 1, 28, 56, generator=torch.Generator().manual_seed(0))
    with Gallery.create("toy://dogs", embedder) as gallery:
        gallery.add(images, labels=["ann", "bob"] * 6)
    with Gallery.open("toy://dogs", embedder) as gallery:
        assert [hits[0].rank for hits in gallery.search(images[:3], k=2)] == [1, 1, 1]
        assert {each.label for each in gallery.identify(images[:1])[0].best} == {"ann", "bob"}
    assert open_store("toy://dogs").header.fingerprint == embedder.fingerprint() != MODEL
