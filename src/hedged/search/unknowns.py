"""Whether a probe shows any identity of a gallery at all, learned from the gallery itself.

Images of the gallery are tried one by one: once with the other images of their identity present, once with all of them
left out. The match with the best identity then separates the known from the unknown, whatever the gallery's size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from hedged.decisions.calibrators import fit_logistic
from hedged.distributions import Distribution
from hedged.match import MatchModel
from hedged.search.fusion import Fusion

Scores = NDArray[np.float64]
MAX_TRIALS, MIN_TRIALS = 300, 20  # images that are tried; with fewer nothing can be learned
MAX_PAIRS = 2e7  # compared in all, unless that leaves fewer than MIN_TRIALS trials
BOUNDS = ((0, 100), (-100, 100))  # of the slope, which is not negative, and the shift, of standardised scores


class Trials(NamedTuple):
    """The log-odds of the best identity: of images whose identity is present, and of the same images without it."""

    known: Scores
    unknown: Scores


class Openness(NamedTuple):
    """P(known | s) = σ(slope · s + shift) for the log-odds s of the best identity, known and unknown equally likely."""

    slope: float
    shift: float

    def log_odds(self, scores: Scores) -> Scores:
        """Log-odds of being known, `(n,)`.

        Args:
            scores: Log-odds of the best identity, `(n,)`.
        """
        return self.slope * scores + self.shift


def learn(images: Distribution, owner: torch.Tensor, fusion: Fusion, model: MatchModel) -> Openness | None:
    """What a gallery says of the known and the unknown; None if too few of its identities have several images.

    Args:
        images: M embeddings.
        owner: Whose each of them is, int64 `(M,)` in 0 … G − 1.
        fusion: How the images of an identity are taken together.
        model: When two embeddings match.
    """
    found = run_trials(images, owner, fusion, model)
    return fit(found) if len(found.known) >= MIN_TRIALS else None


def run_trials(images: Distribution, owner: torch.Tensor, fusion: Fusion, model: MatchModel) -> Trials:
    """Try images that are spread over the gallery.

    Args:
        images: M embeddings.
        owner: Whose each of them is, int64 `(M,)` in 0 … G − 1.
        fusion: How the images of an identity are taken together.
        model: When two embeddings match.
    """
    counts = owner.bincount()
    several = torch.nonzero(counts[owner] > 1).flatten()
    if len(counts) < 2 or not len(several):
        return Trials(np.empty(0), np.empty(0))
    number = int(min(MAX_TRIALS, len(several), max(MAX_PAIRS / (2 * len(images)), MIN_TRIALS)))
    chosen = several[torch.linspace(0, len(several) - 1, number).round().long()]
    known, strangers = fusion.held_out(images, owner, chosen, model)
    return Trials(known.amax(dim=1).numpy(), strangers.amax(dim=1).numpy())


def fit(trials: Trials) -> Openness:
    """The slope and shift of greatest likelihood, with Platt's targets: no trial is certain.

    Args:
        trials: As many of the known as of the unknown.
    """
    scores = np.concatenate(trials)
    count = len(trials.known)
    targets = np.repeat([(count + 1) / (count + 2), 1 / (count + 2)], count)
    centre, width = scores.mean(), scores.std() or 1.0
    weights = np.full(len(scores), 1 / len(scores))
    slope, shift = fit_logistic((scores - centre) / width, targets, weights, start=(0.0, 0.0), bounds=BOUNDS)
    return Openness(float(slope / width), float(shift - slope * centre / width))
