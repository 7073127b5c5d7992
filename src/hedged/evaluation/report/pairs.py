"""Pairs of images with their match probability: likely, ambiguous and unlikely, right and wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from hedged.evaluation.evaluation import CONDITIONS, Condition, Evaluation
from hedged.evaluation.images import images_of, reading, thumbnail
from hedged.evaluation.report.markup import Section, escape, grid, note
from hedged.metrics import Pairs, balanced_pairs

SHOWN, EXCEPTIONS = 6, 2  # pairs of a band, and how many of them are of the rarer kind if there are any


@final
@dataclass(frozen=True)
class Band:
    """Pairs whose match probability lies from `low` to `high`."""

    title: str
    low: float
    high: float
    verdict: bool | None  # what such a p says of a pair


BANDS = (
    Band("Likely the same", 0.8, 1.0, verdict=True),
    Band("Could be either", 0.4, 0.6, verdict=None),
    Band("Likely different", 0.0, 0.2, verdict=False),
)


@final
@dataclass(frozen=True, eq=False)
class ScoredPairs:
    """Pairs of one condition with their match probability."""

    condition: Condition
    pairs: Pairs
    probability: NDArray[np.float64]


def pairs_section(evaluation: Evaluation) -> Section:
    subject = evaluation.data.subject
    lead = (
        f"The match probability <i>p</i> of two images says whether they show the same {subject}: 1 is yes, 0 is no, "
        "and in between the model does not know. Below each pair is what it truly shows. Pairs are drawn at random, up "
        "to two of them of the rarer kind, so that you see mistakes too. Training treats matches as rare; half of the "
        "pairs here match, so expect more true matches than <i>p</i> promises."
    )
    pairs = balanced_pairs(evaluation.labels, seed=evaluation.seed)
    scored = [ScoredPairs(c, pairs, expit(evaluation.scores(pairs, c))) for c in CONDITIONS]
    body = "\n".join(_band(evaluation, scored, band) for band in BANDS)
    return Section("pairs", "Are these two the same?", lead, body)


def _band(evaluation: Evaluation, scored: list[ScoredPairs], band: Band) -> str:
    inside = [
        (part, int(k))
        for part in scored
        for k in np.flatnonzero((part.probability >= band.low) & (part.probability <= band.high))
    ]
    title = f"<h3>{escape(band.title)} <small>p from {band.low:.1f} to {band.high:.1f}</small></h3>\n"
    if not inside:
        return title + note("No pair of the test set has such a match probability.")
    truth = np.array([part.pairs.matches[k] for part, k in inside])
    share = f'<p class="share">{len(inside):,} pairs, of which {truth.mean():.1%} truly match.</p>\n'
    chosen = _choose(truth, np.random.default_rng(evaluation.seed))
    return title + share + grid([_card(evaluation, *inside[i], band.verdict) for i in chosen], "pairs")


def _choose(truth: NDArray[np.bool_], generator: np.random.Generator) -> list[int]:
    """Random pairs of the kind that prevails, then a few of the other."""
    usual = truth == (truth.mean() >= 0.5)
    rare = generator.permutation(np.flatnonzero(~usual))[:EXCEPTIONS]
    rest = generator.permutation(np.flatnonzero(usual))[: SHOWN - len(rare)]
    return [*map(int, rest), *map(int, rare)]


def _card(evaluation: Evaluation, part: ScoredPairs, k: int, verdict: bool | None) -> str:
    items = np.array([part.pairs.first[k], part.pairs.second[k]])
    labels = [reading(evaluation, item) for item in items]
    images = images_of(evaluation, part.condition, items)
    pictures = "".join(thumbnail(x, f"{part.condition} image of {y}") for x, y in zip(images, labels, strict=True))
    p, match = part.probability[k], bool(part.pairs.matches[k])
    truth = (" = " if match else " ≠ ").join(labels)
    mistake = " <em>wrong</em>" if verdict is not None and verdict != match else ""
    bar = f'<div class="bar"><i class="{part.condition}" style="width:{100 * p:.1f}%"></i></div>'
    kind = f'<span class="{part.condition}">{part.condition}</span>'
    return f'<div class="pair">{pictures}{bar}<p><b>p {p:.2f}</b> {escape(truth)}{mistake} {kind}</p></div>'
