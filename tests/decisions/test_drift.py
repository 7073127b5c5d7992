"""The drift test: its laws by simulation, p-values against counting, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from hedged.decisions import conformal_p_values, detect_drift, jumper
from hedged.errors import DataError, ShapeError, ValueRangeError

values = st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0]), min_size=1, max_size=15)


@given(values, values)
def test_p_values_are_counts(before: list[float], after: list[float]) -> None:
    found = conformal_p_values(before, after, seed=3)
    draws = np.random.default_rng(3)
    seen = list(before)
    for value, p in zip(after, found, strict=True):
        seen.append(value)
        above, equal = sum(s > value for s in seen), sum(s == value for s in seen)
        assert p == pytest.approx((above + draws.random() * equal) / len(seen))


def test_p_values_of_one_law_are_uniform_and_uncorrelated_even_with_ties() -> None:
    rng = np.random.default_rng(0)
    counts = rng.poisson(2.0, (60, 60)).astype(float)
    found = np.concatenate([conformal_p_values(row[:20], row[20:], seed) for seed, row in enumerate(counts)])
    assert kstest(found, "uniform").pvalue > 0.01
    assert abs(np.corrcoef(found[:-1], found[1:])[0, 1]) < 0.06


def test_no_bet_grows_on_average() -> None:
    """E[M_t] = 1 at every t: over all p-values of a grid, exactly, and of two steps one after the other."""
    grid = (np.arange(50) + 0.5) / 50
    assert np.mean([jumper([p])[-1] for p in grid]) == pytest.approx(1)
    assert np.mean([jumper([p, q])[-1] for p in grid for q in grid]) == pytest.approx(1)


def test_false_alarms_are_as_rare_as_promised_and_changes_are_seen() -> None:
    rng = np.random.default_rng(1)
    alarms, seen, delays = 0, 0, []
    for seed in range(150):
        before, same, shifted = rng.gamma(2.0, size=80), rng.gamma(2.0, size=150), rng.gamma(4.0, size=150)
        more = rng.normal(size=80), rng.normal(size=150)
        quiet = detect_drift({"a": before, "b": more[0]}, {"a": same, "b": more[1]}, 0.1, seed)
        loud = detect_drift({"a": before, "b": more[0]}, {"a": shifted, "b": more[1]}, 0.1, seed)
        alarms += quiet.changed
        seen += loud.changed
        delays += [loud.alarm] if loud.alarm is not None else []
        assert loud.evidence >= 10 or not loud.changed
    assert alarms <= 150 * 0.1 + 2 * (150 * 0.09) ** 0.5
    assert seen >= 145
    assert np.median(delays) < 40


def test_bad_input_is_named() -> None:
    fine = np.arange(20.0)
    with pytest.raises(ValueRangeError, match="false alarm rate"):
        detect_drift({"a": fine}, {"a": fine}, 1.0)
    with pytest.raises(ShapeError, match=r"\['a'\].*\['b'\]"):
        detect_drift({"a": fine}, {"b": fine})
    with pytest.raises(ShapeError, match="one value of each statistic"):
        detect_drift({"a": fine, "b": fine}, {"a": fine, "b": fine[1:]})
    with pytest.raises(DataError, match="3 of a reference"):
        detect_drift({"a": fine[:3]}, {"a": fine})
    with pytest.raises(ValueRangeError, match="not finite"):
        detect_drift({"a": fine}, {"a": np.array([np.nan])})
