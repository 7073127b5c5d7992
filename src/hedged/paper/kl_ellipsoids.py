"""Five weights of the KL term: ellipsoids of corrupt test images, 3 digits in 3 dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from hedged.evaluation import CONDITIONS, Condition, Evaluation
from hedged.evaluation.space import Space
from hedged.paper.exhibits import Figure
from hedged.paper.measurements import Cell
from hedged.paper.recipe import recipe
from hedged.paper.shelf import Shelf
from hedged.plots.ellipsoids import cube_view, draw_ellipsoids
from hedged.plots.plane import Array, one_of_each
from hedged.plots.style import COLOURS, FULL, INK, MARKERS, MUTED, PRINT, SMALL, calm, grid, labels, letters, title
from hedged.training import Config

BETAS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
DRAWN = 40  # ellipsoids a panel: as many as can be told apart
DASHES = {"uncertainty": "-", "standard_deviation": ":"}
SMALL_PRINT: dict[str, Any] = {"fontsize": SMALL, "color": MUTED, "ha": "center"}
NAMES = {"uncertainty": "η", "standard_deviation": "σ"}
RELATIVE = "relative_standard_deviation"  # σ by the spread of the centres: a and b learn the scale of the space


@final
@dataclass(frozen=True)
class KlEllipsoids(Figure):
    """The same images in cubes of one size, each with the unit Gaussian as three dotted circles; last, all in means."""

    name: str = "kl-ellipsoids"
    title: str = "The weight β of the KL term, 3 digits in 3 dimensions: from points to the unit Gaussian"

    def configs(self) -> list[Config]:
        return [recipe(3, 3, "mog-1", loss__beta=beta) for beta in BETAS]

    def draw(self, shelf: Shelf) -> Canvas:
        models = [_Model.of(shelf.evaluation(config)) for config in self.configs()]
        figure = Canvas(figsize=(FULL, 4.9), layout="constrained")
        cubes = [figure.add_subplot(2, 3, place, projection="3d") for place in range(1, len(BETAS) + 1)]
        corners = np.concatenate([np.array([[-1.0] * 3, [1.0] * 3]), *(model.corners for model in models)])
        for axes, beta, model in zip(cubes, BETAS, models, strict=True):
            cube_view(axes, corners, margin=0)
            _draw_prior(axes)
            draw_ellipsoids(axes, model.means, model.variances, COLOURS["corrupt"])
            title(axes, rf"$\beta = 10^{{{round(math.log10(beta))}}}$")
        cubes[0].text2D(0.5, -0.03, "dotted: the unit Gaussian", transform=cubes[0].transAxes, **SMALL_PRINT)
        trend = figure.add_subplot(2, 3, 6)
        _draw_averages(trend, models)
        letters([*cubes, trend])
        return figure

    def numbers(self, shelf: Shelf) -> list[Cell]:
        setting = {"digits": 3, "dim": 3, "model": "mog-1", "split": "seen"}
        return [
            {**setting, "beta": beta, "metric": metric, "probe": condition, "measured": round(mean, 5)}
            for beta, config in zip(BETAS, self.configs(), strict=True)
            for (metric, condition), mean in _Model.of(shelf.evaluation(config)).averages.items()
        ]


@final
@dataclass(frozen=True, eq=False)
class _Model:
    """What is shown of one: some corrupt images, `(n, 3)`, and averages over all test images."""

    means: Array
    variances: Array
    averages: dict[tuple[str, Condition], float]

    @classmethod
    def of(cls, evaluation: Evaluation) -> Self:
        drawn = one_of_each(evaluation.labels, DRAWN, evaluation.seed)
        means, variances = (part[:, 0] for part in Space(evaluation).parts("corrupt", drawn))
        eta = {c: float(evaluation.uncertainty[c].mean()) for c in CONDITIONS}
        sigma = {c: float(evaluation.embeddings[c].variance.sqrt().mean()) for c in CONDITIONS}
        spread = Space(evaluation).centroids.spread
        relative = {c: sigma[c] / spread for c in CONDITIONS}
        found = (("uncertainty", eta), ("standard_deviation", sigma), (RELATIVE, relative))
        return cls(means, variances, {(name, c): values[c] for name, values in found for c in CONDITIONS})

    @property
    def corners(self) -> Array:
        """Of the boxes around the ellipsoids."""
        reach = np.sqrt(self.variances)
        return np.concatenate([self.means - reach, self.means + reach])


def _draw_prior(axes: Any) -> None:
    """One standard deviation of N(0, I): the circles of the unit sphere around its axes."""
    turn = np.linspace(0, 2 * np.pi, 97)
    circle = np.stack([np.cos(turn), np.sin(turn), np.zeros_like(turn)])
    for shift in range(3):
        axes.plot(*np.roll(circle, shift, axis=0), ":", color=MUTED, linewidth=0.7, zorder=0.8)


def _draw_averages(axes: Axes, models: Sequence[_Model]) -> None:
    calm(axes)
    for metric, condition in (drawn for drawn in models[0].averages if drawn[0] in NAMES):
        values = [model.averages[metric, condition] for model in models]
        axes.plot(
            BETAS, values, DASHES[metric], color=COLOURS[condition], marker=MARKERS[condition],
            markersize=PRINT.marker, linewidth=PRINT.line, label=f"{NAMES[metric]}, {condition}",
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_xticks(BETAS)
    axes.minorticks_off()
    axes.set_ylim(0, max(1.0, axes.get_ylim()[1]))  # η ends at 1; σ may not
    grid(axes)
    axes.legend(loc="upper left", fontsize=SMALL, labelcolor=INK, facecolor="white", edgecolor="none", framealpha=1)
    labels(axes, "weight β")
    title(axes, "Means over all test images")


EXHIBIT = KlEllipsoids()
