"""A threshold for a target false-match rate, and how far from the target the rate may be on other identities.

Pairs are not independent: an identity that is easily taken for others spoils all of its pairs. So identities are drawn
anew, not pairs, and a pair of two identities counts as often as both were drawn, the product of the two numbers (the
two-way or pigeonhole bootstrap; Owen 2007). And a rate that is measured later on other identities differs from the
one seen for two reasons: the identities seen are a sample, and so are those measured on. So every repetition draws
twice, the second time from what the first drew: a population as it may be, and a sample of it. What comes out is a
predictive interval.

Pairs of a drawn sample are no sample of pairs: with every identity drawn again, its false matches come back together,
and the mean over repetitions is not the rate seen. So the interval is recentred on it (Conti and Clémençon, "Assessing
Uncertainty in Similarity Scoring", arXiv 2211.07245), in log-odds, where rates near zero spread evenly. The share of
matches that are missed may be zero on one draw and not on the next: it is measured at a threshold that is found anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from hedged._odds import expit, logit
from hedged.decisions.pairs import Floats, Ints, ScoredPairs
from hedged.errors import DataError, ValueRangeError

LEVEL, REPETITIONS = 0.95, 1_000


class Interval(NamedTuple):
    """An interval.

    Args:
        low: Where it begins.
        high: Where it ends.
        level: The probability that the value lies in it.
    """

    low: float
    high: float
    level: float = LEVEL

    def __contains__(self, value: object) -> bool:
        return isinstance(value, float | int) and self.low <= value <= self.high


@final
@dataclass(frozen=True)
class FalseMatchThreshold:
    """A threshold at which at most a share `target` of the non-matches is accepted, on the pairs it was found on.

    Args:
        score: Pairs with at least these log-odds are accepted.
        target: The false-match rate that was asked for.
        rate: The false-match rate on the pairs it was found on.
        rates: Where the false-match rate will lie when it is measured on other identities.
        misses: The share of matches that are not accepted.
        miss_rates: Where that share will lie on other identities.
        identities: How many other identities the intervals are for.
    """

    score: float
    target: float
    rate: float
    rates: Interval
    misses: float
    miss_rates: Interval
    identities: int


def false_match_threshold(
    pairs: ScoredPairs,
    target: float = 0.01,
    level: float = LEVEL,
    repetitions: int = REPETITIONS,
    identities: int | None = None,
    seed: int = 0,
) -> FalseMatchThreshold:
    """The least threshold at which P(accept | no match) ≤ `target` on these pairs, with predictive intervals.

    Args:
        pairs: Scored pairs.
        target: The false-match rate.
        level: The probability that an interval holds what is measured later.
        repetitions: Of the bootstrap.
        identities: How many other identities the intervals are for; None: as many as in `pairs`.
        seed: For the bootstrap.
    """
    pairs.require_enough()
    others, matches = (_Ranked.of(pairs.of_kind(matching)) for matching in (False, True))
    _check(target, level, len(others.scores))
    count = identities or pairs.identities
    draws = np.random.default_rng(seed)
    once = np.ones(pairs.identities)
    score = others.threshold(target, once)
    rate, missed = others.share_from(score, once), 1 - matches.share_from(score, once)
    rates, misses = np.empty(repetitions), np.empty(repetitions)
    for k in range(repetitions):
        here = _draw(draws, once, pairs.identities)
        rates[k] = others.share_from(score, _draw(draws, here, count))
        misses[k] = 1 - matches.share_from(others.threshold(target, here), _draw(draws, once, count))
    low, high = np.nanquantile(misses, [(1 - level) / 2, (1 + level) / 2])
    within = _recentred(rates, rate, len(others.scores), level)
    return FalseMatchThreshold(score, target, rate, within, missed, Interval(float(low), float(high), level), count)


@final
@dataclass(frozen=True, eq=False)
class _Ranked:
    """Pairs, the highest score first, and how many pairs there are of each two identities: (blocks,)."""

    scores: Floats
    first: Ints
    second: Ints
    block_first: Ints
    block_second: Ints
    block_sizes: Ints

    @classmethod
    def of(cls, pairs: ScoredPairs) -> _Ranked:
        order = np.argsort(-pairs.logit, kind="stable")
        blocks, sizes = np.unique(pairs.first * pairs.identities + pairs.second, return_counts=True)
        ends = np.divmod(blocks, pairs.identities)
        return cls(pairs.logit[order], pairs.first[order], pairs.second[order], *ends, sizes)

    def total(self, drawn: Floats) -> float:
        """How many pairs there are when each identity was drawn so often."""
        return float(self.block_sizes @ _times(self.block_first, self.block_second, drawn))

    def threshold(self, target: float, drawn: Floats) -> float:
        """The least score from which on a share of at most `target` lies; equal scores stay together."""
        allowed = target * self.total(drawn) * (1 + 1e-9)
        size = int(4 * target * len(self.scores)) + 100  # most often enough, and few of all
        while True:
            reached = np.cumsum(_times(self.first[:size], self.second[:size], drawn))
            if reached[-1] > allowed:
                return float(np.nextafter(self.scores[np.searchsorted(reached, allowed, side="right")], np.inf))
            if size >= len(self.scores):
                return float(self.scores[-1])
            size *= 4

    def share_from(self, score: float, drawn: Floats) -> float:
        """The share of pairs with at least this score; NaN where nothing was drawn."""
        size = len(self.scores) - int(np.searchsorted(self.scores[::-1], score, side="left"))
        total = self.total(drawn)
        return float(_times(self.first[:size], self.second[:size], drawn).sum() / total) if total else np.nan


def _times(first: Ints, second: Ints, drawn: Floats) -> Floats:
    """How often each pair counts when each identity was drawn so often; a match is of one identity, not of two."""
    times: Floats = drawn[first] * np.where(first == second, 1.0, drawn[second])
    return times


def _draw(draws: np.random.Generator, population: Floats, size: int) -> Floats:
    """How often each identity comes up in `size` draws from a population of so many of each, (identities,)."""
    return draws.multinomial(size, population / population.sum()).astype(float)


def _recentred(shares: Floats, seen: float, pairs: int, level: float) -> Interval:
    """Quantiles of shares, moved in log-odds so that their mean is the share seen; half a pair keeps these finite."""
    drawn, centre = (logit((values * pairs + 0.5) / (pairs + 1)) for values in (shares, np.array([seen])))
    low, high = np.nanquantile(drawn, [(1 - level) / 2, (1 + level) / 2]) - np.nanmean(drawn) + centre[0]
    return Interval(float(expit(low)), float(expit(high)), level)


def _check(target: float, level: float, pairs: int) -> None:
    for name, value in (("target false-match rate", target), ("level of an interval", level)):
        if not 0 < value < 1:
            raise ValueRangeError(f"a {name} lies between 0 and 1, got {value:g}")
    if target * pairs < 1:
        raise DataError(
            f"a false-match rate of {target:g} cannot be seen on {pairs} non-matching pairs: give at least "
            f"{int(np.ceil(1 / target))} of them, or aim at a higher rate"
        )
