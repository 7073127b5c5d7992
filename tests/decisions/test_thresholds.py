"""Thresholds against every threshold there is, resampling against pairs written out, intervals against the truth."""

from __future__ import annotations

import numpy as np
import pytest
from decisions.synthetic import embedded_pairs
from hypothesis import given
from hypothesis import strategies as st

from hedged.decisions import Interval, ScoredPairs, false_match_threshold
from hedged.decisions.thresholds import _Ranked
from hedged.errors import DataError, ValueRangeError
from hedged.metrics import balanced_pairs

scores = st.lists(st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0, 3.0]), min_size=1, max_size=30)


@given(scores, st.sampled_from([0.05, 0.1, 0.3, 0.9]))
def test_the_threshold_is_the_least_that_lets_few_enough_through(values: list[float], target: float) -> None:
    others = ScoredPairs.of(values, ["a"] * len(values), ["b"] * len(values))
    found = _Ranked.of(others).threshold(target, np.ones(2))
    s = np.array(values)
    assert np.mean(s >= found) <= target + 1e-12
    lower = s[s < found]
    if len(lower) and found > s.min():
        assert np.mean(s >= lower.max()) > target  # one step down lets too many through


def written_out(pairs: ScoredPairs, drawn: list[int]) -> ScoredPairs:
    """Every pair of the identities drawn, as often as they were drawn: slow and obvious."""
    rows = []
    for score, i, j in zip(pairs.logit, pairs.first, pairs.second, strict=True):
        times = drawn.count(i) if i == j else drawn.count(i) * drawn.count(j)
        rows += [(score, i, j)] * times
    return ScoredPairs(
        np.array([row[0] for row in rows], dtype=float),
        np.array([row[1] for row in rows], dtype=np.intp),
        np.array([row[2] for row in rows], dtype=np.intp),
        pairs.identities,
    )


@pytest.mark.parametrize("matching", [True, False])
def test_identities_drawn_more_than_once_count_more_than_once(matching: bool) -> None:
    pairs = embedded_pairs(seed=0, identities=10, each=3, pairs=120).of_kind(matching)
    rng = np.random.default_rng(0)
    for _ in range(10):
        drawn = rng.integers(10, size=10).tolist()
        counts = np.bincount(drawn, minlength=10).astype(float)
        explicit, ranked = written_out(pairs, drawn), _Ranked.of(pairs)
        assert ranked.total(counts) == len(explicit)
        for target in (0.02, 0.2, 0.6):
            found = ranked.threshold(target, counts)
            assert found == _Ranked.of(explicit).threshold(target, np.ones(10))
            assert ranked.share_from(found, counts) == pytest.approx(np.mean(explicit.logit >= found))


def test_the_interval_holds_the_rate_on_new_identities_and_one_over_pairs_would_not() -> None:
    """The law is known: new identities can be drawn at will. 40 times is enough to tell 0.95 from 0.6."""
    inside = inside_of_pairs = 0
    for seed in range(40):
        pairs, new = embedded_pairs(2 * seed), embedded_pairs(2 * seed + 1)
        found = false_match_threshold(pairs, target=0.02, repetitions=120)
        rate = float(np.mean(new.of_kind(False).logit >= found.score))
        assert found.rates.low < found.target < found.rates.high
        inside += rate in found.rates
        n = len(new) / 2
        spread = 1.96 * np.sqrt(2 * found.target * (1 - found.target) / n)  # of two samples of independent pairs
        inside_of_pairs += rate in Interval(found.target - spread, found.target + spread)
    assert inside >= 34
    assert inside_of_pairs < 30


@pytest.mark.heavy
@pytest.mark.parametrize("in_the_middle", [0.04, 0.1, 0.2])
def test_the_interval_holds_at_50_identities_of_which_few_are_taken_for_everybody(in_the_middle: float) -> None:
    """93 of 100 at least, of a level of 95 %: what is rare among 50 identities is nearly unknown."""

    def world(seed: int) -> ScoredPairs:
        rng = np.random.default_rng(seed)
        scale = np.where(rng.random((50, 1, 1)) < in_the_middle, 0.1, 2.0)
        points = (scale * rng.normal(size=(50, 1, 4)) + 0.4 * rng.normal(size=(50, 8, 4))).reshape(-1, 4)
        labels = np.repeat(np.arange(50), 8)
        chosen = balanced_pairs(labels, 10_000, rng)
        distance = np.linalg.norm(points[chosen.first] - points[chosen.second], axis=1)
        return ScoredPairs.of(-distance, labels[chosen.first], labels[chosen.second])

    inside = 0
    for seed in range(100):
        found = false_match_threshold(world(2 * seed), 0.01, repetitions=200)
        inside += float(np.mean(world(2 * seed + 1).of_kind(False).logit >= found.score)) in found.rates
    assert inside >= 93


def test_intervals_narrow_with_more_identities_and_widen_with_the_level() -> None:
    pairs = embedded_pairs(seed=3)
    usual = false_match_threshold(pairs, 0.02, repetitions=200)
    many = false_match_threshold(pairs, 0.02, repetitions=200, identities=4_000)
    low = false_match_threshold(pairs, 0.02, repetitions=200, level=0.5)
    width = {name: t.rates.high - t.rates.low for name, t in (("usual", usual), ("many", many), ("low", low))}
    assert width["many"] < width["usual"]
    assert width["low"] < width["usual"]
    assert (usual.identities, many.identities) == (40, 4_000)
    assert usual.misses in usual.miss_rates
    assert usual == false_match_threshold(pairs, 0.02, repetitions=200)  # the same seed


def test_bad_input_is_named() -> None:
    pairs = embedded_pairs(seed=0, identities=12, each=2, pairs=60)
    with pytest.raises(DataError, match=r"0\.001 cannot be seen on 30 non-matching pairs: give at least 1000"):
        false_match_threshold(pairs, 0.001)
    with pytest.raises(ValueRangeError, match=r"between 0 and 1, got 1\.5"):
        false_match_threshold(pairs, 1.5)
