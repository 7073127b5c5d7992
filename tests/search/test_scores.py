"""Engines compute the log-odds themselves, as Python does, and rank by them; what cannot be written is refused."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from search.gallery import MODEL, Make, embeddings, header_of, rows
from search.scoring import CASES, CURVE, Case, ClickHouse, DuckDB, PostgreSQL, USearch, header_for, needed, python

from hedged import Evidence, FullGaussian, Gaussian, LowRankGaussian, MatchCurve, Point
from hedged.distributions import Distribution
from hedged.errors import ConfigError, MissingDependencyError, ShapeError, ValueRangeError
from hedged.match import score
from hedged.match._closed_form.loops import gaussians
from hedged.search import Header, PostgresIndex, PostgresStore, Rows, ScanIndex, engine_score, usearch_metric

PAIRS, ITEMS = 1000, 20_000  # pairs of each case: 10,000 in all


@pytest.fixture(params=["duckdb", "clickhouse", "usearch", pytest.param("postgresql", marks=pytest.mark.postgres)])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "postgresql":
        return PostgreSQL(request.getfixturevalue("server"))
    return {"duckdb": DuckDB, "clickhouse": ClickHouse, "usearch": USearch}[request.param](tmp_path)


def tolerance(engine: object) -> float:
    """Relative; distances of usearch are in single precision."""
    return 1e-3 if isinstance(engine, USearch) else 1e-6


def errors(engine: Any, case: Case, count: int) -> float:
    """The largest relative error in log-odds."""
    z1, z2 = case.given(count, 1), case.given(count, 2)
    header = header_for(z1, case.model)
    wanted = python(header, z1, z2)
    found = dict(engine.ranked(header, z1, z2))
    assert sorted(found) == list(range(count))
    got = np.array([found[i] for i in range(count)])
    return float((np.abs(got - wanted) / np.abs(wanted)).max())


@pytest.mark.parametrize("name", ["extreme gaussians", "evidence of rare inputs"])
def test_an_engine_computes_the_same_log_odds(engine: Any, name: str) -> None:
    assert errors(engine, CASES[name], 200) <= tolerance(engine)


@pytest.mark.heavy
@pytest.mark.parametrize("name", CASES)
def test_ten_thousand_pairs_have_the_same_log_odds(engine: Any, name: str) -> None:
    worst = errors(engine, CASES[name], PAIRS)
    print(f"{type(engine).__name__}, {name}: {worst:.1e}")
    assert worst <= tolerance(engine)


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["gaussians", "evidence"])
def test_twenty_thousand_items_have_the_same_ranks(engine: Any, name: str) -> None:
    """Items that are there twice are in the order of keys; others change places only where log-odds are the same."""
    case = CASES[name]
    items = case.given(ITEMS, 3)
    twice = torch.arange(ITEMS)
    twice[1::100] = twice[::100]
    items, probes = items.take(twice), case.given(4, 4).take(torch.zeros(ITEMS, dtype=torch.int64))
    header = header_for(items, case.model)
    wanted = python(header, probes, items)
    best = np.lexsort((np.arange(ITEMS), -wanted))
    if isinstance(engine, USearch):
        rows = engine.scanned(header, probes[:1], items)
    else:
        rows = engine.ranked(header, probes, items)
    found = np.array([key for key, _ in rows])
    apart = np.abs(wanted[found] - wanted[best]) / np.abs(wanted[best])
    assert apart.max() <= (1e-6 if isinstance(engine, USearch) else 1e-12)
    same = wanted[twice == np.arange(ITEMS)]
    print(f"{type(engine).__name__}, {name}: {np.mean(found == best):.4f} of ranks the same; {len(same):,} items")
    place = np.empty(ITEMS, dtype=np.int64)
    place[found] = np.arange(ITEMS)
    assert (place[::100] < place[1::100]).all()


def test_usearch_walks_its_graph_by_match_probability() -> None:
    needed("usearch")
    from usearch.index import Index

    z, probes = embeddings("gaussian", 2000, dim=8), embeddings("gaussian", 20, seed=1, dim=8)
    header = Header.for_embeddings(z, MODEL, CURVE)
    graph = Index(ndim=header.width, dtype="f32", metric=usearch_metric(header))
    packed = z.pack().numpy()
    graph.add(np.arange(len(z)), packed)
    wanted = CURVE.requires_grad_(False).matrix(probes.to(torch.float64), z.to(torch.float64))
    best = wanted.topk(10)
    exact = graph.search(probes.pack().numpy(), 10, exact=True)
    np.testing.assert_allclose(-exact.distances, best.values, rtol=1e-3)
    found = graph.search(probes.pack().numpy(), 10)
    shares = [len({*a.tolist()} & {*b.tolist()}) / 10 for a, b in zip(found.keys, best.indices, strict=True)]
    assert np.mean(shares) >= 0.95


def test_vespa_gets_a_rank_profile_of_the_same_formula() -> None:
    """It is not run by Vespa: its functions are worked out here as they are written."""
    case = CASES["gaussians"]
    z1, z2 = case.given(20, 1), case.given(20, 2)
    header = header_for(z1, case.model)
    text = engine_score(header, "vespa")
    assert text.startswith("# Written by hedged, and not run.")
    assert "query(mean) tensor<float>(d[20])" in text
    functions = re.findall(r"function (\w+)\(\) {\n +expression: (.*)\n", text)
    wanted = python(header, z1, z2)
    for i in range(20):
        values = [part[i, 0].double().numpy() for z in (z1, z2) for part in z.parts()]
        given = {"query(mean)": 0, "query(variance)": 1, "attribute(mean)": 2, "attribute(variance)": 3}
        names: dict[str, Any] = {
            "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "sinh": np.sinh, "min": np.minimum, "max": np.maximum,
            "choose": np.where, "d": 0, "sum": 0, "reduce": lambda x, how, along: x.sum(), "given": values,
        }  # fmt: skip
        for called, expression in functions:
            for one, place in given.items():
                expression = expression.replace(one, f"given[{place}]")
            names[called] = eval(expression.replace("if(", "choose("), names)
        assert names["hedged_log_odds"] == pytest.approx(wanted[i], rel=1e-9)


PROFILE = """\
# Written by hedged, and not run. The schema has attribute(mean) of type tensor<float>(d[3]) and \
attribute(variance) of type tensor<float>(d[3]).
# The first phase ranks what nearestNeighbor finds in the field mean.
rank-profile hedged {
    inputs {
        query(mean) tensor<float>(d[3])
        query(variance) tensor<float>(d[3])
    }
    function hedged_t() {
        expression: (query(variance) + ((1.0e0 - query(variance)) * attribute(variance)))
    }
    function hedged_factors() {
        expression: reduce(((((((attribute(variance) * query(mean)) * query(mean)) + \
((query(variance) * attribute(mean)) * attribute(mean))) - \
((query(mean) - attribute(mean)) * (query(mean) - attribute(mean)))) / hedged_t) - log(hedged_t)), sum, d)
    }
    function hedged_log_mean() {
        expression: (0.5e0 * hedged_factors)
    }
    function hedged_factor() {
        expression: hedged_log_mean
    }
    function hedged_log_odds() {
        expression: (0.0e0 + (1.0e0 * hedged_factor))
    }
    first-phase {
        expression: closeness(field, mean)
    }
    second-phase {
        expression: hedged_log_odds
        rerank-count: 1000
    }
}
"""


def test_the_whole_profile_for_vespa_by_evidence() -> None:
    z = Gaussian(torch.zeros(1, 3), torch.ones(1, 3))
    assert engine_score(Header.for_embeddings(z, MODEL, Evidence()), "vespa") == PROFILE


@pytest.mark.parametrize("name", CASES)
def test_every_case_is_written_for_vespa(name: str) -> None:
    case = CASES[name]
    text = engine_score(header_for(case.given(1, 1), case.model), "vespa")
    called = set(re.findall(r"\bhedged_\w+", text))
    assert called == set(re.findall(r"function (hedged_\w+)\(\)", text))
    assert text.count("{") == text.count("}")


def test_what_no_engine_computes_is_refused() -> None:
    turned = FullGaussian(torch.zeros(1, 2), torch.eye(2).unsqueeze(0))
    with pytest.raises(ShapeError, match="got a FullGaussian: search in a store of hedged"):
        engine_score(Header.for_embeddings(turned, MODEL, CURVE), "duckdb")
    z = Gaussian(torch.zeros(1, 2), torch.ones(1, 2))
    with pytest.raises(ValueRangeError, match="between −100 and 100, got 101"):
        engine_score(Header.for_embeddings(z, MODEL, MatchCurve(1.0, 101.0)), "duckdb")
    with pytest.raises(ValueRangeError, match="a Point claims infinite evidence"):
        engine_score(Header.for_embeddings(Point(torch.zeros(1, 2)), MODEL, Evidence()), "duckdb")
    rare = CASES["evidence of mixtures"].given(1, 1)
    with pytest.raises(ShapeError, match=r"how rare an input is for Gaussians, got .* of 2 components"):
        engine_score(Header.for_embeddings(rare, MODEL, Evidence(rarity=1.0)), "duckdb")
    with pytest.raises(ConfigError, match="no engine 'oracle': choose one of postgresql, clickhouse, duckdb, vespa"):
        engine_score(Header.for_embeddings(z, MODEL, CURVE), "oracle")


def test_without_usearch_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "usearch.index", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'hedged\[usearch\]'"):
        usearch_metric(header_of("gaussian"))


def test_a_usearch_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needed("usearch"), "__version__", "2.9.1")
    with pytest.raises(MissingDependencyError, match=r"usearch 2\.9\.1 is too old, 2\.26 or later is needed: pip"):
        usearch_metric(header_of("gaussian"))


def test_the_formula_is_cut_where_the_loops_are() -> None:
    assert float(gaussians.MOST) == score.MOST
    assert -gaussians._LOWEST64 == score.LEAST_POWER
    assert np.exp(-score.LEAST_TERM) == pytest.approx(gaussians._LEAST64)


@pytest.mark.postgres
@pytest.mark.parametrize("kind", ["point", "gaussian", "mixture"])
def test_only_results_cross_the_network(make_postgres: Make, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = make_postgres(kind)
    assert isinstance(store, PostgresStore)
    store.add(rows(kind, 500))
    assert store.log_odds
    fetched: list[int] = []
    fetch = PostgresStore.embeddings

    def counted(store: PostgresStore, keys: list[int]) -> Any:
        fetched.append(len(keys))
        return fetch(store, keys)

    monkeypatch.setattr(PostgresStore, "embeddings", counted)
    probes = embeddings(kind, 1, seed=1)
    assert PostgresIndex(store, exact=True).search(probes, 7) == ScanIndex(store).search(probes, 7)
    assert fetched == [7]


@pytest.mark.postgres
@pytest.mark.parametrize("kind", ["turned", "evidence of rare inputs"])
def test_a_server_ranks_what_it_can_and_leaves_the_rest(server: str, kind: str) -> None:
    if kind == "turned":
        mean, own = torch.randn(300, 4), torch.rand(300, 4) + 0.01
        z: Distribution = LowRankGaussian(mean, own, 0.3 * torch.randn(300, 1, 4))
        model: Any = CURVE
    else:
        z, model = CASES[kind].given(300, 5), CASES[kind].model
    with PostgresStore.create(f"{server}#leaves_{kind.partition(' ')[0]}", header_for(z, model)) as store:
        store.add(Rows([f"row {i}" for i in range(300)], z, MODEL))
        assert (store.log_odds is None) == (kind == "turned")
        assert PostgresIndex(store, exact=True).search(z[:3], 5) == ScanIndex(store).search(z[:3], 5)


@pytest.mark.postgres
def test_a_store_of_version_3_is_ranked_by_the_client_and_grows(make_postgres: Make, server: str) -> None:
    store = make_postgres("gaussian")
    store.add(rows("gaussian", 50))
    assert isinstance(store, PostgresStore)
    store._connection.execute("ALTER TABLE item DROP COLUMN numbers")
    store._connection.execute("UPDATE store SET version = 3")
    with PostgresStore(f"{server}#{store.name.partition('#')[2]}") as old:
        assert old.log_odds is None
        old.add(rows("gaussian", 50, first=50))
        old.verify()
        probes = embeddings("gaussian", 3, seed=1)
        assert PostgresIndex(old, exact=True).search(probes, 5) == ScanIndex(old).search(probes, 5)


@pytest.mark.postgres
def test_numbers_that_are_not_the_embedding_are_found(make_postgres: Make) -> None:
    store = make_postgres("gaussian")
    store.add(rows("gaussian", 3))
    assert isinstance(store, PostgresStore)
    store._connection.execute("UPDATE item SET numbers[1] = numbers[1] + 1 WHERE id = 'row 1'")
    with pytest.raises(Exception, match="row 2: the numbers that it is ranked by are not its embedding"):
        store.verify()
