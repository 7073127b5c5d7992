"""Two digits on the number line: the classes in the order of their centroids, hedged above points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from numpy.typing import NDArray

from hedged.evaluation.space import Space
from hedged.metrics import mean_run_length, run_lengths, shared_digit_count
from hedged.paper.exhibits import Figure
from hedged.paper.measurements import Cell
from hedged.paper.recipe import recipe
from hedged.paper.shelf import Shelf
from hedged.plots.canvas import MUTED
from hedged.plots.style import INK, SMALL, TEXT, digit_colour, ink_on, panels
from hedged.training import Config

TRIALS = 4
PAPER = {"mog-1": ((76, 80), 4.6), "point": ((42, 74), 3.0)}  # least and greatest count, mean classes of a run
NAMES = {"mog-1": "Hedged embedding", "point": "Point embedding"}
TRACKS = {"tens": 10, "ones": 1}  # a digit, and what it counts; from top to bottom
Order = NDArray[np.int64]


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


def _orders(shelf: Shelf, model: str) -> list[Order]:
    """The classes from left to right, one order a trial."""
    return [Space(shelf.evaluation(_config(model, trial))).centroids.order for trial in range(TRIALS)]


def _cells(shelf: Shelf, model: str) -> Iterator[Cell]:
    orders, (count, run) = _orders(shelf, model), PAPER[model]
    shown = median_trial([shared_digit_count(order) for order in orders])
    for trial, order in enumerate(orders):
        told = {"digits": 2, "dim": 1, "model": model, "split": "instance", "seed": trial, "drawn": trial == shown}
        yield {**told, "metric": "shared_digit_count", "paper": count, "measured": shared_digit_count(order)}
        yield {**told, "metric": "mean_run_length", "paper": run, "measured": round(mean_run_length(order), 5)}


def median_trial(counts: list[int]) -> int:
    """The trial with the median count, of two the lower.

    >>> median_trial([80, 76, 79, 77])
    3
    """
    return sorted(range(len(counts)), key=counts.__getitem__)[(len(counts) - 1) // 2]


def blocks(values: NDArray[np.int64]) -> Iterator[tuple[int, int, int]]:
    """Equal neighbours together: where each block begins, how many it has, and of what.

    >>> list(blocks(np.array([7, 7, 3])))
    [(0, 2, 7), (2, 1, 3)]
    """
    starts = np.flatnonzero(np.diff(values, prepend=-1))
    for start, end in zip(starts, [*starts[1:], len(values)], strict=True):
        yield int(start), int(end - start), int(values[start])


def draw_order(axes: Axes, order: Order) -> None:
    """A track a digit, and under them a bar a run."""
    for height, unit in zip((2, 1), TRACKS.values(), strict=True):
        _draw_track(axes, list(blocks(order // unit % 10)), height)
    lengths = run_lengths(order)
    starts = np.cumsum(lengths) - lengths
    runs = [(start + 0.25, length - 0.5) for start, length in zip(starts, lengths, strict=True)]
    axes.broken_barh(runs, (0.5, 0.2), facecolor=INK)
    axes.set(xlim=(0, len(order)), ylim=(0.3, 3), xticks=[])
    axes.set_yticks([2.46, 1.46, 0.6], [*TRACKS, "runs"])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _draw_track(axes: Axes, found: Sequence[tuple[int, int, int]], height: float) -> None:
    """Blocks in the colours of their digits, and the digits in them."""
    colours = [digit_colour(digit) for *_, digit in found]
    axes.broken_barh(
        [(start, length) for start, length, _ in found], (height, 0.92),
        facecolors=colours, edgecolor="white", linewidth=0.5,
    )  # fmt: skip
    for (start, length, digit), colour in zip(found, colours, strict=True):
        axes.text(
            start + length / 2, height + 0.46, str(digit), fontsize=SMALL, color=ink_on(colour),
            ha="center", va="center_baseline", in_layout=False,
        )  # fmt: skip


def _title(axes: Axes, name: str, order: Order, trials: str) -> None:
    shared, pairs = shared_digit_count(order), len(order) - 1
    told = f"{shared} of {pairs} neighbours share a digit ({trials}), {mean_run_length(order):.1f} classes a run"
    axes.set_title(name, loc="left", fontsize=TEXT, color=INK)
    axes.set_title(told, loc="right", fontsize=SMALL, color=MUTED)


EXHIBIT = NumberLine()
