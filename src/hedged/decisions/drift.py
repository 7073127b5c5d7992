"""Has the world changed since calibration? A test that is looked at after every input, with a known false alarm rate.

Each new input gets a conformal p-value: the share of all inputs so far, those of the reference included, that are more
extreme. While nothing changes, these are independent and uniform, whatever the distribution. A test martingale bets
that they are not: it starts at 1, no bet makes it grow on average, and so it ever reaches 1/α with a probability of at
most α (Ville's inequality). Labels are not needed.

Vovk, Petej, Nouretdinov, Ahlberg, Carlsson and Gammerman, "Retrain or not retrain: conformal test martingales for
change-point detection" (2021), whose Simple Jumper this is: a dozen lines, for which no dependency is worth it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from hedged.decisions.pairs import Floats
from hedged.errors import DataError, ShapeError, ValueRangeError

BETS = np.array([-1.0, 0.0, 1.0])  # slopes: on low p-values, on none, on high ones
JUMP = 0.01  # share of the capital that is spread over all bets anew at each step
LEAST_REFERENCE = 10  # values: fewer say next to nothing

Statistics = Mapping[str, Floats]


@final
@dataclass(frozen=True)
class Drift:
    """What was seen of a change.

    Args:
        changed: Whether the evidence ever reached 1 / `false_alarm_rate`.
        alarm: The number of the input at which it did first, from 0; None if it did not.
        evidence: The greatest value of the martingale.
        by_statistic: The greatest value of the one of each statistic.
        inputs: How many inputs were looked at.
        reference: How many values they were held against.
        false_alarm_rate: The probability of an alarm, ever, while nothing changes.
    """

    changed: bool
    alarm: int | None
    evidence: float
    by_statistic: dict[str, float]
    inputs: int
    reference: int
    false_alarm_rate: float


def conformal_p_values(reference: ArrayLike, later: ArrayLike, seed: int = 0) -> Floats:
    """p_t = (#{i < t : s_i > s_t} + u_t·#{i ≤ t : s_i = s_t}) / #{i ≤ t}: independent and uniform, if exchangeable.

    Args:
        reference: Values before, in any order, `(n,)`.
        later: Values since, in order, `(m,)`.
        seed: Draws u, which breaks ties.

    >>> conformal_p_values([1.0, 2.0, 3.0], [9.0, 9.5]).round(2)
    array([0.16, 0.05])
    """
    bag = sorted(_values("reference", reference).tolist())
    draws = np.random.default_rng(seed)
    found = []
    for value in _values("later values", later).tolist():
        above, equal = len(bag) - bisect_right(bag, value), bisect_right(bag, value) - bisect_left(bag, value) + 1
        insort(bag, value)
        found.append((above + draws.random() * equal) / len(bag))
    return np.array(found)


def jumper(p_values: ArrayLike) -> Floats:
    """The Simple Jumper martingale after each p-value, `(m,)`; it multiplies by 1 + ε(p − ½), ε jumping among −1, 0, 1.

    Args:
        p_values: Independent and uniform while nothing changes, `(m,)`.

    >>> jumper([0.5, 0.5]).round(3)
    array([1., 1.])
    """
    capital, found = np.full(len(BETS), 1 / len(BETS)), []
    for p in _values("p-values", p_values):
        capital = (1 - JUMP) * capital + JUMP * capital.sum() / len(BETS)
        capital = capital * (1 + BETS * (p - 0.5))
        found.append(float(capital.sum()))
    return np.array(found)


def detect_drift(reference: Statistics, later: Statistics, false_alarm_rate: float = 0.01, seed: int = 0) -> Drift:
    """Whether inputs are still like those of a reference, by several numbers of each; the martingales are averaged.

    Args:
        reference: Values before by name, such as the uncertainties of calibration inputs, one an identity, `(n,)` each.
        later: Values since by the same names, in order, `(m,)` each.
        false_alarm_rate: α, the probability that there is ever an alarm while nothing changes.
        seed: Breaks ties.

    >>> rng = np.random.default_rng(0)
    >>> before, after = rng.normal(size=200), rng.normal(size=100)
    >>> detect_drift({"eta": before}, {"eta": after}).changed, detect_drift({"eta": before}, {"eta": after + 2}).changed
    (False, True)
    """
    if not 0 < false_alarm_rate < 1:
        raise ValueRangeError(f"a false alarm rate lies between 0 and 1, got {false_alarm_rate:g}")
    if not reference or set(reference) != set(later):
        raise ShapeError(
            f"the reference has {sorted(reference)}, later inputs have {sorted(later)}: give both the same"
        )
    counts = {len(values) for values in later.values()}, {len(values) for values in reference.values()}
    if any(len(count) != 1 for count in counts):
        raise ShapeError(f"each input has one value of each statistic, got {counts[0]} later and {counts[1]} before")
    inputs, before = counts[0].pop(), counts[1].pop()
    if before < LEAST_REFERENCE or not inputs:
        raise DataError(
            f"{inputs} inputs cannot be held against {before} of a reference: give at least one, and calibrate on "
            f"{LEAST_REFERENCE} identities or more"
        )
    grown = {name: jumper(conformal_p_values(reference[name], later[name], seed)) for name in reference}
    together = np.mean(list(grown.values()), axis=0)
    reached = np.flatnonzero(together >= 1 / false_alarm_rate)
    return Drift(
        bool(len(reached)),
        int(reached[0]) if len(reached) else None,
        float(together.max()),
        {name: float(values.max()) for name, values in grown.items()},
        inputs,
        before,
        false_alarm_rate,
    )


def _values(name: str, values: ArrayLike) -> Floats:
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 1:
        raise ShapeError(f"{name} must be a list of numbers, got an array of shape {found.shape}")
    if not np.isfinite(found).all():
        raise ValueRangeError(f"{(~np.isfinite(found)).sum()} of {found.size} {name} are not finite")
    return found
