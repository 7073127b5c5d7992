"""The first stage that looks at means and variances: its formula, its codes in two bytes, and what a search finds."""

from __future__ import annotations

import sys
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from laws import seeded
from search.gallery import MODEL, Make, header_of, rows
from search.gallery import embeddings as in_clusters

from hedged import Evidence, Gaussian, MatchCurve, MatchModel, Mixture, Point, _startup, best_matches
from hedged.bench.search import embeddings
from hedged.match.nearness import Nearness
from hedged.search import FaissIndex, Header, Plan, Rows, SqliteStore, Where
from hedged.search.engines import _codes, _stages
from hedged.search.engines._codes import Codes
from hedged.search.index import CANDIDATES, CANDIDATES_BY_NEARNESS

CURVE = MatchCurve().requires_grad_(False)
EVIDENCE = Evidence(log_odds=-1.0, temper=0.7).requires_grad_(False)


def posteriors(count: int, dim: int, seed: int, identities: int = 50) -> Gaussian:
    """Embeddings as `Evidence` takes them: shrunk to the prior as far as they are unsure."""
    generator = seeded(seed)
    centres = torch.randn(identities, dim, generator=seeded(9))
    variance = 10 ** (-3 * torch.rand(count, dim, generator=generator))
    who = torch.randint(identities, (count,), generator=generator)
    noise = (variance * (1 - variance)).sqrt() * torch.randn(count, dim, generator=generator)
    return Gaussian((1 - variance) * centres[who] + noise, variance)


def near(model: MatchModel, z: Gaussian | Mixture) -> Nearness:
    found = model.nearness(z)
    assert found is not None
    return found


def singles(z: Gaussian) -> tuple[np.ndarray, np.ndarray]:
    return z.mean.float().numpy(), z.variance.float().numpy()


def by_sorting(cost: Nearness, z: Gaussian, count: int) -> list[set[int]]:
    costs = cost.costs(*(part.astype(np.float64) for part in singles(z)))[:, 0]
    return [set(row.tolist()) for row in costs.argsort(axis=1)[:, :count]]


def share_found(found: np.ndarray, wanted: list[set[int]]) -> float:
    return float(np.mean([len(set(a.tolist()) & b) / len(b) for a, b in zip(found, wanted, strict=True)]))


def test_of_evidence_it_is_the_log_factor_but_for_a_constant() -> None:
    probes, items = posteriors(4, 5, 1), posteriors(30, 5, 2)
    costs = near(EVIDENCE, probes).costs(items.mean.double().numpy(), items.variance.double().numpy())[:, 0]
    wide = [Gaussian(z.mean.double(), z.variance.double()) for z in (probes, items)]
    logits = EVIDENCE.matrix(*wide).numpy() / 0.7
    constant = costs + logits
    np.testing.assert_allclose(constant, np.broadcast_to(constant[:, :1], constant.shape), atol=1e-4)


@pytest.mark.parametrize("bias", [-3.0, 0.0, 3.0, 12.0])
def test_of_a_curve_it_is_a_term_of_the_closed_form(bias: float) -> None:
    """The log of a Gaussian of the distance, averaged over both embeddings, by sampling."""
    curve = MatchCurve(2.0, bias).requires_grad_(False)
    probe = Gaussian(torch.tensor([[0.3, -0.2]]), torch.tensor([[0.02, 0.1]]))
    items = Gaussian(torch.tensor([[0.5, 0.1], [-0.4, 0.0]]), torch.tensor([[0.2, 0.01], [0.05, 0.3]]))
    cost = near(curve, probe)
    alone = near(curve, Gaussian(probe.mean, torch.full((1, 2), 1e-12)))
    width = alone.pull[0, 0, 0] / 4  # c a² with a = 2
    found = cost.costs(*(part.astype(np.float64) for part in singles(items)))[0, 0]
    apart = (probe.sample(2**20, seeded(0)) - items.sample(2**20, seeded(1))).square().sum(-1)
    wanted = -(-4 * width * apart.double()).exp().mean(0).log().numpy()
    constant = wanted - found
    assert constant[0] == pytest.approx(constant[1], abs=0.01)
    assert constant[0] == pytest.approx(0.5 * np.log1p(2 * width * 4 * probe.variance.numpy()).sum(), abs=0.01)


def test_what_has_no_form_of_it_says_so() -> None:
    assert CURVE.nearness(Point(torch.zeros(1, 3))) is None
    mixture = near(CURVE, Mixture(torch.zeros(2, 3, 4), torch.ones(2, 3, 4)))
    assert mixture.centre.shape == (2, 3, 4)


@pytest.mark.parametrize("dim", [1, 4, 7, 20, 130])
@pytest.mark.parametrize("model", [CURVE, EVIDENCE])
def test_codes_find_what_the_formula_finds(model: MatchModel, dim: int) -> None:
    items, probes = posteriors(3000, dim, 3), posteriors(8, dim, 4)
    cost = near(model, probes)
    found = Codes(*singles(items)).nearest(cost, 50, None)
    assert found.shape == (8, 50)
    assert all(len(set(row.tolist())) == 50 for row in found)
    assert share_found(found, by_sorting(cost, items, 40)) > 0.99


@pytest.mark.parametrize("probes", [1, 5])
def test_threads_that_share_the_blocks_find_the_same(probes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    codes, cost = Codes(*singles(posteriors(5000, 6, 3))), near(CURVE, posteriors(probes, 6, 4))
    alone = codes.nearest(cost, 30, None)
    monkeypatch.setattr(_codes, "ROWS_PER_THREAD", 300)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    shared = codes.nearest(cost, 30, None)
    assert [set(row) for row in shared.tolist()] == [set(row) for row in alone.tolist()]


def test_codes_that_grow_find_what_new_ones_find() -> None:
    items, cost = posteriors(4000, 6, 3), near(CURVE, posteriors(5, 6, 4))
    mean, variance = singles(items)
    codes = Codes(mean[:1000], variance[:1000])
    for first in range(1000, 4000, 700):
        codes.add(mean[first : first + 700], variance[first : first + 700])
    assert len(codes) == 4000
    assert share_found(codes.nearest(cost, 50, None), by_sorting(cost, items, 40)) > 0.99


def test_only_what_is_allowed_is_found_and_never_more_than_there_is() -> None:
    items, cost = posteriors(2000, 6, 3), near(CURVE, posteriors(3, 6, 4))
    codes, allowed = Codes(*singles(items)), np.zeros(2000, np.bool_)
    allowed[[5, 700, 1999]] = True
    found = codes.nearest(cost, 10, allowed)
    assert [sorted(set(row.tolist())) for row in found] == [[-1, 5, 700, 1999]] * 3
    everything = codes.nearest(cost, 2000, None)
    assert [sorted(row.tolist()) for row in everything] == [list(range(2000))] * 3


def test_rows_far_outside_are_found_by_all_and_spoil_nothing() -> None:
    items, probes = posteriors(3000, 6, 3), posteriors(5, 6, 4)
    mean, variance = singles(items)
    mean[7, 2], mean[8], variance[9, 1] = 1e15, -1e30, 1e9
    codes, cost = Codes(mean, variance), near(CURVE, probes)
    found = codes.nearest(cost, 50, None)
    assert all({7, 8, 9} <= set(row.tolist()) for row in found)
    assert all((np.unique(row[row >= 0], return_counts=True)[1] == 1).all() for row in found)
    wanted = cost.costs(mean.astype(np.float64), variance.astype(np.float64))[:, 0].argsort(axis=1)[:, :40]
    assert share_found(found, [set(row.tolist()) for row in wanted]) > 0.99
    far = Gaussian(torch.full((1, 6), -1e30), torch.full((1, 6), 0.1))
    assert 8 in codes.nearest(near(CURVE, far), 10, None)[0]


def test_rows_that_are_all_alike_are_found_in_their_order() -> None:
    mean, variance = np.full((1000, 3), 0.1, np.float32), np.full((1000, 3), 0.2, np.float32)
    found = Codes(mean, variance).nearest(near(CURVE, posteriors(1, 3, 4)), 20, None)
    assert set(found[0].tolist()) == set(range(20))


@pytest.mark.parametrize("model", [CURVE, EVIDENCE])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_hundred_candidates_hold_the_ten_best(
    model: MatchModel, compiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 20,000, variances over four decades: the exhaustive ranking is the truth."""
    monkeypatch.setattr(_stages, "needs_loops", lambda terms: compiled)
    kind = embeddings if model is CURVE else None
    items = kind(20_000, 20_000, 0) if kind else posteriors(20_000, 20, 0, identities=2000)
    probes = kind(20_000, 30, 1) if kind else posteriors(30, 20, 1, identities=2000)
    with SqliteStore.create(tmp_path / "a.db", Header.for_embeddings(items[:1], MODEL, model)) as store:
        store.add(Rows([str(i) for i in range(len(items))], items, MODEL))
        index = FaissIndex(store)
        assert index.enough == CANDIDATES_BY_NEARNESS == 100
        found = np.array([[hit.key - 1 for hit in hits] for hits in index.search(probes, 10)])
    truth = best_matches(probes, items, model, 10).items.tolist()
    assert share_found(found, [set(row) for row in truth]) >= 0.99


@pytest.mark.parametrize("kind", ["gaussian", "mixture"])
def test_codes_follow_the_store(make_sqlite: Make, kind: str) -> None:
    """Whatever is added, replaced and removed between searches; and by a filter."""
    store, probes, generator = make_sqlite(kind), in_clusters(kind, 4, seed=1), np.random.default_rng(0)
    assert isinstance(store, SqliteStore)
    store.add(rows(kind, 500))
    index = FaissIndex(store)
    for step in range(12):
        first, count = int(generator.integers(0, 900)), int(generator.integers(1, 120))
        if step % 3 == 2:
            store.remove([f"row {i}" for i in range(first, first + count)])
        else:
            store.upsert(rows(kind, count, step, first))
        alive = set(store.keys().tolist())
        for where in ((), [Where("parity", "1")]):
            passing = set(store.keys(where).tolist())
            everything = index.search(probes, 5, where, candidates=len(alive))
            found = index.search(probes, 5, where, candidates=60)
            assert {hit.key for hits in found for hit in hits} <= passing
            keys, best = ([{hit.key for hit in hits} for hits in each] for each in (found, everything))
            assert np.mean([len(a & b) / len(b) for a, b in zip(keys, best, strict=True)]) > 0.9
        assert len(index) == len(alive)


def test_models_without_it_and_points_are_searched_by_means(make_sqlite: Make) -> None:
    store = make_sqlite("point")
    assert isinstance(store, SqliteStore)
    store.add(rows("point", 1500))
    assert FaissIndex(store).enough == CANDIDATES
    gaussians = Header.for_embeddings(posteriors(1, 3, 0), MODEL, CURVE)
    assert header_of("gaussian").kind == gaussians.kind
    assert _stages.stage_for(Plan("hnsw"), gaussians, np.ones((3, 6), np.float32)).enough == CANDIDATES


def test_rows_are_sorted_as_they_are_only_by_a_command_in_a_hurry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NumPy takes twenty times as long as the codes; it spares a short command the loading of compiled loops."""
    items, probe = embeddings(20_000, 20_000, 0), embeddings(20_000, 1, 1)
    by_sorting = Mock(wraps=_stages._by_sorting)
    monkeypatch.setattr(_stages, "_by_sorting", by_sorting)
    with SqliteStore.create(tmp_path / "a.db", Header.for_embeddings(items[:1], MODEL, CURVE)) as store:
        store.add(Rows([str(i) for i in range(len(items))], items, MODEL))
        index = FaissIndex(store)
        coded = [[hit.key for hit in index.search(probe, 10)[0]] for _ in range(2)]
        by_sorting.assert_not_called()
        monkeypatch.setattr(_startup, "_budget", _startup._Budget(2**21))
        monkeypatch.delitem(sys.modules, "numba")
        hurried = [[hit.key for hit in index.search(probe, 10)[0]] for _ in range(4)]
    assert by_sorting.call_count == 2  # 2 · 20 · 20,000 terms each, until the loops are worth their loading
    assert coded + hurried == [coded[0]] * 6


def test_of_few_rows_all_are_ranked(make_sqlite: Make) -> None:
    store, probes = make_sqlite("gaussian"), in_clusters("gaussian", 5, seed=1)
    assert isinstance(store, SqliteStore)
    given = rows("gaussian", 900)
    store.add(given)
    index = FaissIndex(store)
    assert index.enough == CANDIDATES
    found = [[hit.key - 1 for hit in hits] for hits in index.search(probes, 10)]
    assert found == best_matches(probes, given.z, store.header.match_model, 10).items.tolist()
