"""Search in the embedded store: the exact ranking by match probability, whatever was written in between."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from search.gallery import KINDS, MODEL, Make, embeddings, header_of, rows

from hedged import best_matches, match_matrix, self_mismatch
from hedged.distributions import Distribution
from hedged.errors import ConfigError, ShapeError, ValueRangeError
from hedged.search import FaissIndex, Hit, Plan, Rows, SqliteStore, Store, Where, parse_where
from hedged.search.engines._first_stage import FirstStage
from hedged.search.engines._index_file import file_of
from hedged.search.engines._stages import ByNearness
from hedged.search.index import Kind


def exhaustive(store: Store, probes: Distribution, k: int, keep: set[str] | None = None) -> list[list[str]]:
    """Ids of the best matches, by the match probability of every row: what a search must find."""
    batches = list(store.batches())
    ids = [row.id for batch in batches for row in batch.described]
    z = store.header.unpack(np.concatenate([batch.packed for batch in batches]))
    kept = [i for i, one in enumerate(ids) if keep is None or one in keep]
    found = best_matches(probes, z[torch.tensor(kept)], store.header.match_model, k=min(k, len(kept)))
    return [[ids[kept[i]] for i in row] for row in found.items.tolist()]


def ids_of(found: list[list[Hit]]) -> list[list[str]]:
    return [[hit.id for hit in hits] for hits in found]


@pytest.fixture
def sqlite(make_sqlite: Make, request: pytest.FixtureRequest) -> SqliteStore:
    store = make_sqlite(getattr(request, "param", "gaussian"))
    assert isinstance(store, SqliteStore)
    return store


@pytest.mark.parametrize("sqlite", KINDS, indirect=True)
@pytest.mark.parametrize("stage", ["exact", "hnsw", "ivf"])
def test_it_finds_what_the_whole_matrix_finds(sqlite: SqliteStore, stage: Kind) -> None:
    kind = sqlite.header.kind
    sqlite.add(rows(kind, 3000))
    probes = embeddings(kind, 20, seed=1)
    found = FaissIndex(sqlite, Plan(stage, lists_searched=64)).search(probes, k=10)
    wanted = exhaustive(sqlite, probes, 10)
    share = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(ids_of(found), wanted, strict=True)])
    assert share == 1.0 if stage == "exact" and kind == "point" else share > 0.97
    everything = FaissIndex(sqlite).search(probes, k=10, candidates=3000)
    assert ids_of(everything) == wanted


def test_results_tell_what_was_found(sqlite: SqliteStore) -> None:
    given, probes = rows("gaussian", 100), embeddings("gaussian", 3, seed=1)
    sqlite.add(given)
    found = FaissIndex(sqlite).search(probes, k=4)
    curve = sqlite.header.match_model
    p = match_matrix(probes, given.z, curve)
    eta, own = (self_mismatch(z.to(torch.float64), curve) for z in (given.z, probes))
    for n, hits in enumerate(found):
        assert [hit.rank for hit in hits] == [1, 2, 3, 4]
        for hit in hits:
            i = int(hit.id.removeprefix("row "))
            assert hit.match_probability == pytest.approx(p[n, i].item(), rel=1e-3)
            assert hit.uncertainty == pytest.approx(eta[i].item())
            assert hit.probe_uncertainty == pytest.approx(own[n].item())
            assert (hit.label, hit.metadata) == (given.described()[i].label, given.described()[i].metadata)
        assert [h.match_probability for h in hits] == sorted((h.match_probability for h in hits), reverse=True)


@pytest.mark.parametrize("candidates", [None, 3])
def test_filters_come_before_ranking(sqlite: SqliteStore, candidates: int | None) -> None:
    """A row that passes is found however many that do not pass are nearer."""
    sqlite.add(rows("gaussian", 1000))
    probes = embeddings("gaussian", 5, seed=1)
    index = FaissIndex(sqlite)
    for where, keep in (
        (["parity=1"], {f"row {i}" for i in range(1, 1000, 2)}),
        (["label=label 7"], {f"row {i}" for i in range(70, 79)}),
        (["label=label 7", "even=true"], {f"row {i}" for i in range(70, 79, 2)}),
    ):
        found = index.search(probes, 3, [parse_where(text) for text in where], candidates)
        assert {hit.id for hits in found for hit in hits} <= keep
        assert all(len(hits) == 3 for hits in found)
        if len(keep) < 500:
            assert candidates or ids_of(found) == exhaustive(sqlite, probes, 3, keep)
    assert index.search(probes, 3, [Where("parity", "2")]) == [[]] * 5
    with pytest.raises(ConfigError, match="filter by one of"):
        index.search(probes, 3, [Where("nothing", "1")])


def test_among_equals_the_one_added_first_comes_first(sqlite: SqliteStore) -> None:
    z = embeddings("gaussian", 1)
    same = torch.zeros(50, dtype=torch.int64)
    sqlite.add(Rows([f"{99 - i}" for i in range(50)], z[same], MODEL))
    assert ids_of(FaissIndex(sqlite).search(z, 3)) == [["99", "98", "97"]]


def test_few_rows_and_none(sqlite: SqliteStore) -> None:
    probes, kinds = embeddings("gaussian", 2, seed=1), get_args(Kind)
    for kind in kinds:
        assert FaissIndex(sqlite, Plan(kind)).search(probes) == [[], []]
    sqlite.add(rows("gaussian", 3))
    for kind in kinds:
        assert [len(hits) for hits in FaissIndex(sqlite, Plan(kind)).search(probes)] == [3, 3]


@pytest.mark.parametrize("stage", ["exact", "hnsw", "ivf"])
@settings(max_examples=8)
@given(seed=st.integers(0, 2**31))
def test_an_updated_index_finds_what_a_new_one_finds(
    tmp_path_factory: pytest.TempPathFactory, stage: Kind, seed: int
) -> None:
    path, generator = tmp_path_factory.mktemp("history") / "a.db", np.random.default_rng(seed)
    with SqliteStore.create(path, header_of("gaussian")) as store:
        index, probes = FaissIndex(store, Plan(stage, lists_searched=10_000)), embeddings("gaussian", 3, seed=1)
        for _ in range(6):
            first, count = int(generator.integers(0, 150)), int(generator.integers(1, 100))
            if generator.random() < 0.6:
                store.upsert(rows("gaussian", count, int(generator.integers(1000)), first))
            else:
                store.remove([f"row {i}" for i in range(first, first + count)])
            if generator.random() < 0.2:
                index.save()
                index = FaissIndex(store, index.plan)
            found = index.search(probes, 5, candidates=20)
            assert len(index) == store.count()
            if stage == "exact":
                file_of(path).unlink(missing_ok=True)
                assert found == FaissIndex(store).search(probes, 5, candidates=20)
            alive = set(store.keys().tolist())
            assert all(hit.key in alive for hits in found for hit in hits)
            everything = index.search(probes, 5, candidates=1000)
            assert ids_of(everything) == (exhaustive(store, probes, 5) if alive else [[]] * 3)


def test_sync_says_what_it_did(sqlite: SqliteStore) -> None:
    sqlite.add(rows("gaussian", 100))
    index = FaissIndex(sqlite, Plan("hnsw"))
    assert index.sync() == "current"
    sqlite.add(rows("gaussian", 10, first=100))
    assert index.sync() == "updated"
    sqlite.remove([f"row {i}" for i in range(10)])
    assert index.sync() == "updated"
    sqlite.remove([f"row {i}" for i in range(40)])
    assert index.sync() == "rebuilt"


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("stage", ["exact", "hnsw"])
def test_a_sync_that_is_cut_short_loses_no_row(
    sqlite: SqliteStore, stage: Kind, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    sqlite.add(rows("gaussian", 200))
    index, probes = FaissIndex(sqlite, Plan(stage)), embeddings("gaussian", 5, seed=1)
    sqlite.upsert(rows("gaussian", 30, seed=2, first=190))

    def cut_short(*_: object) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(ByNearness if stage == "exact" else FirstStage, "add", cut_short)
        with pytest.raises(error):
            index.search(probes, k=10)
    anew = FaissIndex(sqlite, Plan(stage))
    assert index.search(probes, k=10, candidates=50) == anew.search(probes, k=10, candidates=50)
    assert len(index) == len(anew) == 220


def test_the_file_is_used_only_if_it_is_of_this_stores_past(sqlite: SqliteStore, tmp_path: Path) -> None:
    probes = embeddings("gaussian", 3, seed=1)
    sqlite.add(rows("gaussian", 50))
    sqlite.close()
    backup = shutil.copy(sqlite.path, tmp_path / "backup")
    with SqliteStore(sqlite.path) as store:
        store.add(rows("gaussian", 50, seed=1, first=50))
        FaissIndex(store).save()
    shutil.copy(backup, sqlite.path)
    with SqliteStore(sqlite.path) as store:  # as many writes as the file knows, but other ones
        store.add(rows("gaussian", 40, seed=2, first=50))
        index = FaissIndex(store)
        assert len(index) == 90
        assert ids_of(index.search(probes, 5)) == exhaustive(store, probes, 5)


@pytest.mark.parametrize("damage", ["truncated", "nonsense", "empty"])
def test_a_damaged_index_file_is_made_again(sqlite: SqliteStore, damage: str) -> None:
    sqlite.add(rows("gaussian", 50))
    index = FaissIndex(sqlite)
    index.save()
    file, probes = file_of(sqlite.path), embeddings("gaussian", 3, seed=1)
    whole = file.read_bytes()
    file.write_bytes({"truncated": whole[: len(whole) // 2], "nonsense": b"x" * len(whole), "empty": b""}[damage])
    again = FaissIndex(sqlite)
    assert again.search(probes) == index.search(probes)
    again.keep()
    assert len(file.read_bytes()) == len(whole)


def test_the_file_keeps_the_first_stage_that_was_chosen(sqlite: SqliteStore) -> None:
    sqlite.add(rows("gaussian", 200))
    FaissIndex(sqlite, Plan("hnsw", links=8)).keep()
    assert FaissIndex(sqlite).plan == Plan("hnsw", links=8)
    index = FaissIndex(sqlite, Plan("ivf"))
    index.keep()
    assert FaissIndex(sqlite).plan == Plan("ivf")


def test_what_cannot_be_searched_is_refused(sqlite: SqliteStore) -> None:
    index = FaissIndex(sqlite)
    with pytest.raises(ShapeError, match="searched with lists of gaussian embeddings in 4 dimensions"):
        index.search(embeddings("point", 2))
    with pytest.raises(ShapeError, match="in 4 dimensions"):
        index.search(embeddings("gaussian", 2, dim=3))
    for k, candidates in ((0, None), (1, 0)):
        with pytest.raises(ValueRangeError, match="at least 1"):
            index.search(embeddings("gaussian", 2), k, candidates=candidates)
    with pytest.raises(ConfigError, match="no first stage 'magic'"):
        Plan("magic")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="links must be at least 1"):
        Plan("hnsw", links=0)
    with pytest.raises(ConfigError, match="a filter reads key=value"):
        parse_where("beagle")
