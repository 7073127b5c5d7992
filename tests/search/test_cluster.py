"""Who is the same among unlabelled items: merging against an explicit loop, and probabilities that come true."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import seeded
from search.gallery import KINDS, Make, embeddings, rows

from hedged import Evidence, Gaussian, MatchCurve, MatchModel, Mixture, Point
from hedged._odds import expit
from hedged.distributions import Distribution
from hedged.errors import DataError, ShapeError, ValueRangeError
from hedged.metrics import adjusted_rand_index
from hedged.search import Clusters, Where, cluster, find_clusters, merging, read_clusters

EVIDENCE = Evidence().requires_grad_(False)
CURVE = MatchCurve().requires_grad_(False)


def people(identities: int, of_each: int, noise: float, seed: int = 0, dim: int = 6) -> Gaussian:
    """Posteriors of identities drawn from N(0, I), each seen several times with noise of its own size."""
    generator = seeded(seed)
    z = torch.randn(identities, 1, dim, generator=generator)
    spread = noise**2 * 4 ** torch.randn(identities, of_each, 1, generator=generator).expand(-1, -1, dim)
    seen = z + spread.sqrt() * torch.randn(identities, of_each, dim, generator=generator)
    variance = spread / (1 + spread)
    return Gaussian((seen * variance / spread).flatten(0, 1), variance.flatten(0, 1))


def slow_merging(z: Distribution, model: MatchModel, rate: float) -> set[frozenset[int]]:
    """All pairs of clusters anew, the two with the highest mean merged while it is positive; the best partition."""
    log_odds = model.matrix(z, z).double().numpy()
    matches = expit(log_odds + math.log(rate / (1 - rate)))
    clusters = [frozenset([i]) for i in range(len(z))]
    ways = [set(clusters)]
    while len(clusters) > 1:
        means = {pair: log_odds[np.ix_(*map(list, pair))].mean() for pair in combinations(clusters, 2)}
        a, b = max(means, key=lambda pair: means[pair])
        if means[a, b] <= 0:
            break
        clusters = [each for each in clusters if each not in (a, b)] + [a | b]
        ways.append(set(clusters))

    def expected_f1(way: set[frozenset[int]]) -> float:
        together = [pair for cluster in way for pair in combinations(sorted(cluster), 2)]
        expected = len(z) + 2 * sum(matches[pair] for pair in together)  # each item is together with itself
        return float(expected / (len(z) + len(together) + rate * len(z) * (len(z) - 1) / 2))

    return max(ways, key=expected_f1)


def as_sets(found: Clusters) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(found.numbers == k).tolist()) for k in range(len(found))}


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 999), noise=st.sampled_from([0.2, 0.6, 1.5]), rate=st.sampled_from([0.03, 0.3]))
def test_the_likeliest_are_merged_first(seed: int, noise: float, rate: float) -> None:
    z = people(3, 3, noise, seed).to(torch.float64)
    for model in (EVIDENCE, CURVE):
        assert as_sets(find_clusters(z, model, rate)) == slow_merging(z, model, rate)


def test_identities_are_found_and_the_base_rate_with_them() -> None:
    z, y = people(40, 8, noise=0.1, dim=12), np.repeat(np.arange(40), 8)
    found = find_clusters(z, EVIDENCE)
    assert adjusted_rand_index(y, found.numbers) > 0.95
    assert found.sizes.tolist() == sorted(found.sizes.tolist(), reverse=True)
    assert found.base_rate == pytest.approx(7 / 319, rel=0.2)


def test_the_surer_half_is_right_more_often() -> None:
    """Right: most of the others of the cluster show whom the item shows."""
    told, true = [], []
    for seed in range(3):
        z, y = people(30, 5, noise=0.8, seed=seed), np.repeat(np.arange(30), 5)
        found = find_clusters(z, EVIDENCE, 4 / 149)
        for i in range(150):
            others = [y[j] for j in range(150) if j != i and found.numbers[j] == found.numbers[i]]
            if others:
                told.append(found.probability[i])
                true.append(others.count(y[i]) > len(others) / 2)
    sure = np.array(told) > np.median(told)
    assert np.mean(np.array(true)[sure]) > np.mean(np.array(true)[~sure]) + 0.1


def test_probabilities_are_the_means_of_those_of_pairs() -> None:
    z, rate = people(3, 3, noise=0.7, seed=2).to(torch.float64), 0.2
    found = find_clusters(z, EVIDENCE, rate)
    matches = expit(EVIDENCE.matrix(z, z).double().numpy() + math.log(rate / (1 - rate)))
    groups = [np.flatnonzero(found.numbers == k) for k in range(len(found))]
    assert 1 < len(groups) < 9
    for i in range(9):
        means = {k: matches[i, group[group != i]].mean() for k, group in enumerate(groups) if set(group) != {i}}
        mine = int(found.numbers[i])
        own = means.pop(mine, None)
        assert found.elsewhere_probability[i] == pytest.approx(max(means.values()))
        assert means[int(found.elsewhere[i])] == max(means.values())
        assert found.probability[i] == pytest.approx(1 - max(means.values()) if own is None else own)
    for pair in found.alike:
        assert pair.first < pair.second
        assert pair.probability == pytest.approx(matches[np.ix_(groups[pair.first], groups[pair.second])].mean())
    assert len(found.alike) == len({pair[:2] for pair in found.alike}) > 0
    assert [pair.probability for pair in found.alike] == sorted((p.probability for p in found.alike), reverse=True)


def test_few_neighbours_and_few_pairs_at_a_time_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    z = people(40, 8, noise=0.1, dim=12)
    everybody = find_clusters(z, EVIDENCE)
    monkeypatch.setattr(cluster, "NEIGHBOURS", 5)
    monkeypatch.setattr(merging, "MOST_AT_ONCE", 7)
    assert as_sets(find_clusters(z, EVIDENCE)) == as_sets(everybody)


def test_mixtures_are_clustered_too() -> None:
    mean = torch.tensor([0.0, 0.1, 3.0])[:, None, None] + torch.tensor([[0.0], [0.05]])
    z = Mixture(mean, torch.full((3, 2, 1), 0.01))
    for model in (CURVE, EVIDENCE):
        assert find_clusters(z, model, 0.3).numbers.tolist() == [0, 0, 1]


def test_an_item_that_says_nothing_stays_alone_and_joins_no_others() -> None:
    z = people(10, 5, noise=0.2)
    mean, variance = torch.cat([z.mean, torch.zeros(1, 6)]), torch.cat([z.variance, torch.ones(1, 6)])
    with_nothing, without = find_clusters(Gaussian(mean, variance), EVIDENCE, 0.08), find_clusters(z, EVIDENCE, 0.08)
    assert np.flatnonzero(with_nothing.numbers == with_nothing.numbers[50]).tolist() == [50]
    assert as_sets(with_nothing) - {frozenset([50])} == as_sets(without)


def test_the_order_of_items_does_not_matter() -> None:
    z = people(10, 5, noise=0.5)
    order = np.random.default_rng(0).permutation(50)
    first, second = find_clusters(z, EVIDENCE), find_clusters(z[order], EVIDENCE)
    assert adjusted_rand_index(first.numbers[order], second.numbers) == 1
    np.testing.assert_allclose(first.probability[order], second.probability, rtol=1e-4)


def test_points_are_clustered_and_one_item_is_a_cluster() -> None:
    z = Point(torch.tensor([[0.0], [0.05], [3.0]]))
    assert find_clusters(z, CURVE, 0.3).numbers.tolist() == [0, 0, 1]
    (one,) = find_clusters(z[:1], CURVE).probability
    assert one == 1


def test_a_calibration_counts() -> None:
    z = people(10, 5, noise=0.5)
    found = find_clusters(z, EVIDENCE, 0.1, calibrated=lambda logits: 0 * logits)
    assert len(found) == 50


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_a_store(make: Make, kind: str) -> None:
    store = make(kind)
    with pytest.raises(DataError, match="nothing to cluster"):
        read_clusters(store)
    given_rows = rows(kind, 50)
    store.add(given_rows)
    found = read_clusters(store, base_rate=0.1)
    assert found.ids == list(given_rows.ids)
    direct = find_clusters(given_rows.z, store.header.match_model, 0.1)
    assert found.numbers.tolist() == direct.numbers.tolist()
    even = read_clusters(store, [Where("parity", "0")])
    assert even.ids == [f"row {i}" for i in range(0, 50, 2)]


def test_what_cannot_be_clustered_is_refused() -> None:
    z = embeddings("gaussian", 4)
    for rate in (0.0, 1.0, 2.0):
        with pytest.raises(ValueRangeError, match=f"between 0 and 1, got {rate:g}"):
            find_clusters(z, CURVE, rate)
    with pytest.raises(ShapeError, match="got 1 ids for 4 embeddings"):
        find_clusters(z, CURVE, ids=["a"])
    with pytest.raises(ShapeError, match="at least one embedding"):
        find_clusters(z[:0], CURVE)
    with pytest.raises(ShapeError, match="at least one embedding"):
        find_clusters(z[0], CURVE)
