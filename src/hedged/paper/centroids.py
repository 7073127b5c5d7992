"""Class centroids of two digits in the plane, points above hedged embeddings: do digits get an axis each?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from hedged.evaluation.space import Space
from hedged.metrics import Centroids, axis_alignment
from hedged.paper.exhibits import Figure
from hedged.paper.measurements import Cell
from hedged.paper.recipe import recipe
from hedged.paper.shelf import Shelf
from hedged.plots.ellipses import square_view
from hedged.plots.style import FAINT, SMALL, digit_colour, ink_on, labels, letters, panels, title
from hedged.training import Config

ROWS = {"Point embedding": "point", "Hedged embedding": "mog-1"}
COLUMNS = {"ones": 1, "tens": 10}  # a digit, and what it counts


@final
@dataclass(frozen=True)
class ClassCentroids(Figure):
    """A row a model, a column a digit: squares have the digit's colour, and the digit in them."""

    name: str = "centroids"
    title: str = "Class centroids of two digits in two dimensions, by ones and by tens"

    def configs(self) -> list[Config]:
        """All 100 numbers are trained on and tested, so that no part of the plane is left empty."""
        return [recipe(2, 2, model, data__split="instance") for model in ROWS.values()]

    def centroids(self, shelf: Shelf) -> list[Centroids]:
        """Of the clean test images, one set a row.

        Args:
            shelf: Where trained models and their measurements are.
        """
        return [Space(shelf.evaluation(config)).centroids for config in self.configs()]

    def draw(self, shelf: Shelf) -> Canvas:
        figure, axes = panels(len(ROWS), len(COLUMNS))
        for row, name, centroids in zip(axes, ROWS, self.centroids(shelf), strict=True):
            for one, (digit, unit) in zip(row, COLUMNS.items(), strict=True):
                _draw(one, centroids, unit)
                _label(one, centroids, digit)
                title(one, f"{name}, {digit} digit")
        letters(list(axes.flat))
        return figure

    def numbers(self, shelf: Shelf) -> list[Cell]:
        setting = {"digits": 2, "dim": 2, "metric": "axis_alignment", "split": "instance"}
        return [
            {**setting, "model": model, "measured": round(axis_alignment(centroids).score, 5)}
            for model, centroids in zip(ROWS.values(), self.centroids(shelf), strict=True)
        ]


def _draw(axes: Axes, centroids: Centroids, unit: int) -> None:
    for label, (x, y) in zip(centroids.labels, centroids.positions, strict=True):
        digit = int(label) // unit % 10
        colour = digit_colour(digit)
        axes.text(
            x, y, str(digit), fontsize=SMALL, color=ink_on(colour), ha="center", va="center_baseline", in_layout=False,
            bbox={"boxstyle": "circle,pad=0.18", "facecolor": colour, "edgecolor": "white", "linewidth": 0.5},
        )  # fmt: skip
    square_view(axes, centroids.positions)
    axes.spines[:].set(visible=True, color=FAINT)


def _label(axes: Axes, centroids: Centroids, digit: str) -> None:
    """The dimensions, and how much of the variance along each is between the values of the digit."""
    first, second = axis_alignment(centroids).explained[:, ["tens", "ones"].index(digit)]
    labels(
        axes,
        f"first dimension: {first:.0%} explained by the {digit} digit",
        f"second dimension: {second:.0%} explained",
    )


EXHIBIT = ClassCentroids()
