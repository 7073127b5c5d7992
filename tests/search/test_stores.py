"""Laws of every store, embedded or on a server."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from search.gallery import KINDS, MODEL, Make, embeddings, rows

from hedged import Gaussian, Point
from hedged.errors import ConfigError, DataError, ShapeError
from hedged.search import Rows, Store, Where


def content(store: Store) -> dict[str, tuple[object, ...]]:
    """All that a store holds, by id."""
    return {
        row.id: (row.label, dict(row.metadata), tuple(numbers.tolist()))
        for batch in store.batches(size=7)
        for row, numbers in zip(batch.described, batch.packed, strict=True)
    }


def expected(*given: Rows) -> dict[str, tuple[object, ...]]:
    return {
        row.id: (row.label, dict(row.metadata), tuple(numbers.tolist()))
        for part in given
        for row, numbers in zip(part.described(), part.packed(), strict=True)
    }


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_added_is_there_to_the_last_bit(make: Make, kind: str) -> None:
    store, some, more = make(kind), rows(kind, 30), rows(kind, 20, seed=1, first=30)
    assert store.count() == 0
    assert list(store.batches()) == []
    store.add(some)
    store.add(more)
    assert content(store) == expected(some, more)
    packed = np.concatenate([batch.packed for batch in store.batches(size=7)])
    z = store.header.unpack(packed)
    assert type(z) is type(some.z)
    assert torch.equal(z[:30].pack(), some.z.pack())
    store.verify()


def test_upsert_replaces_and_adds(make: Make) -> None:
    store, old, new = make("gaussian"), rows("gaussian", 30), rows("gaussian", 20, seed=1, first=20)
    store.add(old)
    keys = store.keys()
    store.upsert(new)
    assert content(store) == expected(old, new)
    assert store.count() == 40
    assert set(keys) <= set(store.keys())  # a row keeps its key
    store.upsert(Rows(["row 3"], new.z[:1], MODEL, metadata=[{"colour": "red"}]))
    assert store.count([Where("colour", "red")]) == 1
    assert store.count([Where("number", "3")]) == 0  # what it had before is gone
    store.verify()


def test_remove(make: Make) -> None:
    store = make("gaussian")
    store.add(rows("gaussian", 30))
    last = max(store.keys())
    assert store.remove(["row 3", "row 29", "nobody"]) == 2
    assert store.remove(["row 3"]) == 0
    assert store.count() == 28
    assert "row 3" not in content(store)
    store.add(rows("gaussian", 1, first=29))
    assert max(store.keys()) > last  # keys are not used again
    assert store.count([Where("number", "3")]) == 0
    store.verify()


def test_filters(make: Make) -> None:
    store = make("gaussian")
    store.add(rows("gaussian", 30))
    for where, numbers in (
        ([], range(30)),
        ([Where("parity", "1")], range(1, 30, 2)),
        ([Where("even", "true")], range(0, 30, 2)),
        ([Where("label", "label 1")], range(10, 19)),
        ([Where("label", "label 1"), Where("parity", "0")], range(10, 19, 2)),
        ([Where("id", "row 4")], [4]),
        ([Where("parity", "2")], []),
        ([Where("label", "label 1"), Where("number", "3")], []),
    ):
        found = [row.metadata["number"] for batch in store.batches(where) for row in batch.described]
        assert found == list(numbers)
        assert store.count(where) == len(store.keys(where)) == len(numbers)
    assert store.metadata_keys() == ["even", "number", "parity"]
    assert store.label_count() == 3


def test_a_filter_on_an_unknown_key_says_which_there_are(make: Make) -> None:
    store = make("gaussian")
    store.add(rows("gaussian", 3))
    for ask in (store.count, store.keys, lambda where: list(store.batches(where))):
        with pytest.raises(
            ConfigError, match=r"no row of .* has the key 'breed': filter by one of even, number, parity"
        ):
            ask([Where("breed", "beagle")])


def test_an_id_that_is_there_already_is_refused_and_nothing_added(make: Make) -> None:
    store = make("gaussian")
    store.add(rows("gaussian", 10))
    before = content(store)
    with pytest.raises(DataError, match=r"holds 'row 5' already, and 4 more .* nothing was added"):
        store.add(rows("gaussian", 10, seed=1, first=5))
    assert content(store) == before


def test_embeddings_of_another_model_kind_or_dimension_are_refused(make: Make) -> None:
    store, z = make("gaussian"), embeddings("gaussian", 2)
    assert isinstance(z, Gaussian)
    for write in (store.add, store.upsert):
        with pytest.raises(DataError, match="built with the model 0123456789abcdef, not with ffff"):
            write(Rows(["a", "b"], z, "ffff"))
        with pytest.raises(ShapeError, match="lists of gaussian embeddings in 4 dimensions"):
            write(Rows(["a", "b"], Point(z.mean), MODEL))
        with pytest.raises(ShapeError, match="lists of gaussian embeddings in 4 dimensions"):
            write(Rows(["a", "b"], embeddings("gaussian", 2, dim=3), MODEL))
    assert store.count() == 0


def test_a_moment_lasts_while_it_is_read(make: Make) -> None:
    store = make("gaussian")
    store.add(rows("gaussian", 10))
    with store.reading():
        assert store.count() == 10
        assert len(store.describe(store.keys().tolist())) == 10
    assert store.describe([10**9]) == {}


def test_text_of_any_kind_comes_back(make: Make) -> None:
    store = make("point")
    words = ["'; DROP TABLE item; --", "ü € 😀", '"quoted" \\ %s ?', " ", "a" * 1000]
    metadata = [{word: word, "list": [1, {"x": None}], "n": 0.1, "long": "b" * 5000} for word in words]
    store.add(Rows(words, embeddings("point", 5), MODEL, words, metadata))
    assert {row.id: row.metadata for batch in store.batches() for row in batch.described} == dict(
        zip(words, metadata, strict=True)
    )
    for word in words:
        assert store.count([Where(word, word), Where("label", word), Where("id", word)]) == 1
    assert store.count([Where("list", '[1, {"x": null}]')]) == 5
    assert store.count([Where("long", "b" * 5000)]) == 5
    assert store.remove(words) == 5


@pytest.mark.parametrize(
    ("ids", "labels", "metadata", "words"),
    [
        (["a"], [], [], "got 1 ids for"),
        (["a", "a"], [], [], "the id 'a' is given twice"),
        (["a", ""], [], [], "the id of a row must be text of 1 to 2000 bytes, got ''"),
        (["a", "b" * 3000], [], [], "the id of a row must be text"),
        (["a", "b\0"], [], [], "the id of a row must be text"),
        (["a", "\udcff"], [], [], "the id of a row must be text"),
        (["a", "b"], ["x"], [], "got 1 labels for 2 rows"),
        (["a", "b"], ["x", ""], [], "the label of a row must be text"),
        (["a", "b"], [], [{}, {"label": 1}], "'label' cannot be a key of metadata"),
        (["a", "b"], [], [{}, {"a=b": 1}], "'a=b' cannot be a key of metadata"),
        (["a", "b"], [], [{}, {"a": float("nan")}], "the metadata of 'b' are not JSON"),
        (["a", "b"], [], [{}, {"a": object()}], "the metadata of 'b' are not JSON"),
        (["a", "b"], [], [{}, {"a": "\0"}], "characters that no database keeps"),
    ],
)
def test_rows_that_cannot_be_stored(
    ids: list[str], labels: list[str], metadata: list[dict[str, object]], words: str
) -> None:
    with pytest.raises((DataError, ShapeError), match=words):
        Rows(ids, embeddings("gaussian", 2), MODEL, labels, metadata)
