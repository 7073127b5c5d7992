"""Same or not? Pairs decided at one threshold, chosen on other identities than it is tested on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray

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
    pair_reject_curve,
    random_pairs,
    roc_auc,
)
from hedged.models import Embedder, embed_all

Array = NDArray[np.float64]
MOST_PAIRS = 2_000_000  # more are drawn at random
FIFTH = 0.2
EVEN_ODDS = "p = 0.5, for there is no validation part to choose it on"


@final
@dataclass(frozen=True, eq=False)
class Decisions:
    """Pairs that are taken for a match where their log-odds `scores` reach `threshold`, with η of each item."""

    pairs: Pairs
    scores: Array
    uncertainty: Array
    threshold: float = 0.0
    chosen_on: str = EVEN_ODDS

    @cached_property
    def balanced_accuracy(self) -> float:
        return balanced_accuracy(self.scores, self.pairs.matches, self.threshold)

    @cached_property
    def curve(self) -> UncertaintyCurve | None:
        """Balanced accuracy in 20 bins of the pairs' mean η; none for points, or where a bin has too few matches."""
        if np.ptp(self.uncertainty) == 0:
            return None
        try:
            return balanced_accuracy_curve(self.uncertainty, self.pairs, self.scores, self.threshold)
        except DataError:
            return None

    @cached_property
    def rejects(self) -> RejectCurve | None:
        """1 − balanced accuracy when the most uncertain items are refused; none for points."""
        if np.ptp(self.uncertainty) == 0:
            return None
        return pair_reject_curve(self.uncertainty, self.pairs, self.scores, self.threshold)

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
        yield "roc_auc", roc_auc(self.scores, matches)
        yield "average_precision", average_precision(self.scores, matches)
        if self.curve:
            yield "bin_correlation", {"kendall": self.curve.kendall, "pearson": self.curve.pearson}
        if self.without_a_fifth is not None:
            yield "without_a_fifth", {"balanced_accuracy": self.without_a_fifth}


def decide(evaluation: Evaluation, validation: Evaluation | None = None, condition: Condition = "clean") -> Decisions:
    """All pairs of a test set (of a large one, some at random), decided at the best threshold of a validation set."""
    pairs = some_or_all_pairs(evaluation)
    scores, eta = evaluation.scores(pairs, condition), evaluation.uncertainty[condition]
    return Decisions(pairs, scores, eta, *choose_threshold(validation))


def decide_listed(
    embedder: Embedder, listed: PairList, validation: Evaluation | None = None, broken: Broken = "skip"
) -> Decisions:
    """Listed pairs of image files, decided at the best threshold of a validation set; broken files are named."""
    side, shape = embedder.architecture.resize, embedder.architecture.shape
    if side is None:
        z = embedder.embed(listed.paths)
    else:
        decoded = decode_all(listed.paths, side)
        report_broken(decoded, broken)
        listed, places = listed.without(decoded.broken)
        nobody = torch.zeros(len(places), dtype=torch.int64)
        photos = Photos(decoded.pixels, places, nobody, [""], listed.paths, shape[1], "pairs")
        z = embed_all(embedder, photos.clean, len(photos))
    pairs = Pairs(listed.first, listed.second, listed.matches)
    eta = embedder.uncertainty(z).double().numpy()
    return Decisions(pairs, match_scores(pairs, z, embedder.match_model), eta, *choose_threshold(validation))


def choose_threshold(validation: Evaluation | None) -> tuple[float, str]:
    """The log-odds at which most pairs of clean images are told right, matches and others counting the same.

    In words, what it was chosen on: without a validation set that has matches and others, even odds.
    """
    if validation is None:
        return 0.0, EVEN_ODDS
    pairs = some_or_all_pairs(validation)
    if pairs.matches.all() or not pairs.matches.any():
        return 0.0, EVEN_ODDS
    return best_threshold(validation.scores(pairs, "clean"), pairs.matches).value, "validation identities"


def some_or_all_pairs(evaluation: Evaluation) -> Pairs:
    n = len(evaluation.labels)
    if n * (n - 1) // 2 <= MOST_PAIRS:
        return all_pairs(evaluation.labels)
    return random_pairs(evaluation.labels, MOST_PAIRS, seed=evaluation.seed)
