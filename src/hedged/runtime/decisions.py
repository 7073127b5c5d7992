"""Accept, reject or abstain, by the calibration that was exported with a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from hedged._odds import expit, logit
from hedged.runtime.embeddings import Floats

ACCEPT, REJECT, ABSTAIN = "accept", "reject", "abstain"


@final
@dataclass(frozen=True, eq=False)
class Decisions:
    """What is done about pairs.

    Args:
        verdict: "accept", "reject" or "abstain", of the shape that was asked for.
        probability: the calibrated probability that each matches, at the base rate of the calibration.
    """

    verdict: NDArray[np.str_]
    probability: Floats


class Calibrator(ABC):
    """A rising function from the log-odds of a model to calibrated log-odds, where half of the pairs match."""

    @abstractmethod
    def calibrated(self, log_odds: Floats) -> Floats:
        """Calibrated log-odds, of the shape of what is given."""


@final
@dataclass(frozen=True)
class Temperature(Calibrator):
    """x ↦ x / T + c."""

    temperature: float
    shift: float

    def calibrated(self, log_odds: Floats) -> Floats:
        return log_odds / self.temperature + self.shift


@final
@dataclass(frozen=True, eq=False)
class Isotonic(Calibrator):
    """Straight between (`scores[i]`, `values[i]`), both rising; flat beyond the ends."""

    scores: Floats
    values: Floats

    def calibrated(self, log_odds: Floats) -> Floats:
        return np.asarray(np.interp(log_odds, self.scores, self.values))


@final
@dataclass(frozen=True, eq=False)
class Calibration:
    """A calibrator, and two thresholds on the log-odds of the model.

    Args:
        calibrator: from the model's log-odds to calibrated ones.
        base_rate: the share of pairs that match where it is used.
        reject_below: pairs with lower log-odds are rejected.
        accept_from: pairs with at least these are accepted; those between are left undecided.
    """

    calibrator: Calibrator
    base_rate: float
    reject_below: float
    accept_from: float

    def decide(self, log_odds: Floats) -> Decisions:
        """Decisions about pairs.

        Args:
            log_odds: the model's, of any shape.
        """
        below = np.where(log_odds < self.reject_below, REJECT, ABSTAIN)
        calibrated = self.calibrator.calibrated(log_odds) + logit(self.base_rate)
        return Decisions(np.where(log_odds >= self.accept_from, ACCEPT, below), expit(calibrated))
