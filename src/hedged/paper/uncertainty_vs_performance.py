"""Figure 5: performance in 20 bins of uncertainty, for three digits in three dimensions with one Gaussian."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MultipleLocator

from hedged.evaluation import Evaluation
from hedged.evaluation.reference import TABLES, PaperCell
from hedged.metrics import UncertaintyCurve
from hedged.paper.exhibits import Figure
from hedged.paper.measurements import Cell
from hedged.paper.recipe import recipe
from hedged.paper.shelf import Shelf
from hedged.plots.curves import draw_bins
from hedged.plots.style import COLOURS, MARKERS, MUTED, TEXT, grid, labels, letters, panels, title
from hedged.training import Config

# The panels, in the paper's order: AP clean, AP corrupt, KNN clean, KNN corrupt. Each is a cell of its table 2.
PANELS = tuple(c for c in TABLES["uncertainty-correlation"] if (c.digits, c.dim, c.model) == (3, 3, "mog-1"))
TICKS = (1, 10, 20)  # bins that are numbered
STEP = 0.1  # of the lower ends of the vertical axes


@final
@dataclass(frozen=True)
class UncertaintyVsPerformance(Figure):
    """Average precision of pairs and accuracy of neighbours, each with Kendall's τ."""

    name: str = "uncertainty-vs-performance"
    title: str = "Performance against uncertainty: three digits, three dimensions, one Gaussian"

    def configs(self) -> list[Config]:
        return [recipe(3, 3, "mog-1")]

    def curves(self, shelf: Shelf) -> list[UncertaintyCurve]:
        """One a panel.

        Args:
            shelf: Where trained models and their measurements are.
        """
        evaluation = shelf.evaluation(self.configs()[0])
        return [_curve(evaluation, cell) for cell in PANELS]

    def draw(self, shelf: Shelf) -> Canvas:
        curves = self.curves(shelf)
        figure, axes = panels(1, len(PANELS), height=2.4)
        for one, cell, curve in zip(axes.flat, PANELS, curves, strict=True):
            _draw(one, cell, curve)
        for pair in (slice(0, 2), slice(2, 4)):  # AP and accuracy are different scales; clean and corrupt are not
            _share_heights(axes[0, pair].tolist(), curves[pair])
        letters(list(axes.flat))
        labels(axes[0, 0], y="average precision")
        labels(axes[0, 2], y="accuracy")
        figure.supxlabel("bin of uncertainty, and below it the mean η of the bin", fontsize=TEXT, color=MUTED)
        return figure

    def numbers(self, shelf: Shelf) -> list[Cell]:
        return [_cell(cell, curve) for cell, curve in zip(PANELS, self.curves(shelf), strict=True)]


def _curve(evaluation: Evaluation, cell: PaperCell) -> UncertaintyCurve:
    if cell.metric == "ap_correlation":
        return evaluation.ap_curve(cell.gallery)
    return evaluation.knn_curve(cell.gallery, cell.probe, cell.vote or "majority")


def _cell(cell: PaperCell, curve: UncertaintyCurve) -> Cell:
    """Kendall's τ beside the paper's."""
    return {**cell.as_json(), "split": "seen", "measured": round(curve.kendall, 5)}


def _draw(axes: Axes, cell: PaperCell, curve: UncertaintyCurve) -> None:
    draw_bins(axes, curve.performance, COLOURS[cell.gallery], MARKERS[cell.gallery])
    axes.set_xlim(0, len(curve.performance) + 1)
    axes.set_xticks(TICKS, [f"{k}\n{curve.uncertainty[k - 1]:.2f}" for k in TICKS])
    grid(axes)
    name = f"AP, {cell.gallery}" if cell.metric == "ap_correlation" else f"KNN, {cell.gallery} gallery"
    title(axes, f"{name}\n$\\tau = {curve.kendall:.2f}$ (paper ${cell.paper:.2f}$)")


def _share_heights(all_axes: Sequence[Axes], curves: Sequence[UncertaintyCurve]) -> None:
    """One vertical axis for neighbours: from the round number below the worst bin up to 1, numbered on the left."""
    low = STEP * np.floor(min(curve.performance.min() for curve in curves) / STEP)
    room = 0.03 * (1 - low)  # for markers on the border
    for axes in all_axes:
        axes.set_ylim(low - room, 1 + room)
        axes.yaxis.set_major_locator(MultipleLocator(STEP if low > 0.4 else 2 * STEP))
        axes.tick_params(labelleft=axes is all_axes[0])


EXHIBIT = UncertaintyVsPerformance()
