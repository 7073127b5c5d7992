"""Which calibrator: fitted on some identities, tried on others, the better one kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from hedged._odds import expit
from hedged.decisions.calibrators import Calibrator, Isotonic, Temperature
from hedged.decisions.pairs import Floats, ScoredPairs, folds
from hedged.errors import DataError
from hedged.metrics import Reliability, brier_score, negative_log_likelihood, reliability

KINDS: tuple[type[Calibrator], ...] = (Temperature, Isotonic)
FOLDS, BINS = 5, 15
CLIP = (
    1e-12,
    1 - 1e-12,
)  # of probabilities, so that the NLL of a wrong certainty is large but finite


@final
@dataclass(frozen=True, eq=False)
class Quality:
    """How well match probabilities are calibrated, on pairs of which half match.

    Args:
        reliability: Predicted and observed share of matches.
        brier: Brier score.
        nll: Negative log-likelihood.
    """

    reliability: Reliability
    brier: float
    nll: float

    @property
    def ece(self) -> float:
        """The expected calibration error over bins of equal mass."""
        return self.reliability.ece


class Trial(NamedTuple):
    """A kind of calibrator, and how well it did.

    Args:
        kind: The kind.
        quality: On identities that it was not fitted on.
    """

    kind: type[Calibrator]
    quality: Quality


@final
@dataclass(frozen=True, eq=False)
class Choice:
    """The calibrator that did best.

    Args:
        calibrator: Fitted on all pairs.
        before: Quality without a calibrator.
        trials: Quality of each kind, on identities held out in turn.
    """

    calibrator: Calibrator
    before: Quality
    trials: tuple[Trial, ...]

    @property
    def after(self) -> Quality:
        """The quality of the chosen kind, on identities held out in turn."""
        return next(trial.quality for trial in self.trials if trial.kind is type(self.calibrator))


def quality(log_odds: Floats, pairs: ScoredPairs, bins: int = BINS) -> Quality:
    """ECE, Brier score and NLL of log-odds, matches and non-matches weighing the same.

    Args:
        log_odds: Of a match, `(n,)`.
        pairs: The pairs that they are of.
        bins: Of the reliability diagram.
    """
    p, matches, weights = np.clip(expit(log_odds), *CLIP), pairs.matches, pairs.weights
    return Quality(
        reliability(p, matches, bins, weights),
        brier_score(p, matches, weights),
        negative_log_likelihood(p, matches, weights),
    )


def choose(pairs: ScoredPairs, kinds: Sequence[type[Calibrator]] = KINDS, seed: int = 0) -> Choice:
    """The kind of lowest NLL when each fold of the identities is predicted from the others, then fitted on all.

    A pair counts in a fold if both of its identities are there, and is fitted on if neither is: no identity is both
    fitted and tested on.

    Args:
        pairs: Scored pairs.
        kinds: The kinds of calibrator to try.
        seed: For the folds.
    """
    pairs.require_enough()
    fold = folds(pairs, FOLDS, seed)
    held_out = [pairs.within(fold == k) for k in range(FOLDS)]
    rest = [pairs.within(fold != k) for k in range(FOLDS)]
    together = _together(held_out)
    if min(together.matches.sum(), (~together.matches).sum()) < BINS:
        raise DataError(
            f"of {len(pairs)} pairs only {int(together.matches.sum())} matching and {int((~together.matches).sum())} "
            "other ones are left when identities are held out in turn: give more pairs, or more of the same identities"
        )
    trials = tuple(Trial(kind, quality(_predicted(kind, rest, held_out), together)) for kind in kinds)
    best = min(trials, key=lambda trial: trial.quality.nll)
    return Choice(best.kind.fit(pairs), quality(together.logit, together), trials)


def _predicted(kind: type[Calibrator], rest: Sequence[ScoredPairs], held_out: Sequence[ScoredPairs]) -> Floats:
    return np.concatenate([kind.fit(a).log_odds(b.logit) for a, b in zip(rest, held_out, strict=True)])


def _together(parts: Sequence[ScoredPairs]) -> ScoredPairs:
    columns = [np.concatenate(column) for column in zip(*((p.logit, p.first, p.second) for p in parts), strict=True)]
    return ScoredPairs(columns[0], columns[1], columns[2], parts[0].identities)
