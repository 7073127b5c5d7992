"""Accept, reject, or abstain: two thresholds on the log-odds of a match, and the ways to choose them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, final

import numpy as np

from hedged._odds import expit, logit
from hedged.decisions.calibrators import Calibrator, base_rate_shift
from hedged.decisions.pairs import Flags, Floats, ScoredPairs
from hedged.errors import ValueRangeError


class Verdict(StrEnum):
    """What is done about a pair."""

    ACCEPT = "accept"
    """It is taken for a match."""

    REJECT = "reject"
    """It is taken for no match."""

    ABSTAIN = "abstain"
    """It is left to somebody else, such as a person."""


@final
@dataclass(frozen=True)
class Policy:
    """Reject below one score, accept from another on, abstain between them; scores are the model's log-odds.

    Args:
        reject_below: Pairs with a lower score are rejected.
        accept_from: Pairs with at least this score are accepted.

    >>> [Policy(reject_below=-1.0, accept_from=2.0).verdict(x).value for x in (-3.0, 0.0, 2.0)]
    ['reject', 'abstain', 'accept']
    """

    reject_below: float
    accept_from: float

    def __post_init__(self) -> None:
        """Refuse thresholds that cross."""
        if not self.reject_below <= self.accept_from:
            raise ValueRangeError(
                f"pairs are rejected below {self.reject_below:g} and accepted from {self.accept_from:g} on: the first "
                "must not be above the second"
            )

    def verdict(self, score: float) -> Verdict:
        """What to do about a pair.

        Args:
            score: Its log-odds.
        """
        if score >= self.accept_from:
            return Verdict.ACCEPT
        return Verdict.REJECT if score < self.reject_below else Verdict.ABSTAIN

    def accepts(self, scores: Floats) -> Flags:
        """Which scores are accepted, in their shape.

        Args:
            scores: Log-odds, of any shape.
        """
        accepted: Flags = scores >= self.accept_from
        return accepted

    def abstains(self, scores: Floats) -> Flags:
        """Which scores are left undecided, in their shape.

        Args:
            scores: Log-odds, of any shape.
        """
        undecided: Flags = (scores >= self.reject_below) & (scores < self.accept_from)
        return undecided


class Abstention(ABC):
    """A way to choose when to abstain."""

    @abstractmethod
    def policy(self, pairs: ScoredPairs, calibrator: Calibrator, base_rate: float, threshold: float) -> Policy:
        """When to accept, reject and abstain.

        Args:
            pairs: Labelled pairs to choose by.
            calibrator: From the model's log-odds to calibrated ones.
            base_rate: The share of pairs that match where it is used.
            threshold: The score below which nothing is accepted.
        """

    def threshold(self, calibrator: Calibrator, base_rate: float) -> float:
        """The score below which nothing is accepted, where no false-match rate is asked for: that of p = ½.

        Args:
            calibrator: From the model's log-odds to calibrated ones.
            base_rate: The share of pairs that match where it is used.
        """
        return calibrator.inverse(-base_rate_shift(base_rate))


@final
@dataclass(frozen=True)
class AbstainByRate(Abstention):
    """Abstain on the share `rate` of pairs whose decision is most likely to be wrong; with 0, never.

    A pair of match probability p is accepted at the risk 1 − p and rejected at the risk p. Both risks grow towards the
    threshold, so what is left out lies around it, or on one side of it if the threshold is far from p = ½.

    Args:
        rate: Share of pairs to leave undecided, in [0, 1).
    """

    rate: float

    def __post_init__(self) -> None:
        """Refuse a rate outside [0, 1)."""
        if not 0 <= self.rate < 1:
            raise ValueRangeError(f"the share of pairs to abstain on lies in [0, 1), got {self.rate:g}")

    def policy(self, pairs: ScoredPairs, calibrator: Calibrator, base_rate: float, threshold: float) -> Policy:
        scores = pairs.logit
        log_odds = calibrator.log_odds(scores) + base_rate_shift(base_rate)
        accepted = scores >= threshold
        risk = expit(np.where(accepted, -log_odds, log_odds))
        with np.errstate(invalid="ignore"):
            nearness = np.abs(scores - threshold)  # among equal risks: a step of an isotonic function is cut there
        order = np.lexsort((nearness, -risk))
        reached = np.cumsum(at_base_rate(pairs, base_rate)[order])
        left_out = order[: int(np.searchsorted(reached, self.rate * (1 + 1e-9), side="right"))]
        below, above = left_out[~accepted[left_out]], left_out[accepted[left_out]]
        return Policy(
            float(scores[below].min(initial=threshold)),
            float(np.nextafter(scores[above].max(), np.inf)) if len(above) else threshold,
        )


@final
@dataclass(frozen=True)
class AbstainByCosts(Abstention):
    """Do what is cheapest on average when errors and abstentions have these costs.

    A pair of match probability p costs (1 − p) · `false_match` if accepted, p · `false_non_match` if rejected, and
    `abstention` if neither (Chow's rule).

    Args:
        false_match: Cost of accepting a pair that does not match.
        false_non_match: Cost of rejecting a pair that matches.
        abstention: Cost of leaving a pair undecided.
    """

    false_match: float
    false_non_match: float
    abstention: float

    def __post_init__(self) -> None:
        """Refuse costs that are not positive."""
        costs = (self.false_match, self.false_non_match, self.abstention)
        if not all(0 < cost < np.inf for cost in costs):
            raise ValueRangeError(
                f"costs of a false match, a false non-match and an abstention are positive numbers, got {costs}"
            )

    def threshold(self, calibrator: Calibrator, base_rate: float) -> float:
        return -np.inf  # the costs alone decide

    def policy(self, pairs: ScoredPairs, calibrator: Calibrator, base_rate: float, threshold: float) -> Policy:
        even = self.false_match / (self.false_match + self.false_non_match)  # accepting and rejecting cost the same
        accept_at, reject_to = max(1 - self.abstention / self.false_match, even), self.abstention / self.false_non_match
        shift = base_rate_shift(base_rate)
        accept_from = max(calibrator.inverse(float(logit(accept_at)) - shift), threshold)
        dearer = calibrator.inverse(float(logit(reject_to)) - shift) if reject_to < 1 else np.inf
        return Policy(min(dearer, accept_from), accept_from)


class Outcome(NamedTuple):
    """What a policy does to pairs.

    Args:
        base_rate: Share of the pairs that match.
        abstained: Share of all pairs that are left undecided.
        error: Share of the decided pairs that are decided wrongly.
        false_match_rate: Share of the non-matches that are accepted.
        false_non_match_rate: Share of the matches that are rejected.
    """

    base_rate: float
    abstained: float
    error: float
    false_match_rate: float
    false_non_match_rate: float


def outcome(policy: Policy, pairs: ScoredPairs, base_rate: float) -> Outcome:
    """Measure a policy on labelled pairs.

    Args:
        policy: The policy.
        pairs: The pairs.
        base_rate: Share of pairs that match where it is used.
    """
    weights, matches = at_base_rate(pairs, base_rate), pairs.matches
    accepted, undecided = policy.accepts(pairs.logit), policy.abstains(pairs.logit)
    wrong = ~undecided & (accepted != matches)
    decided = float(weights[~undecided].sum())
    return Outcome(
        base_rate,
        float(weights[undecided].sum()),
        float(weights[wrong].sum()) / decided if decided else float("nan"),
        float(wrong[~matches].mean()),
        float(wrong[matches].mean()),
    )


def at_base_rate(pairs: ScoredPairs, base_rate: float) -> Floats:
    """A weight for each pair, `(n,)`, so that all matches together weigh `base_rate`, and all pairs one.

    Args:
        pairs: The pairs.
        base_rate: Share of pairs that match where they are used.
    """
    return 2 * pairs.weights * np.where(pairs.matches, base_rate, 1 - base_rate)
