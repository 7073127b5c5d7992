"""The paper's row of 2 digits, 2 dimensions and one Gaussian: in how many steps and minutes it is reached."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import final

from hedged.bench.timing import Line, seconds
from hedged.data import Dataset, Splits
from hedged.evaluation import CONDITIONS, Evaluation
from hedged.evaluation.reference import STEPS, Measure, find_cell
from hedged.models import Embedder
from hedged.training import Config, build_data, load_config, shipped_config, train

ROW = "2 digits, 2-D, MoG-1"
SHORT_STEPS, SHORT_SEEDS = 2_500, 3  # of the same recipe in a minute, chosen on validation digits (docs/recipe.md)


def lines(quick: bool) -> Iterator[Line]:
    """How near the recipe comes to the paper, in how many steps and minutes; none if it is to be quick.

    Args:
        quick: Whether to leave out whatever takes minutes.
    """
    if quick:
        return
    config = load_config(shipped_config("paper"))
    data = build_data(config)
    full = _Trained(config, data)
    yield Line(f"{ROW}: the least of four numbers above the paper's", min(full.margins()), 0.0)
    yield Line(f"{ROW}: steps / 1 % of the paper's", config.train.steps / (0.01 * STEPS), 1.0, at_most=True)
    yield Line(f"{ROW}: minutes / 5", full.seconds / 60 / 5, 1.0, at_most=True)
    short = [_Trained(_short(config, seed), data) for seed in range(SHORT_SEEDS)]
    row = f"{ROW}, {SHORT_STEPS:,} steps, seeds 0 to {SHORT_SEEDS - 1}"
    least = min(min(trained.margins()) for trained in short)
    yield Line(f"{row}: the least of all numbers above the paper's", least, 0.0)
    yield Line(f"{row}: minutes, median", median(trained.seconds for trained in short) / 60, 1.0, at_most=True)


def _short(config: Config, seed: int) -> Config:
    """The same with fewer steps; the learning rate and the weight of pairs come down over them as over more."""
    return config.model_copy(update={"train": config.train.model_copy(update={"steps": SHORT_STEPS, "seed": seed})})


@final
class _Trained:
    """A model that was trained, and the seconds that took.

    Args:
        config: What to train.
        data: The data of the config.
    """

    def __init__(self, config: Config, data: Splits[Dataset]) -> None:
        self.test = data.test["seen"]
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder) / "run"
            self.seconds = seconds(lambda: train(config, data.train, run))
            self.embedder = Embedder.load(run)

    def margins(self) -> list[float]:
        """How far its four numbers lie above the paper's."""
        found = Evaluation(self.embedder, self.test)
        verified = [_above(found.verification_ap(c), Measure("verification_ap", c, c)) for c in CONDITIONS]
        identified = [
            _above(found.knn_accuracy(c), Measure("knn_accuracy", c, "clean", "majority")) for c in CONDITIONS
        ]
        return verified + identified


def _above(measured: float, measure: Measure) -> float:
    """How far a measurement lies above the paper's."""
    cell = find_cell(2, 2, "mog-1", measure)
    return measured - cell.paper if cell else math.nan
