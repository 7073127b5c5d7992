"""Policies against every other policy there is."""

from __future__ import annotations

import numpy as np
import pytest
from decisions.synthetic import embedded_pairs, logistic_pairs
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from hedged.decisions import (
    AbstainByCosts,
    AbstainByRate,
    Aims,
    Isotonic,
    Policy,
    ScoredPairs,
    Temperature,
    Verdict,
    base_rate_shift,
    calibrate,
    outcome,
)
from hedged.errors import ValueRangeError

CALIBRATORS = [Temperature(1.5, 0.4), Isotonic((-2.0, -0.5, 0.1, 2.0), (-3.0, -0.2, 0.0, 1.5))]
rates = st.sampled_from([0.01, 0.2, 0.5, 0.9])
costs = st.floats(0.01, 100)


@given(st.sets(st.integers(-30, 30), min_size=4, max_size=12), rates, st.floats(-2, 2), st.sampled_from([0, 0.2, 0.5]))
@pytest.mark.parametrize("calibrator", CALIBRATORS, ids=["temperature", "isotonic"])
def test_what_is_left_undecided_is_the_riskiest_and_no_more_than_was_asked(
    calibrator: Temperature | Isotonic, tenths: set[int], base_rate: float, threshold: float, rate: float
) -> None:
    scores = np.array(list(tenths)) / 10
    pairs = ScoredPairs.of(scores, ["a"] * len(scores), ["a" if k % 2 else "b" for k in range(len(scores))])
    policy = AbstainByRate(rate).policy(pairs, calibrator, base_rate, threshold)
    p = expit(calibrator.log_odds(scores) + base_rate_shift(base_rate))
    risk, undecided = np.where(scores >= threshold, 1 - p, p), policy.abstains(scores)
    weights = 2 * pairs.weights * np.where(pairs.matches, base_rate, 1 - base_rate)
    assert policy.reject_below <= threshold <= policy.accept_from
    assert weights[undecided].sum() <= rate + 1e-9
    assert risk[~undecided].max(initial=0) <= risk[undecided].min(initial=1) + 1e-9 or not undecided.any()
    if (~undecided).any():  # and nobody else could be left out as well
        riskiest = np.flatnonzero(~undecided)[np.argsort(-risk[~undecided], kind="stable")]
        equals = riskiest[risk[riskiest] >= risk[riskiest[0]] - 1e-12]
        assert weights[undecided].sum() + weights[equals].max() > rate - 1e-9


@given(costs, costs, costs, rates, st.lists(st.floats(-8, 8), min_size=1, max_size=20))
def test_costs_are_as_low_as_can_be(a: float, b: float, c: float, base_rate: float, scores: list[float]) -> None:
    pairs, calibrator = logistic_pairs(0, count=20), CALIBRATORS[0]
    policy = AbstainByCosts(a, b, c).policy(pairs, calibrator, base_rate, threshold=-np.inf)
    for score in scores:
        p = expit(calibrator.log_odds(np.array([score])) + base_rate_shift(base_rate))[0]
        cost = {Verdict.ACCEPT: (1 - p) * a, Verdict.REJECT: p * b, Verdict.ABSTAIN: c}
        assert cost[policy.verdict(score)] <= min(cost.values()) * (1 + 1e-6) + 1e-9


@given(costs, costs, costs, st.floats(-3, 3))
def test_what_may_not_be_accepted_is_rejected_or_left_whichever_is_cheaper(
    a: float, b: float, c: float, threshold: float
) -> None:
    policy = AbstainByCosts(a, b, c).policy(logistic_pairs(0, count=20), CALIBRATORS[0], 0.5, threshold)
    assert policy.accept_from >= threshold
    for score in np.linspace(-6, 6, 25):
        p = expit(CALIBRATORS[0].log_odds(np.array([score])))[0]
        cost = {Verdict.REJECT: p * b, Verdict.ABSTAIN: c}
        if score >= threshold:
            cost[Verdict.ACCEPT] = (1 - p) * a
        assert cost[policy.verdict(score)] <= min(cost.values()) * (1 + 1e-6) + 1e-9


def test_outcome_counts() -> None:
    names = [*range(4), *range(4)], [0, 1, 2, 3, 1, 2, 3, 0]
    pairs = ScoredPairs.of([3.0, 2.0, 0.0, -2.0, 2.5, 0.1, -1.5, -3.0], *names)
    done = outcome(Policy(reject_below=-1.0, accept_from=2.0), pairs, base_rate=0.5)
    assert done.abstained == 2 / 8
    assert done.error == pytest.approx(2 / 6)
    assert (done.false_match_rate, done.false_non_match_rate) == (1 / 4, 1 / 4)
    rare = outcome(Policy(-1.0, 2.0), pairs, base_rate=0.1)
    assert rare.error == pytest.approx((0.1 / 4 + 0.9 / 4) / 0.75)


def test_calibrate_puts_it_together_and_it_holds_for_new_identities() -> None:
    pairs, new = (embedded_pairs(seed, identities=80, pairs=10_000) for seed in (1, 2))
    never, fifth = (calibrate(pairs, "f", Aims(0.02, AbstainByRate(rate))) for rate in (0.0, 0.2))
    assert never.threshold
    assert never.decider.policy == Policy(never.threshold.score, never.threshold.score)
    before, after = (outcome(found.decider.policy, new, 0.5) for found in (never, fifth))
    assert before.abstained == 0
    assert after.abstained == pytest.approx(0.2, abs=0.06)
    assert after.error < before.error
    assert after.false_match_rate <= before.false_match_rate
    assert never.outcome.false_match_rate <= 0.02
    likelier = calibrate(pairs, "f", Aims(None))
    accept_from = likelier.decider.policy.accept_from
    assert likelier.decider.probability(accept_from) == pytest.approx(0.5)
    assert likelier.report()["threshold"] is None


def test_a_lower_base_rate_accepts_less() -> None:
    pairs = embedded_pairs(seed=1)
    thresholds = [
        calibrate(pairs, "f", Aims(None, AbstainByCosts(1, 1, 0.3), base_rate)).decider.policy.accept_from
        for base_rate in (0.9, 0.5, 0.1)
    ]
    assert thresholds == sorted(thresholds)
    assert thresholds[0] < thresholds[2]


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueRangeError, match="must not be above"):
        Policy(2.0, 1.0)
    with pytest.raises(ValueRangeError, match=r"\[0, 1\), got 1"):
        AbstainByRate(1.0)
    with pytest.raises(ValueRangeError, match="positive numbers"):
        AbstainByCosts(1.0, 0.0, 1.0)
    with pytest.raises(ValueRangeError, match="base rate"):
        Aims(base_rate=0.0)
