"""Promises against simulation, where later identities can be drawn at will, and against every threshold there is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import betabinom

from hedged.decisions import (
    CandidateRule,
    FalsePositiveThreshold,
    GalleryThresholds,
    false_positive_threshold,
    least_identities,
    promised_rates,
)
from hedged.errors import DataError, ShapeError, ValueRangeError

values = st.lists(st.sampled_from([-2.0, 0.0, 0.5, 1.0, 3.0, 7.0]), min_size=9, max_size=60)
rates = st.sampled_from([0.1, 0.15, 0.3, 0.5, 0.9])


@given(values, rates)
def test_the_threshold_is_the_least_that_keeps_the_promise(scores: list[float], rate: float) -> None:
    s, n = np.array(scores), len(scores)
    found = false_positive_threshold(scores, rate).score

    def kept(t: float) -> bool:
        return bool((1 + np.sum(s >= t)) / (n + 1) <= rate + 1e-12)

    assert kept(found)
    lower = s[s < found]
    assert not len(lower) or not kept(lower.max())


@given(values, values, rates)
def test_the_rule_leaves_out_as_few_right_answers_as_the_formula_says(
    right: list[float], nobody: list[float], rate: float
) -> None:
    rule = CandidateRule.find(right, nobody, 1 - rate)
    for p, least in ((right, rule.known_from), (nobody, rule.nobody_from)):
        n = len(p)
        place = int(np.ceil((n + 1) * (1 - rate) - 1e-9))  # of 1 − p, as split conformal prediction is usually written
        assert 1 - least == pytest.approx(np.sort(1 - np.array(p))[place - 1])
    assert rule.kept(np.array(right)).sum() >= (1 - rate) * len(right) - 1e-9
    assert rule.keeps_nobody(max(nobody))


def test_the_least_number_of_identities_is_enough_and_one_fewer_is_not() -> None:
    for rate in (0.5, 0.1, 0.05, 0.01, 0.003, 1 / 3):
        n = least_identities(rate)
        scores = np.arange(float(n))
        assert np.isfinite(false_positive_threshold(scores, rate).score)
        with pytest.raises(DataError, match=f"takes at least {n}"):
            false_positive_threshold(scores[1:], rate)


@pytest.mark.parametrize(("n", "later", "rate"), [(99, 50, 0.01), (60, 200, 0.05), (200, 30, 0.1)])
def test_rates_on_later_identities_are_beta_binomial_whatever_the_distribution(n: int, later: int, rate: float) -> None:
    """2,000 draws of a heavy-tailed law: the mean and both ends of the interval as the formula has them."""
    rng = np.random.default_rng(0)
    trials = 2_000
    scores = rng.standard_cauchy((trials, n + later))
    passed = [np.sum(row[n:] >= false_positive_threshold(row[:n], rate).score) for row in scores]
    k = int(rate * (n + 1) + 1e-9)
    expected = betabinom(later, k, n + 1 - k)
    assert np.mean(passed) / later == pytest.approx(k / (n + 1), abs=4 * expected.std() / later / trials**0.5)
    assert k / (n + 1) <= rate
    low, high, _ = promised_rates(n, rate, later)
    inside = np.mean([low - 1e-12 <= x / later <= high + 1e-12 for x in passed])
    exact = sum(expected.pmf(x) for x in range(later + 1) if low - 1e-12 <= x / later <= high + 1e-12)
    assert exact >= 0.95
    assert inside == pytest.approx(exact, abs=4 * (0.05 / trials) ** 0.5)


def test_candidates_hold_the_right_answer_as_promised_known_or_not() -> None:
    """Posteriors that are wrong on purpose (squared) keep the promise all the same."""
    rng = np.random.default_rng(1)
    held_known, held_nobody = [], []
    for _ in range(400):
        right, nobody = rng.beta(3, 1, 120) ** 2, rng.beta(1, 2, 120) ** 2
        rule = CandidateRule.find(right[:60], nobody[:60], 0.9)
        held_known.append(rule.kept(right[60:]).mean())
        held_nobody.append(np.mean([rule.keeps_nobody(p) for p in nobody[60:]]))
    expected = 1 - 6 / 61
    for held in (held_known, held_nobody):
        assert np.mean(held) == pytest.approx(expected, abs=4 * np.std(held) / 20)


def test_thresholds_of_a_gallery() -> None:
    found = GalleryThresholds.find(np.arange(200.0), 50, [0.1, 0.01, 0.1])
    assert [one.rate for one in found.thresholds] == [0.01, 0.1]
    assert found.at(0.01, 50) > found.at(0.1, 20)
    with pytest.raises(DataError, match="up to 50 identities, and the gallery has 51"):
        found.at(0.1, 51)
    with pytest.raises(DataError, match=r"0\.2 was not calibrated for, only 0\.01, 0\.1"):
        found.at(0.2, 10)
    assert found.thresholds[0] == FalsePositiveThreshold(0.01, found.at(0.01, 1))


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueRangeError, match=r"between 0 and 1, got 1\.5"):
        least_identities(1.5)
    with pytest.raises(ValueRangeError, match="1 of 3 best scores of strangers are NaN"):
        false_positive_threshold([0.0, np.nan, 1.0], 0.5)
    with pytest.raises(ShapeError, match="one an identity"):
        false_positive_threshold(np.zeros((3, 2)), 0.5)
    with pytest.raises(ValueRangeError, match="coverage"):
        CandidateRule.find([0.1], [0.2], 1.0)
    with pytest.raises(ValueRangeError, match="at least one identity"):
        promised_rates(100, 0.1, 0)
    with pytest.raises(DataError, match=r"from 5 calibration identities: it takes at least 19.*0\.17 or more"):
        CandidateRule.find(np.ones(5), np.ones(99), 0.95)
