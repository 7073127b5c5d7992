"""Calibrating a trained model: on the images that its run kept for validation, or on a list of labelled pairs."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import final

from hedged._files import write_atomically
from hedged.data import Dataset, PairList
from hedged.decisions import Calibration, Quality, ScoredPairs, identities_of_list
from hedged.evaluation import decide_listed
from hedged.evaluation.evaluation import Condition, match_scores
from hedged.metrics import balanced_pairs
from hedged.models import Embedder, embed_all
from hedged.plots.reliability import Diagram, reliability_figure
from hedged.training import Config, build_data

PICTURE, DPI = "reliability.png", 160
PAIRS = 200_000

logger = logging.getLogger("hedged")


@final
@dataclass(frozen=True, eq=False)
class Source:
    """Pairs to calibrate from, and in words where they come from."""

    pairs: ScoredPairs
    words: str


def scored_pairs(embedder: Embedder, data: Dataset, condition: Condition = "clean", seed: int = 0) -> ScoredPairs:
    """Pairs of a data set to calibrate from, half of them matches, with its classes as identities."""
    labels = data.labels.numpy()
    pairs = balanced_pairs(labels, PAIRS, seed)
    logger.info("embedding %s images", f"{len(data):,}")
    images = data.clean if condition == "clean" else partial(data.corrupt, seed)
    scores = match_scores(pairs, embed_all(embedder, images, len(data)), embedder.match_model)
    return ScoredPairs.of(scores, labels[pairs.first], labels[pairs.second])


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
    pairs = scored_pairs(embedder, images, condition)
    return Source(pairs, f"{condition} {name} images of {images.source}")


def pairs_of_list(listed: PairList, embedder: Embedder, name: str) -> Source:
    """The pairs of a list, scored; whom they show follows from which of them match. Broken files are named."""
    found = decide_listed(embedder, listed)
    identities = identities_of_list(found.pairs.first, found.pairs.second, found.pairs.matches)
    return Source(ScoredPairs.of(found.scores, *identities), f"listed in {name}")


def save_calibration(found: Calibration, folder: Path, words: str) -> Path:
    """Write calibration.json beside the model, and the picture before it: what is there is of one calibration."""
    choice = found.choice
    figure = reliability_figure(_diagram("before", choice.before), _diagram(f"after: {found.kind}", choice.after))
    write_atomically(folder / PICTURE, lambda part: figure.savefig(part, dpi=DPI, format="png"))
    return found.decider.save(folder, {"source": words, **found.report()})


def _diagram(title: str, quality: Quality) -> Diagram:
    return Diagram(title, quality.reliability, {"ECE": quality.ece, "Brier": quality.brier, "NLL": quality.nll})
