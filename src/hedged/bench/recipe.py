"""The paper's row of 2 digits, 2 dimensions and one Gaussian: in how many steps and minutes it is reached."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from hedged.bench.timing import Line
from hedged.evaluation import CONDITIONS, Evaluation
from hedged.evaluation.reference import STEPS, Measure, find_cell
from hedged.training import build_data, load_config, shipped_config, train


def lines(quick: bool) -> Iterator[Line]:
    """How near the recipe comes to the paper, in how many steps and minutes; none if it is to be quick.

    Args:
        quick: Whether to leave out whatever takes minutes.
    """
    if quick:
        return
    config = load_config(shipped_config("paper"))
    data = build_data(config)
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        embedder = train(config, data.train, Path(folder) / "run")
        minutes = (time.perf_counter() - begun) / 60
    found = Evaluation(embedder, data.test["seen"])
    margins = [_above(found.verification_ap(c), Measure("verification_ap", c, c)) for c in CONDITIONS]
    margins += [_above(found.knn_accuracy(c), Measure("knn_accuracy", c, "clean", "majority")) for c in CONDITIONS]
    row = "2 digits, 2-D, MoG-1"
    yield Line(f"{row}: the least of four numbers above the paper's", min(margins), 0.0)
    yield Line(f"{row}: steps / 1 % of the paper's", config.train.steps / (0.01 * STEPS), 1.0, at_most=True)
    yield Line(f"{row}: minutes / 5", minutes / 5, 1.0, at_most=True)


def _above(measured: float, measure: Measure) -> float:
    """How far a measurement lies above the paper's."""
    cell = find_cell(2, 2, "mog-1", measure)
    return measured - cell.paper if cell else math.nan
