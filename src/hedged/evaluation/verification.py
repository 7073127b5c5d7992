"""Same or not? Pairs decided at one threshold, by a saved calibration or by the best one of other identities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np
import torch
from numpy.typing import NDArray

from hedged._files import CALIBRATION
from hedged.data import PairList, Photos
from hedged.data.config import Broken
from hedged.data.photos.cache import decode_all, report_broken
from hedged.errors import DataError
from hedged.evaluation.evaluation import Condition, Evaluation, match_scores
from hedged.metrics import (
    Pairs,
    RejectCurve,
    UncertaintyCurve,
    all_pairs,
    average_precision,
    balanced_accuracy,
    balanced_accuracy_curve,
    best_threshold,
    is_constant,
    pair_reject_curve,
    random_pairs,
    roc_auc,
)
from hedged.models import Embedder, embed_all

if TYPE_CHECKING:  # slow to import, and only runs that were calibrated need it
    from hedged.decisions import Decider, Outcome

Array = NDArray[np.float64]
MOST_PAIRS = 2_000_000  # more are drawn at random
FIFTH = 0.2
EVEN_ODDS = "no data: it is p = 0.5, since no validation part has both kinds of pairs"
"""What `Decisions.chosen_on` says where no threshold could be chosen."""

CALIBRATED = f"the pairs that {CALIBRATION} was made from"


@final
@dataclass(frozen=True, eq=False)
class Decisions:
    """Pairs that are taken for a match where their log-odds reach a threshold.

    Args:
        pairs: The pairs.
        scores: The log-odds of a match of each pair.
        uncertainty: η of each item.
        threshold: The log-odds from which on a pair is taken for a match.
        chosen_on: In words, what the threshold was chosen on.
        decider: The saved calibration that the threshold is from, if it is from one.
    """

    pairs: Pairs
    scores: Array
    uncertainty: Array
    threshold: float = 0.0
    chosen_on: str = EVEN_ODDS
    decider: Decider | None = None

    @cached_property
    def balanced_accuracy(self) -> float:
        """The mean of the shares of matching and of other pairs that are decided rightly."""
        return balanced_accuracy(self.scores, self.pairs.matches, self.threshold)

    @cached_property
    def curve(self) -> UncertaintyCurve | None:
        """Balanced accuracy in 20 bins of the pairs' mean η; none if η is constant, or a bin has too few matches."""
        if is_constant(self.uncertainty):
            return None
        try:
            return balanced_accuracy_curve(self.uncertainty, self.pairs, self.scores, self.threshold)
        except DataError:
            return None

    @cached_property
    def rejects(self) -> RejectCurve | None:
        """1 − balanced accuracy when the most uncertain items are refused; none if η is constant."""
        if is_constant(self.uncertainty):
            return None
        return pair_reject_curve(self.uncertainty, self.pairs, self.scores, self.threshold)

    @cached_property
    def roc_auc(self) -> float:
        """Area under the ROC curve, over all thresholds."""
        return roc_auc(self.scores, self.pairs.matches)

    @cached_property
    def average_precision(self) -> float:
        """Average precision over all pairs."""
        return average_precision(self.scores, self.pairs.matches)

    @cached_property
    def outcome(self) -> Outcome | None:
        """What the calibration does to these pairs, abstentions included; none without a calibration."""
        if self.decider is None:
            return None
        from hedged.decisions import ScoredPairs, outcome

        other = (~self.pairs.matches).astype(np.intp)  # two identities will do: a pair is of one of them, or of both
        pairs = ScoredPairs(self.scores, np.zeros_like(other), other, identities=2)
        return outcome(self.decider.policy, pairs, self.decider.base_rate)

    @property
    def without_a_fifth(self) -> float | None:
        """Balanced accuracy when the 20 % most uncertain items are refused; none where too little is left."""
        curve = self.rejects
        if curve is None or not len(curve.rejected) or curve.rejected[-1] < FIFTH:
            return None
        return 1 - float(np.interp(FIFTH, curve.rejected, curve.error))

    def metrics(self) -> dict[str, Any]:
        """All of it in plain numbers."""
        return dict(self._measure())

    def _measure(self) -> Iterator[tuple[str, Any]]:
        matches = self.pairs.matches
        yield "pairs", len(self.pairs)
        yield "matches", int(matches.sum())
        yield "threshold", {"log_odds": self.threshold, "chosen_on": self.chosen_on}
        yield "balanced_accuracy", self.balanced_accuracy
        yield "roc_auc", self.roc_auc
        yield "average_precision", self.average_precision
        if self.outcome:
            yield "calibrated", self.outcome._asdict()
        if self.curve:
            yield "bin_correlation", {"kendall": self.curve.kendall, "pearson": self.curve.pearson}
        if self.without_a_fifth is not None:
            yield "without_a_fifth", {"balanced_accuracy": self.without_a_fifth}


def decide(
    evaluation: Evaluation,
    validation: Evaluation | None = None,
    condition: Condition = "clean",
    decider: Decider | None = None,
) -> Decisions:
    """All pairs of a test set (of a large one, some at random), decided at one threshold.

    Args:
        evaluation: The test set and the model.
        validation: The model on other identities, to choose the best threshold on.
        condition: Whether the inputs are clean or corrupt.
        decider: The calibration whose threshold is taken instead.
    """
    pairs = some_or_all_pairs(evaluation)
    scores, eta = evaluation.scores(pairs, condition), evaluation.uncertainty[condition]
    return Decisions(pairs, scores, eta, *_threshold(validation, decider), decider)


def decide_listed(
    embedder: Embedder,
    listed: PairList,
    validation: Evaluation | None = None,
    broken: Broken = "skip",
    decider: Decider | None = None,
) -> Decisions:
    """Listed pairs of image files, decided at one threshold.

    Args:
        embedder: The model.
        listed: The pairs.
        validation: The model on other identities, to choose the best threshold on.
        broken: Whether files that cannot be decoded are skipped and reported, or refused.
        decider: The calibration whose threshold is taken instead.
    """
    side, shape = embedder.architecture.resize, embedder.architecture.shape
    if side is None:
        z = embedder.embed(listed.paths)
    else:
        decoded = decode_all(listed.paths, side)
        report_broken(decoded, broken)
        listed, places = listed.without(decoded.broken)
        # As photos, not by `embed_chunks`: these are decoded once and kept in the cache for the next evaluation.
        nobody = torch.zeros(len(places), dtype=torch.int64)
        photos = Photos(decoded.pixels, places, nobody, [""], listed.paths, shape[1], "pairs")
        z = embed_all(embedder, photos.clean, len(photos))
    pairs = Pairs(listed.first, listed.second, listed.matches)
    eta = embedder.uncertainty(z).double().numpy()
    return Decisions(
        pairs, match_scores(pairs, z, embedder.match_model), eta, *_threshold(validation, decider), decider
    )


def _threshold(validation: Evaluation | None, decider: Decider | None) -> tuple[float, str]:
    """The log-odds from which on a pair is taken for a match, and in words what they were chosen on."""
    return (decider.policy.accept_from, CALIBRATED) if decider else choose_threshold(validation)


def choose_threshold(validation: Evaluation | None) -> tuple[float, str]:
    """The log-odds of the best balanced accuracy on pairs of clean inputs, and in words what they were chosen on.

    Args:
        validation: The model on validation identities; without one that has matches and others, even odds are taken.
    """
    if validation is None:
        return 0.0, EVEN_ODDS
    pairs = some_or_all_pairs(validation)
    if pairs.matches.all() or not pairs.matches.any():
        return 0.0, EVEN_ODDS
    return best_threshold(validation.scores(pairs, "clean"), pairs.matches).value, "validation identities"


def some_or_all_pairs(evaluation: Evaluation) -> Pairs:
    """All pairs of a test set, or 2,000,000 at random where there are more.

    Args:
        evaluation: The test set, and the seed that draws.
    """
    n = len(evaluation.labels)
    if n * (n - 1) // 2 <= MOST_PAIRS:
        return all_pairs(evaluation.labels)
    return random_pairs(evaluation.labels, MOST_PAIRS, seed=evaluation.seed)
