"""Do decisions keep their word on other identities? Calibrated on one half of the identities, measured on the other.

Over and over, for random halves: the calibration error, whether the false-match rate lies within its interval, and the
error that is left when a fifth of the pairs is not decided, beside other reasons not to decide.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import KDTree

from hedged._odds import expit
from hedged.decisions import Quality, ScoredPairs, choose, false_match_threshold, quality
from hedged.distributions import Distribution
from hedged.evaluation import match_scores
from hedged.match import MatchModel, self_mismatch
from hedged.metrics import Pairs, balanced_pairs, reject_curve

Array = NDArray[np.float64]

SPLITS, PAIRS, TARGET, ABSTAIN = 20, 100_000, 0.01, 0.2
BASELINES = ("nearest-neighbour distance", "trace of Σ", "random")  # reasons not to decide that we are held against
CHOICES = ("expected error", *BASELINES, "η", "distance from the threshold")  # the last two for comparison
SHARES = np.linspace(0, 0.5, 51)  # of pairs not decided, for the figure


@final
@dataclass(frozen=True, eq=False)
class Items:
    """Embedded images with their identities, as integers (n,).

    Args:
        z: Embeddings of the images.
        labels: The identity of each, `(n,)`.
        model: What two of them are matched by.
    """

    z: Distribution
    labels: NDArray[np.int64]
    model: MatchModel

    def of(self, identities: NDArray[np.int64]) -> Items:
        """The items of these identities.

        Args:
            identities: Whose items to take.
        """
        rows = np.flatnonzero(np.isin(self.labels, identities))
        return Items(self.z[torch.from_numpy(rows)], self.labels[rows], self.model)

    def scored(self, pairs: Pairs) -> ScoredPairs:
        """Log-odds of pairs of these images, with their identities.

        Args:
            pairs: Of these images.
        """
        scores = match_scores(pairs, self.z, self.model)
        return ScoredPairs.of(scores, self.labels[pairs.first], self.labels[pairs.second])


@final
@dataclass(frozen=True)
class Trial:
    """One half calibrated on, the other measured; `left`: the error at each share not decided, by what is left out.

    Args:
        chosen: The kind of calibrator.
        ece_before: Calibration error as the model gives probabilities.
        ece: Calibration error after calibration.
        brier: Brier score after calibration.
        nll: Negative log-likelihood after calibration.
        threshold: For the false-match rate aimed at, on the log-odds.
        false_match_rate: What it came to.
        low: The lower end of its interval.
        high: The upper end.
        error: The share of wrong decisions if all pairs are decided.
        left: The error at each share not decided, by what is left out.
        bins: Of reliability, predicted and observed, before and after.
    """

    chosen: str
    ece_before: float
    ece: float
    brier: float
    nll: float
    threshold: float
    false_match_rate: float
    low: float
    high: float
    error: float
    left: dict[str, list[float]]
    bins: dict[str, list[float]]  # of reliability: predicted and observed, before and after

    @property
    def inside(self) -> bool:
        """Whether the false-match rate lies within its interval."""
        return self.low <= self.false_match_rate <= self.high

    def at(self, name: str, share: float = ABSTAIN) -> float:
        """The error that is left when this share is not decided.

        Args:
            name: What is left out, one of `CHOICES`.
            share: Of pairs not decided.
        """
        return self.left[name][int(np.argmin(np.abs(SHARES - share)))]


def halves(labels: NDArray[np.int64], splits: int = SPLITS) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Random halves of the identities, a pair for each split.

    Args:
        labels: Identities of the items.
        splits: How many pairs of halves.
    """
    names = np.unique(labels)
    for seed in range(splits):
        order = np.random.default_rng(seed).permutation(names)
        yield order[: len(names) // 2], order[len(names) // 2 :]


def measure(known: Items, new: Items, seed: int = 0, count: int = PAIRS) -> Trial:
    """Calibrate on `count` pairs of some items, then measure on as many of other identities.

    Args:
        known: Items to calibrate on.
        new: Items of other identities.
        seed: Of the pairs.
        count: How many pairs of each.
    """
    here = known.scored(balanced_pairs(known.labels, count, seed))
    there = balanced_pairs(new.labels, count, seed + SPLITS)
    tested = new.scored(there)
    choice = choose(here)
    log_odds = choice.calibrator.log_odds(tested.logit)
    before, after = quality(tested.logit, tested), quality(log_odds, tested)
    aimed = false_match_threshold(here, TARGET)
    accepted = tested.logit[~tested.matches] >= aimed.score
    right = (log_odds >= 0) == tested.matches
    left = {
        name: np.interp(SHARES, *_curve(reason, right)).tolist()
        for name, reason in _reasons(new, there, log_odds, seed).items()
    }
    return Trial(
        choice.calibrator.kind, before.ece, after.ece, after.brier, after.nll,
        aimed.score, float(accepted.mean()), aimed.rates.low, aimed.rates.high, float(1 - right.mean()), left,
        _bins("before", before) | _bins("after", after),
    )  # fmt: skip


def _reasons(new: Items, pairs: Pairs, log_odds: Array, seed: int) -> dict[str, Array]:
    """For each way to choose what is not decided, a number a pair: the higher, the sooner it is left out."""
    with torch.no_grad():
        spread = new.z.variance.sum(-1).double().numpy()
        eta = self_mismatch(new.z, new.model).double().numpy()
    means = new.z.mean.double().numpy()
    alone: Array = np.asarray(KDTree(means).query(means, k=[2])[0])[:, 0]  # the nearest of all is the image itself
    distance = np.linalg.norm(means[pairs.first] - means[pairs.second], axis=1)
    border = np.median(distance[np.argsort(np.abs(log_odds))[: max(len(log_odds) // 100, 1)]])

    def both(each: Array) -> Array:
        total: Array = each[pairs.first] + each[pairs.second]
        return total

    random = np.random.default_rng(seed).random(len(pairs))
    found = (expit(-np.abs(log_odds)), both(alone), both(spread), random, both(eta), -np.abs(distance - border))
    return dict(zip(CHOICES, found, strict=True))


def _curve(reason: Array, right: NDArray[np.bool_]) -> tuple[Array, Array]:
    curve = reject_curve(reason, right)
    return curve.rejected, curve.error


def _bins(when: str, found: Quality) -> dict[str, list[float]]:
    bins = found.reliability
    return {f"predicted {when}": bins.predicted.tolist(), f"observed {when}": bins.observed.tolist()}


def curves(trials: list[Trial]) -> dict[str, Any]:
    """The error by the share of pairs not decided, averaged over the splits.

    Args:
        trials: One a split.
    """
    return {
        "not_decided": SHARES.tolist(),
        "error": {name: np.mean([trial.left[name] for trial in trials], axis=0).tolist() for name in CHOICES},
    }


def summary(trials: list[Trial]) -> dict[str, Any]:
    """Means over the splits, and how many of them kept their word.

    Args:
        trials: One a split.
    """
    left = {name: float(np.mean([trial.at(name) for trial in trials])) for name in CHOICES}
    best = [min(trial.at(name) for name in BASELINES) for trial in trials]
    return {
        "splits": len(trials),
        "ece_before": float(np.mean([trial.ece_before for trial in trials])),
        "ece": float(np.mean([trial.ece for trial in trials])),
        "ece_highest": max(trial.ece for trial in trials),
        "false_match_rate_inside": sum(trial.inside for trial in trials),
        "error": float(np.mean([trial.error for trial in trials])),
        "error_after_abstaining": left,
        "no_worse_than_any_baseline": sum(trial.at(CHOICES[0]) <= low for trial, low in zip(trials, best, strict=True)),
    }


def as_json(trial: Trial) -> dict[str, Any]:
    """A trial in plain numbers; of the curves, what is left at the share in question.

    Args:
        trial: One split.
    """
    return asdict(trial) | {"inside": trial.inside, "left": {name: trial.at(name) for name in CHOICES}}
