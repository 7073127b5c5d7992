"""Pairs of images with their match probability: likely, ambiguous and unlikely, right and wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from hedged._odds import expit
from hedged.evaluation.evaluation import CONDITIONS, Condition, Evaluation
from hedged.evaluation.images import images_of, reading
from hedged.evaluation.report.section import Picture, Section, picture
from hedged.metrics import Pairs

SHOWN, EXCEPTIONS = 6, 2  # pairs of a band, and how many of them are of the rarer kind if there are any


@final
@dataclass(frozen=True)
class Band:
    """Pairs whose match probability lies in a range.

    Args:
        title: What the model says of such pairs.
        low: The least match probability.
        high: The greatest.
        verdict: Whether such a pair is taken for a match; None where it could be either.
    """

    title: str
    low: float
    high: float
    verdict: bool | None


BANDS = (
    Band("Likely the same", 0.8, 1.0, verdict=True),
    Band("Could be either", 0.4, 0.6, verdict=None),
    Band("Likely different", 0.0, 0.2, verdict=False),
)


@final
@dataclass(frozen=True, eq=False)
class ShownPairs:
    """Pairs of one condition with their match probability.

    Args:
        condition: Clean or corrupt.
        pairs: Of test images.
        probability: Of a match, `(n,)`.
    """

    condition: Condition
    pairs: Pairs
    probability: NDArray[np.float64]


class Card(NamedTuple):
    """A pair as the page shows it."""

    pictures: list[Picture]
    condition: Condition
    probability: float
    truth: str
    wrong: bool


class ShownBand(NamedTuple):
    """A band with all its pairs counted and some of them shown; `matching` is the share of pairs that match."""

    band: Band
    total: int
    matching: float
    cards: list[Card]


def pairs_section(evaluation: Evaluation) -> Section:
    """Pairs of test images by their match probability.

    Args:
        evaluation: The test set, embedded; its images can be shown.
    """
    pairs = evaluation.verification_pairs
    scored = [ShownPairs(c, pairs, expit(evaluation.scores(pairs, c))) for c in CONDITIONS]
    bands = [_band(evaluation, scored, band) for band in BANDS]
    return Section("pairs.html", {"subject": evaluation.data.subject, "bands": bands})


def _band(evaluation: Evaluation, scored: list[ShownPairs], band: Band) -> ShownBand:
    inside = [
        (part, int(k))
        for part in scored
        for k in np.flatnonzero((part.probability >= band.low) & (part.probability <= band.high))
    ]
    if not inside:
        return ShownBand(band, 0, 0.0, [])
    truth = np.array([part.pairs.matches[k] for part, k in inside])
    chosen = _choose(truth, np.random.default_rng(evaluation.seed))
    cards = [_card(evaluation, *inside[i], band.verdict) for i in chosen]
    return ShownBand(band, len(inside), float(truth.mean()), cards)


def _choose(truth: NDArray[np.bool_], generator: np.random.Generator) -> list[int]:
    """Random pairs of the kind that prevails, then a few of the other."""
    usual = truth == (truth.mean() >= 0.5)
    rare = generator.permutation(np.flatnonzero(~usual))[:EXCEPTIONS]
    rest = generator.permutation(np.flatnonzero(usual))[: SHOWN - len(rare)]
    return [*map(int, rest), *map(int, rare)]


def _card(evaluation: Evaluation, part: ShownPairs, k: int, verdict: bool | None) -> Card:
    items = np.array([part.pairs.first[k], part.pairs.second[k]])
    labels = [reading(evaluation, item) for item in items]
    images = images_of(evaluation, part.condition, items)
    pictures = [picture(x, f"{part.condition} image of {y}") for x, y in zip(images, labels, strict=True)]
    match = bool(part.pairs.matches[k])
    truth = (" = " if match else " ≠ ").join(labels)
    return Card(
        pictures, part.condition, float(part.probability[k]), truth, wrong=verdict is not None and verdict != match
    )
