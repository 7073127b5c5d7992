"""Calibrating a trained model: on the images that its run kept for validation, or on a list of labelled pairs."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import final

from hedged.data import PairList
from hedged.decisions import Calibration, ScoredPairs, decide_listed, identities_of_list
from hedged.embedder import Embedder
from hedged.evaluation import Condition, Evaluation
from hedged.files import write_atomically
from hedged.metrics import balanced_pairs
from hedged.report.reliability import reliability_figure
from hedged.training import Config, build_data

PICTURE, DPI = "reliability.png", 160

logger = logging.getLogger("hedged")


@final
@dataclass(frozen=True, eq=False)
class Source:
    """Pairs to calibrate from, and in words where they come from."""

    pairs: ScoredPairs
    words: str


def scored_pairs(evaluation: Evaluation, condition: Condition = "clean", count: int = 200_000) -> ScoredPairs:
    """Pairs of a data set to calibrate from, half of them matches, with its classes as identities."""
    labels = evaluation.labels
    pairs = balanced_pairs(labels, count, seed=evaluation.seed)
    return ScoredPairs.of(evaluation.scores(pairs, condition), labels[pairs.first], labels[pairs.second])


def pairs_of_run(config: Config, embedder: Embedder, condition: Condition = "clean") -> Source:
    """Pairs of the validation images of a run; if it kept none, of its first test set, with a warning."""
    data = build_data(config)
    name, images = "validation", data.validation
    if images is None:
        name, images = next(iter(data.test.items()))
        logger.warning(
            "this run kept no images for validation, so its test set (%s) is calibrated on; to measure calibration, "
            "give other pairs with --pairs, or train with some images held out",
            name,
        )
    pairs = scored_pairs(Evaluation(embedder, images), condition)
    return Source(pairs, f"{condition} {name} images of {images.source}")


def pairs_of_list(listed: PairList, embedder: Embedder, name: str) -> Source:
    """The pairs of a list, scored; whom they show follows from which of them match. Broken files are named."""
    found = decide_listed(embedder, listed)
    identities = identities_of_list(found.pairs.first, found.pairs.second, found.pairs.matches)
    return Source(ScoredPairs.of(found.scores, *identities), f"listed in {name}")


def save_calibration(found: Calibration, folder: Path, words: str) -> Path:
    """Write calibration.json beside the model, and the picture before it: what is there is of one calibration."""
    figure = reliability_figure(found)
    write_atomically(folder / PICTURE, lambda part: figure.savefig(part, dpi=DPI, format="png"))
    return found.decider.save(folder, {"source": words, **found.report()})
