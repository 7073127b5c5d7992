"""Calibrators find what is there, rise, and can be read backwards; base rates shift them as Bayes has it."""

from __future__ import annotations

import numpy as np
import pytest
from decisions.synthetic import logistic_pairs, of_base_rate
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from hedged.decisions import (
    Calibrator,
    Isotonic,
    ScoredPairs,
    Temperature,
    base_rate_shift,
    choose,
    identities_of_list,
    quality,
)
from hedged.errors import DataError, ValueRangeError
from hedged.metrics import reliability

KINDS = [Temperature, Isotonic]


def test_a_temperature_is_found_again() -> None:
    found = Temperature.fit(logistic_pairs(seed=0, count=100_000, temperature=2.0))
    assert found.temperature == pytest.approx(2.0, rel=0.05)
    assert found.shift == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("scale", [1e-4, 1e5])
def test_the_unit_of_scores_does_not_matter(scale: float) -> None:
    pairs = logistic_pairs(seed=1)
    scaled = ScoredPairs(pairs.logit * scale, pairs.first, pairs.second, pairs.identities)
    before, after = (Temperature.fit(p).log_odds(p.logit) for p in (pairs, scaled))
    np.testing.assert_allclose(after, before, atol=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_the_balance_of_the_pairs_does_not_matter(kind: type[Calibrator]) -> None:
    """Matches and non-matches weigh the same, however many there are of each."""
    pairs = logistic_pairs(seed=2, count=4_000)
    rows = np.concatenate([np.flatnonzero(pairs.matches), *3 * [np.flatnonzero(~pairs.matches)]])
    uneven = ScoredPairs(pairs.logit[rows], pairs.first[rows], pairs.second[rows], pairs.identities)
    scores = np.linspace(-8, 4, 50)
    np.testing.assert_allclose(kind.fit(uneven).log_odds(scores), kind.fit(pairs).log_odds(scores), atol=0.01)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("base_rate", [0.5, 0.1, 0.01])
def test_probabilities_are_calibrated_at_any_base_rate(kind: type[Calibrator], base_rate: float) -> None:
    calibrator = kind.fit(logistic_pairs(seed=3, count=100_000))
    new = logistic_pairs(seed=4, count=200_000)
    rows = of_base_rate(new, base_rate)
    p = expit(calibrator.log_odds(new.logit[rows]) + base_rate_shift(base_rate))
    assert reliability(p, new.matches[rows]).ece < 0.01
    if base_rate < 0.5:  # without the shift, far from calibrated
        assert reliability(expit(calibrator.log_odds(new.logit[rows])), new.matches[rows]).ece > 0.05


@pytest.mark.parametrize("kind", KINDS)
def test_calibrators_rise_and_can_be_read_backwards(kind: type[Calibrator]) -> None:
    calibrator = kind.fit(logistic_pairs(seed=5, count=2_000))
    values = calibrator.log_odds(np.linspace(-30, 30, 500))
    assert (np.diff(values) >= 0).all()
    assert np.isfinite(values).all()
    for log_odds in (-1.5, 0.0, 0.7):
        score = calibrator.inverse(log_odds)
        assert calibrator.log_odds(np.array([score]))[0] == pytest.approx(log_odds)
        assert calibrator.log_odds(np.array([score - 0.5]))[0] < log_odds


def test_what_an_isotonic_function_never_reaches() -> None:
    calibrator = Isotonic.fit(logistic_pairs(seed=6, count=200))
    assert calibrator.inverse(50.0) == np.inf
    assert calibrator.inverse(-50.0) == -np.inf


def test_isotonic_regression_that_separates_everything_claims_no_certainty() -> None:
    pairs = ScoredPairs.of([1.0] * 50 + [-1.0] * 50, [*range(50), *range(50)], [*range(50), *range(1, 51)])
    p = expit(Isotonic.fit(pairs).log_odds(np.array([-1.0, 1.0])))
    np.testing.assert_allclose(p, [1 / 52, 51 / 52])


def test_a_bent_curve_is_left_to_isotonic_regression_and_a_straight_one_to_a_temperature() -> None:
    straight = logistic_pairs(seed=7, count=2_000)
    bent = ScoredPairs(np.cbrt(straight.logit), straight.first, straight.second, straight.identities)
    assert isinstance(choose(straight).calibrator, Temperature)
    choice = choose(ScoredPairs(bent.logit**5, bent.first, bent.second, bent.identities))
    assert isinstance(choice.calibrator, Isotonic)
    assert choice.after.nll < choice.before.nll
    assert choice.after is choice.trials[1].quality


def test_identities_are_held_out_of_what_predicts_them() -> None:
    """Where only an identity's own pairs could tell, nothing is gained: the trial says so, a fit on all would not."""
    rng = np.random.default_rng(0)
    first = rng.integers(40, size=4_000)
    second = np.where(rng.random(4_000) < 0.5, first, (first + 1 + rng.integers(39, size=4_000)) % 40)
    nothing = ScoredPairs.of(first + 40.0 * second + rng.random(4_000), first, second)
    trial = choose(nothing, [Isotonic])
    assert trial.after.nll > 0.68
    assert quality(Isotonic.fit(nothing).log_odds(nothing.logit), nothing).nll < trial.after.nll


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=8))
def test_identities_of_a_list_are_its_connected_parts(joined: list[tuple[int, int]]) -> None:
    group = list(range(7))  # merged one by one: slow and obvious
    for a, b in joined:
        group = [group[a] if g == group[b] else g for g in group]
    pairs = [*joined, *((a, b) for a in range(7) for b in range(7) if group[a] != group[b])]
    first, second = (np.array(side) for side in zip(*pairs, strict=True))
    left, right = identities_of_list(first, second, [True] * len(joined) + [False] * (len(pairs) - len(joined)))
    same = np.array([group[a] == group[b] for a, b in pairs])
    assert ((left == right) == same).all()
    if len(pairs) > len(joined):
        assert len(set(left.tolist()) | set(right.tolist())) == len({group[k] for k in {*first, *second}})


def test_bad_input_is_named() -> None:
    with pytest.raises(DataError, match="pair 3 of the list, a and c, is said not to match"):
        identities_of_list(["a", "b", "a"], ["b", "c", "c"], [True, True, False])
    with pytest.raises(DataError, match="2 identities are too few"):
        choose(ScoredPairs.of([1.0, 0.0], ["a", "a"], ["a", "b"]))
    with pytest.raises(DataError, match="differ in shape"):
        ScoredPairs.of([1.0, 0.0], ["a"], ["a"])
    with pytest.raises(ValueRangeError, match="1 of 2 scores are NaN"):
        ScoredPairs.of([1.0, np.nan], ["a", "a"], ["a", "b"])
    with pytest.raises(ValueRangeError, match="base rate"):
        base_rate_shift(1.0)
    with pytest.raises(ValueRangeError, match="both rising"):
        Isotonic((0.0, 0.0), (1.0, 2.0))
    few = [(k, k) for k in range(12)] + [(k, k + 1) for k in range(11)]
    with pytest.raises(DataError, match="held out in turn"):
        choose(ScoredPairs.of(np.arange(23.0), *zip(*few, strict=True)))
