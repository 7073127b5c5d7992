"""Pairs against the plain definition: every pair of the right kind, each as likely as the others."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedged.errors import DataError, ShapeError, ValueRangeError
from hedged.metrics import Pairs, all_pairs, balanced_pairs, random_pairs, score_pairs

SKEWED = np.array(["b", "a", "b", "c", "b", "a", "d"])  # 3, 2, 1, 1: the order of the items is not that of classes
labels = st.lists(st.integers(0, 4), min_size=3, max_size=30).filter(lambda y: 1 < len(set(y)) < len(y))


def drawn(pairs: Pairs) -> list[tuple[int, int]]:
    return list(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))


def assert_uniform(seen: list[tuple[int, int]], expected: set[tuple[int, int]]) -> None:
    """Each ordered pair within five standard deviations of its share, and nothing else."""
    mean = len(seen) / len(expected)
    counts = {pair: seen.count(pair) for pair in set(seen)}
    assert counts.keys() == expected
    assert max(abs(count - mean) for count in counts.values()) < 5 * np.sqrt(mean)


def test_balanced_pairs_are_uniform_over_matching_and_over_non_matching_pairs() -> None:
    pairs = balanced_pairs(SKEWED, count=12_000)
    ordered = set(permutations(range(len(SKEWED)), 2))
    matching = {(i, j) for i, j in ordered if SKEWED[i] == SKEWED[j]}
    assert_uniform(drawn(pairs)[:6_000], matching)
    assert_uniform(drawn(pairs)[6_000:], ordered - matching)


def test_random_pairs_are_uniform_over_distinct_items() -> None:
    pairs = random_pairs(SKEWED, count=10_000)
    assert_uniform(drawn(pairs), set(permutations(range(len(SKEWED)), 2)))


@given(y=labels, half=st.integers(1, 50), seed=st.integers(0, 9))
def test_balanced_pairs_hold_half_matches_of_distinct_items(y: list[int], half: int, seed: int) -> None:
    pairs = balanced_pairs(y, count=2 * half, seed=seed)
    assert len(pairs) == 2 * half
    assert pairs.matches.sum() == half
    assert all(i != j and (y[i] == y[j]) == match for (i, j), match in zip(drawn(pairs), pairs.matches, strict=True))


@given(y=labels)
def test_all_pairs_are_the_combinations(y: list[int]) -> None:
    pairs = all_pairs(y)
    assert drawn(pairs) == list(combinations(range(len(y)), 2))
    assert pairs.matches.tolist() == [a == b for a, b in combinations(y, 2)]


def test_a_seed_fixes_the_pairs() -> None:
    for draw in (balanced_pairs, random_pairs):
        assert drawn(draw(SKEWED, 100, seed=1)) == drawn(draw(SKEWED, 100, seed=1))
        assert drawn(draw(SKEWED, 100, seed=1)) != drawn(draw(SKEWED, 100, seed=2))
        assert drawn(draw(SKEWED, 100, seed=1)) == drawn(draw(SKEWED, 100, seed=np.random.default_rng(1)))


@pytest.mark.parametrize("chunk", [1, 7, 21, 1000])
def test_scores_do_not_depend_on_the_chunk(chunk: int) -> None:
    pairs = all_pairs(SKEWED)
    scores = score_pairs(pairs, lambda i, j: i * 10.0 + j, chunk)
    assert scores.tolist() == [i * 10 + j for i, j in drawn(pairs)]


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(DataError, match="no matching or no non-matching pair"):
        balanced_pairs([1, 2, 3])
    with pytest.raises(DataError, match="3 items of 1 classes"):
        balanced_pairs([1, 1, 1])
    with pytest.raises(ValueRangeError, match="count is 7; half the pairs match"):
        balanced_pairs([1, 1, 2], count=7)
    with pytest.raises(ValueRangeError, match="count is 0"):
        random_pairs([1, 2], count=0)
    with pytest.raises(DataError, match="one item makes no pair"):
        all_pairs([1])
    with pytest.raises(DataError, match="labels is empty"):
        random_pairs([])
    with pytest.raises(ShapeError, match=r"labels has shape \(1, 2\)"):
        balanced_pairs([[1, 2]])
    with pytest.raises(ShapeError, match="lengths differ: scores 1, pairs 3"):
        score_pairs(all_pairs([1, 1, 2]), lambda i, j: [0.5])
    with pytest.raises(ShapeError, match="first 2, second 2, matches 1"):
        Pairs(np.array([0, 1]), np.array([1, 0]), np.array([True]))
