"""The loss of point embeddings: soft contrastive against contrastive with any margin, two digits in two dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from hedged.data.ndigit.splits import TestSet
from hedged.evaluation import Condition
from hedged.evaluation.reference import TABLES, PaperCell
from hedged.paper.exhibits import Figure
from hedged.paper.measurements import Cell
from hedged.paper.recipe import recipe
from hedged.paper.shelf import Shelf
from hedged.plots.style import INK, MARKERS, POINT, TEXT, WINE, grid, labels, letters, panels, title
from hedged.training import Config

# Three decades. A margin only sets a scale: the loss of M·z with margin M is M² times the loss of z with margin 1. It
# matters because a network starts at a scale of its own, and gets no further from it than its steps reach.
MARGINS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
MEASURES = tuple(c for c in TABLES["main-task"] if (c.digits, c.dim, c.model) == (2, 2, "point"))
PANELS = {"verification_ap": "Average precision", "knn_accuracy": "KNN accuracy, by gallery"}
DASHES: dict[Condition, str] = {"clean": "-", "corrupt": "--"}
HARD = WINE  # no other figure has it


@final
@dataclass(frozen=True)
class SoftContrastive(Figure):
    """Average precision, and accuracy of neighbours by majority; the soft contrastive loss has no margin to choose."""

    name: str = "soft-contrastive"
    title: str = "Soft contrastive loss against contrastive loss, by margin"
    tests: tuple[TestSet, ...] = ("seen",)

    def configs(self) -> list[Config]:
        return [_soft(), *map(_hard, MARGINS)]

    def draw(self, shelf: Shelf) -> Canvas:
        figure, axes = panels(1, 2, height=2.7)
        for one, (metric, name) in zip(axes.flat, PANELS.items(), strict=True):
            for measure in (m for m in MEASURES if m.metric == metric):
                hard = [_value(shelf, _hard(margin), measure) for margin in MARGINS]
                _draw(one, measure.gallery, _value(shelf, _soft(), measure), hard)
            _finish(one)
            title(one, name)
        letters(list(axes.flat))
        handles, names = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper center", ncols=4, frameon=False, fontsize=TEXT, labelcolor=INK)
        return figure

    def numbers(self, shelf: Shelf) -> list[Cell]:
        soft = [_cell(shelf, _soft(), m) | {"paper": m.paper} for m in MEASURES]
        return soft + [_cell(shelf, _hard(margin), m) | {"margin": margin} for margin in MARGINS for m in MEASURES]


def _soft() -> Config:
    return recipe(2, 2, "point")


def _hard(margin: float) -> Config:
    return recipe(2, 2, "point", loss__kind="contrastive", loss__margin=margin)


def _value(shelf: Shelf, config: Config, cell: PaperCell) -> float:
    return shelf.value(config, "seen", cell.measure)


def _cell(shelf: Shelf, config: Config, measure: PaperCell) -> Cell:
    named = {key: value for key, value in measure.as_json().items() if key != "paper"}
    value = round(_value(shelf, config, measure), 5)
    return {**named, "objective": config.loss.kind, "split": "seen", "measured": value}


def _draw(axes: Axes, condition: Condition, soft: float, hard: Sequence[float]) -> None:
    dashes, marker = DASHES[condition], MARKERS[condition]
    axes.axhline(soft, color=POINT, linestyle=dashes, linewidth=1.6, label=f"soft contrastive, {condition}")
    axes.plot(
        MARGINS, hard, color=HARD, linestyle=dashes, linewidth=1.2, marker=marker, markersize=4,
        label=f"contrastive, {condition}",
    )  # fmt: skip


def _finish(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.set_xticks(MARGINS, [f"{margin:g}" for margin in MARGINS])
    axes.minorticks_off()
    grid(axes)
    labels(axes, x="margin M of the contrastive loss")


EXHIBIT = SoftContrastive()
