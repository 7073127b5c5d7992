"""The figure of some test images and their places: as points, and as Gaussians whose spread tells what is hidden."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from hedged.evaluation import Condition, Evaluation
from hedged.evaluation.images import images_of
from hedged.evaluation.space import Space
from hedged.paper.exhibits import Figure
from hedged.paper.recipe import recipe
from hedged.paper.shelf import Shelf
from hedged.paper.teaser import HIDDEN, VISIBLE, hidden_ink
from hedged.plots.ellipses import TILE, draw_class_names, draw_ellipses, square_view
from hedged.plots.pictures import draw_picture
from hedged.plots.plane import Array
from hedged.plots.style import COLOURS, FULL, INK, TEXT, letters, panels, title
from hedged.training import Config

DEVIATIONS = 3
TALL = 5.0  # inches
WIDTH, GAP = 0.22, 0.05  # of a thumbnail, and between it and the map, in widths of the map
SLOTS = [((i + 0.5) / 4, edge) for edge in (1 + GAP, -GAP) for i in range(4)]  # lines begin above and below the map


@final
@dataclass(frozen=True)
class Example:
    """A test image in one condition.

    Args:
        item: Which image of the test set.
        condition: Clean or corrupt.
    """

    item: int
    condition: Condition


@final
@dataclass(frozen=True)
class EmbeddedImages(Figure):
    """The same images in both panels."""

    name: str = "embedded-images"
    title: str = "Clean and occluded images embedded as points and as Gaussians"

    def configs(self) -> list[Config]:
        return [recipe(2, 2, "point"), recipe(2, 2, "mog-1")]

    def draw(self, shelf: Shelf) -> Canvas:
        point, hedged = (shelf.evaluation(config) for config in self.configs())
        shown = list(examples(hedged))
        canvas, axes = panels(1, 2, height=TALL)
        names = ("Point embeddings", f"Hedged embeddings, out to {DEVIATIONS}σ")
        for one, evaluation, name in zip(axes.flat, (point, hedged), names, strict=True):
            _panel(one, Space(evaluation), shown)
            title(one, name)
        letters(list(axes.flat))
        for left, one in zip((0.01, 0.51), axes.flat, strict=True):  # places by hand, to leave room for the images
            one.set_position((left, 0.85 / TALL, 0.48, 0.48 * FULL / TALL))
            one.title.set_y(1.02 + GAP + WIDTH / 2)
        _key(canvas)
        return canvas


def examples(evaluation: Evaluation) -> Iterator[Example]:
    """Three clean images, two with each digit hidden and one with both, each kind at even quantiles of its η.

    Args:
        evaluation: The test set, embedded.
    """
    hidden = hidden_ink(evaluation)
    much, little = hidden >= HIDDEN, hidden <= VISIBLE
    kinds: list[tuple[Condition, NDArray[np.bool_], int]] = [
        ("clean", np.ones(len(hidden), bool), 3),
        ("corrupt", much[:, 0] & little[:, -1], 2),
        ("corrupt", little[:, 0] & much[:, -1], 2),
        ("corrupt", much[:, 0] & much[:, -1], 1),
    ]
    for condition, members, count in kinds:
        items = np.flatnonzero(members)
        by_eta = items[np.argsort(evaluation.uncertainty[condition][items], kind="stable")]
        for i in range(count):
            yield Example(int(by_eta[(2 * i + 1) * len(items) // (2 * count)]), condition)


def _panel(axes: Axes, space: Space, shown: list[Example]) -> None:
    """The map of the classes with the images' places on it, and the images around it."""
    parts = [space.parts(example.condition, np.array([example.item])) for example in shown]
    places = np.concatenate([means[0] for means, _ in parts])
    square_view(axes, np.concatenate([space.centroids.positions, places]), margin=0.06)
    draw_class_names(axes, space.class_names, space.centroids.positions, squares=True)
    for example, (means, variances) in zip(shown, parts, strict=True):
        if not space.is_point:
            draw_ellipses(axes, means, variances, COLOURS[example.condition], DEVIATIONS, width=0.9)
    for example, place, slot in zip(shown, places, slots(axes, places), strict=True):
        _explain(axes, space.evaluation, example, place, slot)


def slots(axes: Axes, places: Array) -> list[tuple[float, float]]:
    """A slot for each place, in coordinates of the axes, such that the lines to them are shortest in all.

    Then no two of them cross: swapping the ends of two that do would shorten them.

    Args:
        axes: The map.
        places: Of the images on the map, `(n, 2)`.
    """
    inside = axes.transAxes.inverted().transform(axes.transData.transform(places))
    distances = np.linalg.norm(inside[:, None] - np.array(SLOTS), axis=-1)
    return [SLOTS[column] for column in linear_sum_assignment(distances)[1]]


def _explain(axes: Axes, evaluation: Evaluation, example: Example, place: Array, slot: tuple[float, float]) -> None:
    """The image in its slot, and a line from there to its place."""
    (x, edge), colour = slot, COLOURS[example.condition]
    bottom = edge if edge > 1 else edge - WIDTH / 2
    frame = axes.inset_axes((x - WIDTH / 2, bottom, WIDTH, WIDTH / 2))
    draw_picture(frame, images_of(evaluation, example.condition, np.array([example.item]))[0], colour)
    axes.annotate(
        "", xy=tuple(place), xytext=slot, xycoords="data", textcoords="axes fraction", annotation_clip=False,
        arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 0},
    )  # fmt: skip
    axes.plot(*place, "o", markersize=3.5, color=colour, markeredgecolor="white", markeredgewidth=0.6, zorder=4)


def _key(canvas: Canvas) -> None:
    handles = [
        Line2D([], [], marker="s", linestyle="", markersize=7, color="black", markeredgecolor=colour, label=name)
        for name, colour in (("clean image", COLOURS["clean"]), ("occluded image", COLOURS["corrupt"]))
    ]
    handles.append(Line2D([], [], marker="s", linestyle="", markersize=8, color=TILE, label="class centroid"))
    canvas.legend(handles=handles, loc="lower center", ncols=3, frameon=False, fontsize=TEXT, labelcolor=INK)


EXHIBIT = EmbeddedImages()
