"""Agreement of clusters with identities, against a loop over all pairs and items."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score  # type: ignore[import-untyped]

from hedged.errors import DataError, ShapeError
from hedged.metrics import adjusted_rand_index, bcubed_f1, pairwise_f1

METRICS = (adjusted_rand_index, pairwise_f1, bcubed_f1)
partitions = st.integers(2, 12).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 4), min_size=n, max_size=n) for _ in range(2)])
)


@given(partitions)
def test_pairs_and_items_are_counted_as_by_hand(both: tuple[list[int], list[int]]) -> None:
    identities, clusters = both
    pairs = list(combinations(range(len(identities)), 2))
    one = {(i, j) for i, j in pairs if identities[i] == identities[j]}
    together = {(i, j) for i, j in pairs if clusters[i] == clusters[j]}
    expected = 2 * len(one & together) / (len(one) + len(together)) if one or together else 1
    assert pairwise_f1(identities, clusters) == pytest.approx(expected)
    assert adjusted_rand_index(identities, clusters) == pytest.approx(adjusted_rand_score(identities, clusters))
    precision, recall = [], []
    for i in range(len(identities)):
        mine = {j for j in range(len(identities)) if identities[j] == identities[i]}
        beside = {j for j in range(len(identities)) if clusters[j] == clusters[i]}
        precision.append(len(mine & beside) / len(beside))
        recall.append(len(mine & beside) / len(mine))
    p, r = np.mean(precision), np.mean(recall)
    assert bcubed_f1(identities, clusters) == pytest.approx(2 * p * r / (p + r))


@given(partitions, st.permutations(range(5)))
def test_names_of_clusters_do_not_matter(both: tuple[list[int], list[int]], names: list[int]) -> None:
    identities, clusters = both
    for metric in METRICS:
        assert metric(identities, [f"{names[c]}" for c in clusters]) == pytest.approx(metric(identities, clusters))
        assert metric(identities, identities) == pytest.approx(1)


def test_what_does_not_fit_is_refused() -> None:
    for metric in METRICS:
        with pytest.raises(ShapeError, match="lengths differ"):
            metric([1, 2], [1])
        with pytest.raises(DataError, match="empty"):
            metric([], [])
