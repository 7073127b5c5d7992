"""From labelled pairs to decisions: calibrate, set the threshold, choose when to abstain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from hedged.decisions.calibrators import base_rate_shift
from hedged.decisions.choice import Choice, Quality, choose
from hedged.decisions.decider import Decider
from hedged.decisions.pairs import ScoredPairs
from hedged.decisions.policy import AbstainByRate, Abstention, Outcome, outcome
from hedged.decisions.thresholds import FalseMatchThreshold, false_match_threshold
from hedged.errors import ValueRangeError

NEVER = AbstainByRate(0.0)
SCORES_KEPT = 2000  # of matching pairs, and of the others


@final
@dataclass(frozen=True)
class Aims:
    """What is asked of the decisions.

    Args:
        false_match_rate: Share of non-matches that may be accepted; None: accept where a match is more likely than
            not, or as the costs say.
        abstention: When to abstain.
        base_rate: Share of pairs that match where the decisions are made.
    """

    false_match_rate: float | None = 0.01
    abstention: Abstention = NEVER
    base_rate: float = 0.5

    def __post_init__(self) -> None:
        """Refuse rates outside (0, 1)."""
        base_rate_shift(self.base_rate)
        rate = self.false_match_rate
        if rate is not None and not 0 < rate < 1:
            raise ValueRangeError(f"a target false-match rate lies between 0 and 1, got {rate:g}")


AIMS = Aims()


@final
@dataclass(frozen=True, eq=False)
class Calibration:
    """What was found: the decider to use, and the evidence for it.

    Args:
        decider: Calibrator and policy, ready to use.
        choice: How the calibrator was chosen.
        threshold: For the false-match rate, if one was asked for.
        outcome: Of the policy on `pairs`.
        pairs: The pairs that all this was found on.
        aims: What was asked for.
    """

    decider: Decider
    choice: Choice
    threshold: FalseMatchThreshold | None
    outcome: Outcome
    pairs: ScoredPairs
    aims: Aims

    @property
    def kind(self) -> str:
        """The chosen kind of calibrator, in a word."""
        return self.decider.calibrator.kind

    def report(self) -> dict[str, Any]:
        """All of it in plain numbers, as `calibration.json` holds it."""
        matches = int(self.pairs.matches.sum())
        return {
            "pairs": {"matching": matches, "other": len(self.pairs) - matches, "identities": self.pairs.identities},
            "chosen": self.kind,
            "before": _numbers(self.choice.before),
            "after": {trial.kind.kind: _numbers(trial.quality) for trial in self.choice.trials},
            "threshold": _threshold(self.threshold),
            "abstention": dict(vars(self.aims.abstention)),
            "outcome": self.outcome._asdict(),
        }


def calibrate(pairs: ScoredPairs, fingerprint: str, aims: Aims = AIMS, seed: int = 0) -> Calibration:
    """Choose and fit a calibrator, find the threshold for the false-match rate, and choose when to abstain.

    Args:
        pairs: Scored pairs of identities that the model was not trained on, or of images that it was not.
        fingerprint: Of the model that scored them, `Embedder.fingerprint()`.
        aims: The base rate, the false-match rate and when to abstain.
        seed: For the folds of identities and the bootstrap.
    """
    choice = choose(pairs, seed=seed)
    threshold = None
    if aims.false_match_rate is not None:
        threshold = false_match_threshold(pairs, aims.false_match_rate, seed=seed)
        accept_from = threshold.score
    else:
        accept_from = aims.abstention.threshold(choice.calibrator, aims.base_rate)
    policy = aims.abstention.policy(pairs, choice.calibrator, aims.base_rate, accept_from)
    decider = Decider(fingerprint, choice.calibrator, aims.base_rate, policy, scores=_scores(pairs))
    return Calibration(decider, choice, threshold, outcome(policy, pairs, aims.base_rate), pairs, aims)


def _scores(pairs: ScoredPairs) -> dict[str, tuple[float, ...]]:
    """The scores of either kind of pairs, sorted; of many, as many as are kept, evenly spaced."""
    found = {}
    for name, wanted in (("match", True), ("non_match", False)):
        scores = np.nan_to_num(np.sort(pairs.logit[pairs.matches == wanted]))  # JSON has no infinity
        kept = scores[np.linspace(0, len(scores) - 1, min(len(scores), SCORES_KEPT)).round().astype(int)]
        found[name] = tuple(float(f"{score:.6g}") for score in kept)
    return found


def _numbers(quality: Quality) -> dict[str, float]:
    return {"ece": quality.ece, "brier": quality.brier, "nll": quality.nll}


def _threshold(found: FalseMatchThreshold | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "score": found.score,
        "target": found.target,
        "false_match_rate": found.rate,
        "interval": [found.rates.low, found.rates.high],
        "false_non_match_rate": found.misses,
        "false_non_match_interval": [found.miss_rates.low, found.miss_rates.high],
        "level": found.rates.level,
        "identities": found.identities,
    }
