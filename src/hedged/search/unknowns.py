"""Whether a probe is of any identity of a gallery at all, learnt from the gallery itself.

Images of the gallery are put to the test one after the other: once with the other images of their identity there, once
with all of them taken out. How well the best identity matches then tells the two apart, whatever the gallery's size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from hedged.distributions import Distribution
from hedged.match import MatchModel
from hedged.search.fusion import Fusion

Scores = NDArray[np.float64]
TRIALS, FEWEST = 300, 20  # images put to the test, and below which nothing can be learnt
PAIRS = 2e7  # compared in all, at most, unless there are fewer than FEWEST trials


class Trials(NamedTuple):
    """The log-odds of the best identity, of images whose identity is there and of the same with it taken out."""

    known: Scores
    unknown: Scores


class Openness(NamedTuple):
    """P(known | s) = σ(slope · s + shift) for the log-odds s of the best identity, known and unknown equally likely."""

    slope: float
    shift: float

    def log_odds(self, scores: Scores) -> Scores:
        """Log-odds of being known, (n,)."""
        return self.slope * scores + self.shift


def learn(images: Distribution, owner: torch.Tensor, fusion: Fusion, model: MatchModel) -> Openness | None:
    """What a gallery tells of the known and the unknown; None if it has too few identities of several images."""
    found = run_trials(images, owner, fusion, model)
    return fit(found) if len(found.known) >= FEWEST else None


def run_trials(images: Distribution, owner: torch.Tensor, fusion: Fusion, model: MatchModel) -> Trials:
    """Put images to the test, spread over the gallery."""
    counts = owner.bincount()
    several = torch.nonzero(counts[owner] > 1).flatten()
    if len(counts) < 2 or not len(several):
        return Trials(np.empty(0), np.empty(0))
    number = int(min(TRIALS, len(several), max(PAIRS / (2 * len(images)), FEWEST)))
    chosen = several[torch.linspace(0, len(several) - 1, number).round().long()]
    known: list[float] = []
    unknown: list[float] = []
    for i in chosen.tolist():
        probe, mine = images[i : i + 1], int(owner[i])
        others = torch.arange(len(images)) != i
        strangers = owner != mine
        shifted = owner - (owner > mine).long()  # identities are counted without gaps
        for scores, kept, whose in ((known, others, owner), (unknown, strangers, shifted)):
            scores.append(fusion.logits(probe, images[kept], whose[kept], model).max().item())
    return Trials(np.array(known), np.array(unknown))


def fit(trials: Trials) -> Openness:
    """The slope, not negative, and the shift of greatest likelihood, with Platt's targets: no trial is certain."""
    scores = np.concatenate(trials)
    count = len(trials.known)
    targets = np.repeat([(count + 1) / (count + 2), 1 / (count + 2)], count)
    centre, width = scores.mean(), scores.std() or 1.0

    def cost(at: Scores) -> tuple[float, Scores]:
        x = (scores - centre) / width
        log_odds = at[0] * x + at[1]
        value = -(targets * log_expit(log_odds) + (1 - targets) * log_expit(-log_odds)).mean()
        slope = expit(log_odds) - targets
        return float(value), np.array([(slope * x).mean(), slope.mean()])

    found = minimize(cost, np.zeros(2), jac=True, method="L-BFGS-B", bounds=[(0, 100), (-100, 100)]).x
    return Openness(float(found[0] / width), float(found[1] - found[0] * centre / width))
