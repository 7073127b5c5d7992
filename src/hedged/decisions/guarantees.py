"""Promises that hold whatever the model and the distribution: split conformal prediction, one input an identity.

A promise asks for one thing: that the identities met later could as well have been among those calibrated on, in any
order (they are exchangeable). Then the rank of a later score among n calibration scores is uniform, and a threshold
between two of them has a known chance to be passed. Nothing is assumed of the scores themselves.

Vovk, Gammerman and Shafer, "Algorithmic Learning in a Random World" (2005); by class, so that it holds for the known
and for strangers whatever the share of each: Vovk, Lindsay, Nouretdinov and Gammerman, "Mondrian Confidence Machine"
(2003).
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, final

import numpy as np
from numpy.typing import ArrayLike

from hedged.decisions.pairs import Flags, Floats
from hedged.decisions.thresholds import LEVEL, Interval
from hedged.errors import DataError, ShapeError, ValueRangeError

ROUNDING = 1e-9  # of a rate times a count: 0.1 · 30 is three


def least_identities(rate: float) -> int:
    """⌈1/α⌉ − 1: how many calibration identities a promise of the rate α takes.

    Args:
        rate: α, the share of identities that may go wrong, in (0, 1).

    >>> least_identities(0.1), least_identities(0.05), least_identities(0.01)
    (9, 19, 99)
    """
    _check_rate(rate)
    return math.ceil(1 / rate * (1 - ROUNDING)) - 1


def allowed(count: int, rate: float) -> int:
    """k = ⌊α(n + 1)⌋: the place, from the worst, of the calibration score that a promise of α is cut at.

    Args:
        count: n, calibration identities.
        rate: α.
    """
    least = least_identities(rate)
    if count < least:
        raise DataError(
            f"a rate of {rate:g} cannot be promised from {count} calibration identities: it takes at least {least}; "
            f"give more identities, or ask for a rate of {1 / (count + 1):.2g} or more"
        )
    return int(rate * (count + 1) * (1 + ROUNDING))


def promised_rates(count: int, rate: float, later: int, level: float = LEVEL) -> Interval:
    """Where a promised rate will lie when it is measured on `later` other identities: beta-binomial, exactly.

    Of n calibration scores without ties the k-th worst is passed by a later one with probability p, and
    p ~ Beta(k, n + 1 − k) over draws of the n. So the number of `later` ones that pass is
    BetaBinomial(later, k, n + 1 − k), whatever the continuous distribution.

    Args:
        count: n, calibration identities.
        rate: α, as promised.
        later: How many identities it is measured on.
        level: The probability that the measured rate lies in the interval, at least.

    >>> promised_rates(99, 0.1, 200)
    Interval(low=0.04, high=0.18, level=0.95)
    """
    from scipy.stats import betabinom  # late: slow to import

    if later < 1:
        raise ValueRangeError(f"a rate is measured on at least one identity, got {later}")
    k = allowed(count, rate)
    low, high = betabinom(later, k, count + 1 - k).ppf([(1 - level) / 2, (1 + level) / 2]) / later
    return Interval(float(low), float(high), level)


class FalsePositiveThreshold(NamedTuple):
    """A threshold on the score of the best identity that a share of at most `rate` of strangers reaches.

    Args:
        rate: The false positive identification rate (FPIR) that is promised.
        score: Inputs are taken for the best identity from this score on.
    """

    rate: float
    score: float


def false_positive_threshold(best_scores: ArrayLike, rate: float) -> FalsePositiveThreshold:
    """The least t with (1 + #{i : s_i ≥ t}) / (n + 1) ≤ α: a stranger's best score reaches t with probability ≤ α.

    Args:
        best_scores: s, the score of the best identity for an input of each of n strangers, `(n,)`; one a stranger.
        rate: α, the false positive identification rate.

    >>> found = false_positive_threshold([0.1, 0.5, 0.3, 0.9, 0.2, 0.6, 0.4, 0.8, 0.7], 0.2)
    >>> found.rate, round(found.score, 6)
    (0.2, 0.8)
    """
    scores = _scores("best scores of strangers", best_scores)
    k = allowed(len(scores), rate)
    return FalsePositiveThreshold(rate, min(float(np.nextafter(np.sort(scores)[-k], np.inf)), sys.float_info.max))


@final
@dataclass(frozen=True)
class GalleryThresholds:
    """Thresholds for identification in a gallery, as `hedged calibrate --fpir` found them.

    Args:
        identities: How many identities the gallery had. The promise holds for it, and for random parts of it.
        strangers: How many strangers were tried, one input each.
        thresholds: One for each rate that was asked for.
    """

    identities: int
    strangers: int
    thresholds: tuple[FalsePositiveThreshold, ...]

    @classmethod
    def find(cls, best_scores: ArrayLike, identities: int, rates: ArrayLike) -> Self:
        """Thresholds for several rates.

        Args:
            best_scores: The score of the best identity for an input of each of n strangers, `(n,)`.
            identities: How many identities the gallery has.
            rates: The false positive identification rates.
        """
        scores = _scores("best scores of strangers", best_scores)
        wanted = np.atleast_1d(np.asarray(rates, dtype=np.float64)).tolist()
        found = tuple(false_positive_threshold(scores, rate) for rate in sorted(set(wanted)))
        return cls(identities, len(scores), found)

    def at(self, rate: float, identities: int) -> float:
        """The score from which on an input is taken for the best identity.

        Args:
            rate: The false positive identification rate; one that was calibrated for.
            identities: How many identities the gallery has where it is used.
        """
        again = f"calibrate again with `hedged calibrate RUN --fpir {rate:g} --store STORE`"
        for one in self.thresholds:
            if math.isclose(one.rate, rate):
                if identities > self.identities:
                    raise DataError(
                        f"the rate of {rate:g} was promised for up to {self.identities:,} identities, and the gallery "
                        f"has {identities:,}, among which a stranger finds a match more easily: {again}"
                    )
                return one.score
        rates = ", ".join(f"{one.rate:g}" for one in self.thresholds)
        raise DataError(f"a rate of {rate:g} was not calibrated for, only {rates}: {again}")

    def describe(self) -> dict[str, Any]:
        """The fields as plain data, as calibration.json holds them."""
        return {
            "identities": self.identities,
            "strangers": self.strangers,
            "thresholds": [one._asdict() for one in self.thresholds],
        }


@final
@dataclass(frozen=True)
class CandidateRule:
    """Who stays a candidate: {j : P(j | x) ≥ `known_from`}, and "nobody" where P(nobody | x) ≥ `nobody_from`.

    The set holds the right answer with probability `coverage` or more: of an input of somebody known, their name, and
    of a stranger's, "nobody". Each is promised by itself, and so whatever the share of strangers.

    Args:
        coverage: 1 − α, what is promised.
        known_from: The least probability of an identity that stays.
        nobody_from: The least probability of "nobody" that stays.
        known: How many identities the first was found on.
        strangers: How many the second was.
    """

    coverage: float
    known_from: float
    nobody_from: float
    known: int
    strangers: int

    @classmethod
    def find(cls, right: ArrayLike, nobody: ArrayLike, coverage: float) -> Self:
        """The k-th least probability of the right answer, k = ⌊α(n + 1)⌋, of the known and of strangers.

        Args:
            right: P(j | x) of the right identity for an input of each of n known identities, `(n,)`.
            nobody: P(nobody | x) for an input of each of m strangers, `(m,)`.
            coverage: 1 − α, the share of sets that hold the right answer, in (0, 1).

        >>> p = np.linspace(0.05, 0.95, 19)
        >>> rule = CandidateRule.find(right=p, nobody=p / 2, coverage=0.9)
        >>> round(rule.known_from, 3), round(rule.nobody_from, 3)
        (0.1, 0.05)
        """
        if not 0 < coverage < 1:
            raise ValueRangeError(
                f"a coverage is the share of sets that hold the right answer, between 0 and 1, got {coverage:g}"
            )
        of_known, of_strangers = _scores("probabilities of the right one", right), _scores("of nobody", nobody)
        known_from, nobody_from = (
            float(np.sort(p)[allowed(len(p), 1 - coverage) - 1]) for p in (of_known, of_strangers)
        )
        return cls(coverage, known_from, nobody_from, len(of_known), len(of_strangers))

    def kept(self, probabilities: Floats) -> Flags:
        """Which identities stay, in the shape of `probabilities`.

        Args:
            probabilities: P(j | x), of any shape.
        """
        stay: Flags = probabilities >= self.known_from
        return stay

    def keeps_nobody(self, none_probability: float) -> bool:
        """Whether "nobody" stays.

        Args:
            none_probability: P(nobody | x).
        """
        return none_probability >= self.nobody_from


def _check_rate(rate: float) -> None:
    if not 0 < rate < 1:
        raise ValueRangeError(f"a promised rate lies between 0 and 1, got {rate:g}")


def _scores(name: str, values: ArrayLike) -> Floats:
    scores = np.asarray(values, dtype=np.float64)
    if scores.ndim != 1:
        raise ShapeError(f"{name} must be a list, one an identity, got an array of shape {scores.shape}")
    if np.isnan(scores).any():
        raise ValueRangeError(f"{np.isnan(scores).sum()} of {scores.size} {name} are NaN: they cannot be ranked")
    return scores
