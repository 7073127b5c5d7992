"""What is measured of an embedding of pets: all pairs of photos of pets that it has never seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self, final

import numpy as np

from hedged.data import Dataset, Splits
from hedged.errors import DataError
from hedged.evaluation import Array, Decisions, Evaluation, decide
from hedged.metrics import equal_count_bins, roc_auc
from hedged.metrics.uncertainty import UncertaintyCurve
from hedged.models import Embedder

FAINTEST, STRONGEST, COLUMNS = -18.0, 6.0, 48  # log-odds of matches in a histogram; beyond counts at its ends


@final
@dataclass(frozen=True)
class Spread:
    """How many pairs of the same pet and of different pets have which log-odds, in `COLUMNS` equal columns.

    Args:
        same: Counts of pairs of one pet, a column each.
        different: Counts of pairs of two pets.
    """

    same: Sequence[int]
    different: Sequence[int]


@final
@dataclass(frozen=True)
class BinsOfUncertainty:
    """Pairs in 20 bins of η(x₁, x₂): balanced accuracy and mean η of each, their correlation, both ends in detail.

    `kept_accuracy` is the balanced accuracy when the most uncertain fifth of the photos is refused.

    Args:
        accuracy: Balanced accuracy, a number a bin.
        uncertainty: Mean η, a number a bin.
        kendall: Kendall's τ of the two.
        pearson: Pearson's r of the two.
        kept_accuracy: Balanced accuracy when the most uncertain fifth of the photos is refused.
        lowest: The pairs of the first bin.
        highest: The pairs of the last bin.
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
    """Verification on pets that were held out, at the threshold that is best on validation pets.

    Args:
        pets: Identities that are tested.
        photos: Of these.
        matches: Pairs of photos of one pet.
        pairs: All pairs.
        validation_pets: Identities that the threshold was chosen on.
        threshold: On the log-odds of a match.
        accuracy: Balanced accuracy at that threshold.
        roc_auc: The area under the ROC curve.
        bins: Pairs by uncertainty; None for a point, which has none.
    """

    pets: int
    photos: int
    matches: int
    pairs: int
    validation_pets: int
    threshold: float  # on the log-odds of a match
    accuracy: float
    roc_auc: float
    bins: BinsOfUncertainty | None  # none of a point, which has no uncertainty

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Self:
        """From plain data, as `asdict` gives it; what else is there is left out.

        Args:
            content: What `asdict` gave; unknown keys are left out.
        """
        found = {field.name: content[field.name] for field in fields(cls)}
        if found["bins"] is not None:
            ends = {end: Spread(**found["bins"][end]) for end in ("lowest", "highest")}
            found["bins"] = BinsOfUncertainty(**{**found["bins"], **ends})
        return cls(**found)


def measure_pets(embedder: Embedder, splits: Splits[Dataset]) -> PetMeasures:
    """Choose a threshold on validation pets; measure on test pets, all pairs of their photos.

    Args:
        embedder: A trained model.
        splits: Its data; the validation part is needed.
    """
    if splits.validation is None:
        raise DataError("there are no validation pets to choose a threshold on: set data.validation_share to 0.1 or so")
    test = next(iter(splits.test.values()))
    found = decide(Evaluation(embedder, test), Evaluation(embedder, splits.validation))
    return PetMeasures(
        pets=test.n_classes,
        photos=len(test),
        matches=int(found.pairs.matches.sum()),
        pairs=len(found.pairs),
        validation_pets=splits.validation.n_classes,
        threshold=found.threshold,
        accuracy=found.balanced_accuracy,
        roc_auc=roc_auc(found.scores, found.pairs.matches),
        bins=None if np.ptp(found.uncertainty) == 0 else _bins(found),
    )


def _bins(found: Decisions) -> BinsOfUncertainty:
    curve, kept = found.curve, found.without_a_fifth
    if curve is None or kept is None:
        raise DataError(
            f"the {len(found.uncertainty)} photos of test pets have {found.pairs.matches.sum()} matching pairs, too "
            "few for bins of uncertainty: use more photos of more pets"
        )
    return BinsOfUncertainty(
        accuracy=curve.performance.tolist(),
        uncertainty=curve.uncertainty.tolist(),
        kendall=curve.kendall,
        pearson=curve.pearson,
        kept_accuracy=kept,
        lowest=_spread(found, curve, 0),
        highest=_spread(found, curve, len(curve.counts) - 1),
    )


def _spread(found: Decisions, curve: UncertaintyCurve, which: int) -> Spread:
    pairs, eta = found.pairs, found.uncertainty
    members = equal_count_bins((eta[pairs.first] + eta[pairs.second]) / 2, len(curve.counts)) == which
    return Spread(_counts(found.scores[members & pairs.matches]), _counts(found.scores[members & ~pairs.matches]))


def _counts(log_odds: Array) -> list[int]:
    counts, _ = np.histogram(np.clip(log_odds, FAINTEST, STRONGEST), COLUMNS, (FAINTEST, STRONGEST))
    counted: list[int] = counts.tolist()
    return counted
