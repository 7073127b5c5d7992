"""What is measured of an embedding of pets: all pairs of photos of pets that it has never seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self, final

import numpy as np
import torch

from hedged.data import Dataset, Splits
from hedged.distributions import Distribution, Point
from hedged.embedder import Embedder
from hedged.errors import DataError
from hedged.match import match_matrix, self_mismatch
from hedged.metrics import (
    Pairs,
    UncertaintyCurve,
    all_pairs,
    balanced_accuracy,
    balanced_accuracy_curve,
    best_threshold,
    equal_count_bins,
    roc_auc,
)
from hedged.metrics._arrays import BoolArray, FloatArray

BINS = 20
LEAST = 20  # matches in a bin: the accuracy of fewer is noise
REJECTED = 0.2  # of the photos, the most uncertain
FAINTEST, STRONGEST, COLUMNS = -18.0, 6.0, 48  # log-odds of matches in a histogram; beyond counts at its ends


@final
@dataclass(frozen=True)
class Spread:
    """How many pairs of the same pet and of different pets have which log-odds, in `COLUMNS` equal columns."""

    same: Sequence[int]
    different: Sequence[int]


@final
@dataclass(frozen=True)
class BinsOfUncertainty:
    """Pairs in 20 bins of η(x₁, x₂): balanced accuracy and mean η of each, their correlation, both ends in detail.

    `kept_accuracy` is the balanced accuracy when the share `REJECTED` of the photos that is most uncertain is refused.
    """

    accuracy: Sequence[float]
    uncertainty: Sequence[float]
    kendall: float
    pearson: float
    kept_accuracy: float
    lowest: Spread
    highest: Spread


@final
@dataclass(frozen=True)
class PetMeasures:
    """Verification on pets that were held out, at the threshold that is best on validation pets."""

    pets: int
    photos: int
    matches: int
    pairs: int
    validation_pets: int
    threshold: float
    validation_accuracy: float
    accuracy: float
    roc_auc: float
    bins: BinsOfUncertainty | None  # none of a point, which has no uncertainty

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Self:
        """From plain data, as `asdict` gives it; what else is there is left out."""
        found = {field.name: content[field.name] for field in fields(cls)}
        if found["bins"] is not None:
            ends = {end: Spread(**found["bins"][end]) for end in ("lowest", "highest")}
            found["bins"] = BinsOfUncertainty(**{**found["bins"], **ends})
        return cls(**found)


@final
@dataclass(frozen=True, eq=False)
class _Scored:
    """All pairs of some photos, the match probability of each pair, and η of each photo."""

    pairs: Pairs
    scores: FloatArray
    uncertainty: FloatArray


def measure_pets(embedder: Embedder, splits: Splits) -> PetMeasures:
    """Choose a threshold on validation pets; measure on test pets, all pairs of their photos."""
    if splits.validation is None:
        raise DataError("there are no validation pets to choose a threshold on: set data.validation_share to 0.1 or so")
    chosen_on = _scored(embedder, splits.validation)
    threshold = best_threshold(chosen_on.scores, chosen_on.pairs.matches)
    test = next(iter(splits.test.values()))
    z = embedder.embed(test.clean())
    found = _of(z, embedder, test)
    return PetMeasures(
        pets=test.n_classes,
        photos=len(test),
        matches=int(found.pairs.matches.sum()),
        pairs=len(found.pairs),
        validation_pets=splits.validation.n_classes,
        threshold=threshold.value,
        validation_accuracy=threshold.balanced_accuracy,
        accuracy=balanced_accuracy(found.scores, found.pairs.matches, threshold.value),
        roc_auc=roc_auc(found.scores, found.pairs.matches),
        bins=None if isinstance(z, Point) else _bins(found, threshold.value),
    )


def _scored(embedder: Embedder, photos: Dataset) -> _Scored:
    return _of(embedder.embed(photos.clean()), embedder, photos)


@torch.no_grad()
def _of(z: Distribution, embedder: Embedder, photos: Dataset) -> _Scored:
    pairs = all_pairs(photos.labels.numpy())
    matrix = match_matrix(z, z, embedder.curve).double().numpy()
    return _Scored(pairs, matrix[pairs.first, pairs.second], self_mismatch(z, embedder.curve).double().numpy())


def _bins(found: _Scored, threshold: float) -> BinsOfUncertainty:
    pairs, scores, eta = found.pairs, found.scores, found.uncertainty
    curve: UncertaintyCurve = balanced_accuracy_curve(eta, pairs, scores, threshold, BINS, LEAST)
    index = equal_count_bins((eta[pairs.first] + eta[pairs.second]) / 2, BINS)
    refused = equal_count_bins(eta, round(1 / REJECTED)) == round(1 / REJECTED) - 1
    kept = ~(refused[pairs.first] | refused[pairs.second])
    return BinsOfUncertainty(
        accuracy=curve.performance.tolist(),
        uncertainty=curve.uncertainty.tolist(),
        kendall=curve.kendall,
        pearson=curve.pearson,
        kept_accuracy=balanced_accuracy(scores[kept], pairs.matches[kept], threshold),
        lowest=_spread(scores, pairs.matches, index == 0),
        highest=_spread(scores, pairs.matches, index == BINS - 1),
    )


def _spread(scores: FloatArray, matches: BoolArray, members: BoolArray) -> Spread:
    return Spread(_counts(scores[members & matches]), _counts(scores[members & ~matches]))


def _counts(probability: FloatArray) -> list[int]:
    with np.errstate(divide="ignore"):  # a match that is out of the question counts in the first column
        log_odds = np.log(probability) - np.log1p(-probability)
    counts, _ = np.histogram(np.clip(log_odds, FAINTEST, STRONGEST), COLUMNS, (FAINTEST, STRONGEST))
    counted: list[int] = counts.tolist()
    return counted
