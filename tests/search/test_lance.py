"""What a store in Lance tables does beyond the laws of all stores."""

from __future__ import annotations

import os
import shutil
import signal
from multiprocessing.context import ForkServerContext
from pathlib import Path

import lancedb
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from races import forkserver, race
from search.gallery import KINDS, Make, embeddings, header_of, rows
from search.recall import recall_of
from search.test_races import BATCHES, add, build, ids_in, ids_of
from search.test_stores import content, expected
from search.writing import add_until_killed

from hedged.errors import ConfigError, MissingDependencyError, StoreError
from hedged.search import LanceStore, Plan, SqliteStore, Store, Where, create_store, open_store, repair_store
from hedged.search.engines._checks import checksum
from hedged.search.rows import as_json

EXACT = Plan("exact")


@pytest.fixture(scope="module")
def context() -> ForkServerContext:
    return forkserver()


@pytest.fixture
def place(tmp_path: Path) -> str:
    return f"lance://{tmp_path}/dogs"


def table_of(place: str, name: str = "item") -> lancedb.table.Table:
    return lancedb.connect(place.removeprefix("lance://")).open_table(name)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_embedding_is_searched_as_in_sqlite(make_lance: Make, make_sqlite: Make, kind: str) -> None:
    lance, sqlite, probes = make_lance(kind), make_sqlite(kind), embeddings(kind, 5, seed=1)
    assert lance.index().search(probes) == [[]] * 5
    for store in (lance, sqlite):
        store.add(rows(kind, 400))
        store.upsert(rows(kind, 300, seed=1, first=300))
        store.remove(["row 7", "row 333"])
    for where in ([], [Where("parity", "1")], [Where("label", "label 3"), Where("even", "true")]):
        found = (store.index().search(probes, 5, where, candidates=50) for store in (lance, sqlite))
        assert [[hit.id for hit in hits] for hits in next(found)] == [[hit.id for hit in hits] for hits in next(found)]


def test_a_lancedb_that_is_too_old_is_refused_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lancedb, "__version__", "0.9.0")
    for use in (open_store, lambda where: create_store(where, header_of("gaussian"))):
        (tmp_path / "dogs").mkdir(exist_ok=True)
        with pytest.raises(MissingDependencyError, match=r"lancedb 0\.9\.0 is too old, 0\.40 or later is needed: pip"):
            use(f"lance://{tmp_path}/dogs")
        (tmp_path / "dogs").rmdir()


def test_lists_find_most_and_what_is_added_later(make_lance: Make) -> None:
    store, probes = make_lance("gaussian"), embeddings("gaussian", 20, seed=1)
    store.add(rows("gaussian", 3000))
    assert isinstance(store, LanceStore)
    assert not store.has_lists()
    index = store.index(Plan("ivf", lists_searched=8))
    store.add(rows("gaussian", 500, seed=2, first=3000))
    assert store.has_lists()
    exact = store.index(EXACT).search(probes, 10, candidates=200)
    assert recall_of(index.search(probes, 10, candidates=200), exact) > 0.9
    assert recall_of(store.index().search(probes, 10, candidates=200), exact) > 0.9
    index.keep()
    assert store.index(EXACT).search(probes, 10, candidates=200) == exact
    with pytest.raises(ConfigError, match="no first stage hnsw"):
        store.index(Plan("hnsw"))


def test_readers_see_one_moment(make_lance: Make) -> None:
    store = make_lance("gaussian")
    store.add(rows("gaussian", 10))
    before = store.moment()
    assert before == store.moment()
    with open_store(store.name) as reader:
        with reader.reading():
            assert reader.count() == 10
            store.upsert(rows("gaussian", 10, seed=1, first=5))
            assert reader.count() == 10
            assert content(reader) == expected(rows("gaussian", 10))
        assert reader.count() == 15
        with reader.reading(), pytest.raises(StoreError, match="cannot be written while it is read from"):
            reader.add(rows("gaussian", 1, first=90))
    assert store.moment() != before


def test_what_is_not_there_or_there_already(place: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no store lance://"):
        open_store(place)
    assert list(tmp_path.iterdir()) == []
    create_store(place, header_of("gaussian")).close()
    with pytest.raises(StoreError, match="exists already"):
        create_store(place, header_of("gaussian"))
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.png").write_bytes(b"")
    with pytest.raises(StoreError, match="exists already"):
        create_store(f"lance://{tmp_path}/photos", header_of("gaussian"))
    with pytest.raises(StoreError, match="cannot be read or written"):
        open_store(f"lance://{tmp_path}/photos")
    with pytest.raises(StoreError, match="names no folder"):
        open_store("lance://")


def test_what_was_not_finished_is_built_anew(place: str) -> None:
    create_store(place, header_of("point")).close()
    lancedb.connect(place.removeprefix("lance://")).drop_table("store")
    with create_store(place, header_of("gaussian")) as store:
        store.add(rows("gaussian", 3))
        assert store.count() == 3


def test_a_version_of_the_future_is_refused(place: str) -> None:
    create_store(place, header_of("gaussian")).close()
    table_of(place, "store").update(values={"version": 99})
    with pytest.raises(StoreError, match="is of version 99, this version of hedged reads"):
        open_store(place)


def test_a_store_that_is_deleted_and_built_anew(place: str) -> None:
    store = create_store(place, header_of("gaussian"))
    store.add(rows("gaussian", 3))
    shutil.rmtree(place.removeprefix("lance://"))
    for fails in (store.count, lambda: store.add(rows("gaussian", 3, first=3)), lambda: store.remove(["row 1"])):
        with pytest.raises(StoreError, match="was deleted since it was opened"):
            fails()
    create_store(place, header_of("gaussian")).close()
    with pytest.raises(StoreError, match="was deleted"):
        store.add(rows("gaussian", 3))
    assert ids_of(place) == set()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"embedding": [1.0] * 8}, "its embedding is not what was written"),
        ({"label": "Bo"}, "its id, label or metadata are not what was written"),
        ({"tags": ["parity=7"]}, "its metadata and what filters look up differ"),
        ({"mean_0": [0.0] * 4}, "the means that it is found by are not those of its embedding"),
    ],
)
def test_damage_is_named_and_what_is_whole_is_kept(
    place: str, tmp_path: Path, change: dict[str, object], words: str
) -> None:
    with create_store(place, header_of("gaussian")) as store:
        store.add(rows("gaussian", 10))
        store.verify()
        table_of(place).update(where="id = 'row 4'", values=change)
        with pytest.raises(StoreError, match=rf"is damaged: .*\n  row 5 \('row 4'\): {words}"):
            store.verify()
    for into in (tmp_path / "new.db", f"lance://{tmp_path}/new"):
        repaired = repair_store(place, into)
        assert (repaired.kept, len(repaired.lost)) == (9, 1)
        with open_store(into) as new:
            new.verify()
            assert "row 4" not in content(new)


def test_a_value_that_cannot_be_is_told_where_it_is_read(place: str) -> None:
    """Even if its checksum is right, as somebody else may write it."""
    with create_store(place, header_of("gaussian")) as store:
        store.add(rows("gaussian", 10))
        (batch,) = store.batches()
        numbers, row = batch.packed[4].copy(), batch.described[4]
        numbers[0] = np.inf
        right = checksum(numbers.tobytes(), row.id, row.label, as_json(row.metadata))
        table = table_of(place)
        (written,) = (one for one in table.to_arrow().to_pylist() if one["id"] == "row 4")
        table.delete("id = 'row 4'")
        table.add(pa.Table.from_pylist([written | {"embedding": numbers.tolist(), "checksum": right}], table.schema))
        with pytest.raises(StoreError, match=r"(?s)is damaged.*row 5: .*NaN"):
            list(store.batches())


def test_a_damaged_header_is_refused(place: str) -> None:
    create_store(place, header_of("gaussian")).close()
    table_of(place, "store").update(values={"header": "{}"})
    with pytest.raises(StoreError, match="its header is not what was written"):
        open_store(place)


def test_two_that_add_both_keep_all_they_acknowledged(context: ForkServerContext, place: str) -> None:
    create_store(place, header_of("gaussian")).close()
    outcomes = race(context, add, (place, 0), (place, 5))
    assert [outcome.refusal for outcome in outcomes] == ["", ""]
    assert ids_of(place) == ids_in([0, 1, 2, 5, 6, 7])
    with open_store(place) as store:
        assert len(set(store.keys().tolist())) == store.count()
        store.verify()


def test_of_two_that_build_one_store_one_is_refused(context: ForkServerContext, place: str, tmp_path: Path) -> None:
    outcomes = race(context, build, (place, 0), (place, 10))
    ((done,), (refused,)) = ([o for o in outcomes if o.done], [o for o in outcomes if o.refusal])
    assert f"process {done.process} on host" in refused.refusal or "exists already" in refused.refusal
    assert ids_of(place) == ids_in(done.done)
    assert len(done.done) == BATCHES
    assert [path.name for path in tmp_path.iterdir()] == ["dogs"]


def test_nothing_acknowledged_is_lost_when_a_writer_is_killed(context: ForkServerContext, place: str) -> None:
    create_store(place, header_of("gaussian")).close()
    for number in range(3):
        listen, tell = context.Pipe(duplex=False)
        writer = context.Process(target=add_until_killed, args=(place, 100 * number, tell))
        writer.start()
        acknowledged = [listen.recv() for _ in range(2 + number)]
        os.kill(writer.pid or 0, signal.SIGKILL)
        writer.join()
        with open_store(place) as store:
            assert ids_in(acknowledged) <= ids_of(place)
            assert store.count() % 25 == 0  # no batch is half there
            store.verify()


def test_a_writer_who_waits_too_long_is_refused(context: ForkServerContext, place: str) -> None:
    create_store(place, header_of("gaussian")).close()
    listen, tell = context.Pipe(duplex=False)
    writer = context.Process(target=hold, args=(place, tell))
    writer.start()
    listen.recv()
    with open_store(place) as store:
        store.wait_at_most(0.2)
        with pytest.raises(StoreError, match=f"process {writer.pid} on host .* writes to lance://"):
            store.add(rows("gaussian", 3))
    os.kill(writer.pid or 0, signal.SIGKILL)
    writer.join()


def hold(place: str, tell: object) -> None:
    with LanceStore(place) as store, store._writing():
        tell.send(True)  # type: ignore[attr-defined]
        signal.pause()


def test_keys_that_another_took_are_not_given_twice(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are no locks, as on object storage, one of two writers is refused."""
    remote = place.replace("lance://", "lance://file://")
    with create_store(remote, header_of("gaussian")) as store, open_store(remote) as other:
        assert isinstance(store, LanceStore)
        before = store._said()
        other.add(rows("gaussian", 3))
        monkeypatch.setattr(store, "_said", lambda: before)
        with pytest.raises(StoreError, match="another process writes to lance://file:///"):
            store.add(rows("gaussian", 3, first=3))
        monkeypatch.undo()
        store.add(rows("gaussian", 3, first=3))
        assert store.keys().tolist() == [1, 2, 3, 4, 5, 6]


def test_the_same_from_sqlite(make_lance: Make, make_sqlite: Make) -> None:
    stores: list[Store] = [make_lance("mixture"), make_sqlite("mixture")]
    for store in stores:
        store.add(rows("mixture", 30))
    assert isinstance(stores[1], SqliteStore)
    assert content(stores[0]) == content(stores[1])
