"""Two digits on the number line: the classes in the order of their centroids, hedged above points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from hedged.evaluation.space import Space
from hedged.metrics import mean_run_length, shared_digit_count
from hedged.paper.exhibits import Figure
from hedged.paper.measurements import Cell
from hedged.paper.recipe import recipe
from hedged.paper.shelf import Shelf
from hedged.plots.number_line import Labels, draw_order
from hedged.plots.style import INK, MUTED, SMALL, TEXT, panels
from hedged.training import Config

TRIALS = 4
PAPER = {"mog-1": ((76, 80), 4.6), "point": ((42, 74), 3.0)}  # least and greatest count, mean classes of a run
NAMES = {"mog-1": "Hedged embedding", "point": "Point embedding"}


@final
@dataclass(frozen=True)
class NumberLine(Figure):
    """Of each model the trial with the median count; equal digits of neighbours are one block, runs one bar."""

    name: str = "number-line"
    title: str = "Two digits on the number line: classes in the order of their centroids, trials of median count"

    def configs(self) -> list[Config]:
        return [_config(model, trial) for model in PAPER for trial in range(TRIALS)]

    def draw(self, shelf: Shelf) -> Canvas:
        figure, axes = panels(len(PAPER), 1, height=2.9)
        for letter, model, one in zip("ab", PAPER, axes.flat, strict=True):
            orders = _orders(shelf, model)
            counts = [shared_digit_count(order) for order in orders]
            shown = orders[median_trial(counts)]
            draw_order(one, shown)
            (least, most), _ = PAPER[model]
            trials = f"trials: {', '.join(map(str, sorted(counts)))}; paper: {least} to {most}"
            _title(one, f"({letter}) {NAMES[model]}", shown, trials)
        return figure

    def numbers(self, shelf: Shelf) -> list[Cell]:
        return [cell for model in PAPER for cell in _cells(shelf, model)]


def _config(model: str, trial: int) -> Config:
    return recipe(2, 1, model, seed=trial, data__split="instance")


def _orders(shelf: Shelf, model: str) -> list[Labels]:
    """The classes from left to right, one order a trial."""
    return [Space(shelf.evaluation(_config(model, trial))).centroids.order for trial in range(TRIALS)]


def _cells(shelf: Shelf, model: str) -> Iterator[Cell]:
    orders, (count, run) = _orders(shelf, model), PAPER[model]
    shown = median_trial([shared_digit_count(order) for order in orders])
    for trial, order in enumerate(orders):
        setting = {"digits": 2, "dim": 1, "model": model, "split": "instance", "seed": trial, "drawn": trial == shown}
        yield {**setting, "metric": "shared_digit_count", "paper": count, "measured": shared_digit_count(order)}
        yield {**setting, "metric": "mean_run_length", "paper": run, "measured": round(mean_run_length(order), 5)}


def median_trial(counts: list[int]) -> int:
    """The trial with the median count, of two the lower.

    >>> median_trial([80, 76, 79, 77])
    3

    Args:
        counts: One a trial.
    """
    return sorted(range(len(counts)), key=counts.__getitem__)[(len(counts) - 1) // 2]


def _title(axes: Axes, name: str, order: Labels, trials: str) -> None:
    shared, pairs = shared_digit_count(order), len(order) - 1
    numbers = f"{shared} of {pairs} neighbours share a digit ({trials}), {mean_run_length(order):.1f} classes a run"
    axes.set_title(name, loc="left", fontsize=TEXT, color=INK)
    axes.set_title(numbers, loc="right", fontsize=SMALL, color=MUTED)


EXHIBIT = NumberLine()
