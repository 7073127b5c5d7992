"""The section on the embedding space: clean clouds beside corrupt ones, and a few images looked at closely."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedged.evaluation.evaluation import CONDITIONS, Condition
from hedged.evaluation.images import images_of, reading
from hedged.evaluation.report.panel import WIDTH, Panel
from hedged.evaluation.report.section import Chart, Picture, Section, picture
from hedged.evaluation.space import NAMES, Space
from hedged.plots.ellipses import draw_class_names, draw_clouds, draw_ellipses, join_components
from hedged.plots.number_line import draw_bars
from hedged.plots.plane import Array
from hedged.plots.style import COLOURS, INK, MUTED

MOST_NAMED = 100  # classes whose centre is shown as its name; more would be a blur


class View(NamedTuple):
    """An image in one condition, and how uncertain it is."""

    condition: Condition
    picture: Picture
    uncertainty: float


class CloseLook(NamedTuple):
    """An image that both charts mark by a letter."""

    letter: str
    label: str
    views: list[View]


def space_section(space: Space) -> Section:
    """Where images land: a chart for each condition, and some images beside their corrupt twins.

    Args:
        space: The test set, embedded.
    """
    draw = _line_chart if space.embedding.dim == 1 else _plane_chart
    content = {
        "space": space,
        "dim": space.embedding.dim,
        "centres": "numbers" if len(space.centroids.labels) <= MOST_NAMED else "squares",
        "charts": [draw(space, condition) for condition in CONDITIONS],
        "close_looks": _close_looks(space),
    }
    return Section("space.html", content)


def _plane_chart(space: Space, condition: Condition) -> Chart:
    (left, bottom), (right, top) = space.limits
    height = float(np.clip(WIDTH * (top - bottom) / (right - left), 2.6, 5.2))
    panel = Panel(f"{condition.capitalize()}, {len(space.drawn)} images", height)
    panel.axes.set(xlim=(left, right), ylim=(bottom, top), xticks=[], yticks=[], aspect="equal")
    panel.axes.spines[:].set_visible(False)
    means, _ = space.parts(condition, space.drawn)
    if space.is_point:
        _draw_dots(panel, space.plane.project(means), COLOURS[condition], size=4)
    else:
        draw_clouds(panel.axes, means, space.covariances(condition, space.drawn), COLOURS[condition], space.plane)
    _draw_centres(panel, space)
    _mark(panel, space, condition)
    return panel.chart(f"{len(space.drawn)} {condition} test images over {len(space.centroids.labels)} class centres")


def _draw_dots(panel: Panel, places: Array, colour: str, size: float, alpha: float = 0.7) -> None:
    panel.axes.plot(*places.reshape(-1, 2).T, "o", markersize=size, color=colour, alpha=alpha, markeredgewidth=0)


def _draw_centres(panel: Panel, space: Space) -> None:
    places = space.plane.project(space.centroids.positions)
    if len(places) > MOST_NAMED:
        panel.axes.plot(*places.T, "s", markersize=2, color=MUTED, alpha=0.6, markeredgewidth=0)
    else:
        draw_class_names(panel.axes, space.class_names, places, colour=MUTED, layer=3)


def _mark(panel: Panel, space: Space, condition: Condition) -> None:
    """Outline the images that are looked at closely and give them letters."""
    (means, _), covariances = space.parts(condition, space.marked), space.covariances(condition, space.marked)
    places, tops = space.plane.project(means), space.plane.deviations(covariances)[..., 1]
    if space.is_point:
        _draw_dots(panel, places, INK, size=6, alpha=1.0)
    else:
        draw_ellipses(panel.axes, means, covariances, INK, width=1.5, plane=space.plane, filled=False)
    if space.components > 1:
        join_components(panel.axes, places, INK, width=1.0).set_zorder(2)
    for name, parts, heights in zip(NAMES, places, tops, strict=False):
        for (x, y), height in zip(parts, heights, strict=True):
            panel.letter(name, x, y + height)


def _line_chart(space: Space, condition: Condition) -> Chart:
    """Classes are stacked in the order of their centres, so that the centres rise from left to right."""
    panel = Panel(f"{condition.capitalize()}, {len(space.drawn)} images", height=4.6)
    centres = np.sort(space.centroids.positions[:, 0])
    panel.axes.plot(centres, np.arange(len(centres)), "|", color=MUTED, markersize=5, zorder=3)
    for items, colour, width in ((space.drawn, COLOURS[condition], 2.0), (space.marked, INK, 2.6)):
        means, variances = (part[..., 0] for part in space.parts(condition, items))
        draw_bars(panel.axes, means, np.sqrt(variances), _ranks(space, items), colour, width)
    places = space.parts(condition, space.marked)[0][:, 0, 0]
    for name, place, height in zip(NAMES, places, _ranks(space, space.marked), strict=False):
        panel.letter(name, place, height)
    (low,), (high,) = space.limits
    panel.axes.set(xlim=(low, high), yticks=[], ylim=(-1.5, len(centres) + 0.5))
    panel.axes.spines["left"].set_visible(False)
    panel.label("embedding", "classes, in the order of their centres")
    return panel.chart(f"{len(space.drawn)} {condition} test images on the number line of the embedding")


def _ranks(space: Space, items: NDArray[np.intp]) -> Array:
    """The rank of each image's class along the line."""
    order = np.argsort(space.centroids.positions[:, 0], kind="stable")
    rank = np.empty(len(order))
    rank[order] = np.arange(len(order))
    ranks: Array = rank[np.searchsorted(space.centroids.labels, space.evaluation.labels[items])]
    return ranks


def _close_looks(space: Space) -> list[CloseLook]:
    images = {c: images_of(space.evaluation, c, space.marked) for c in CONDITIONS}
    looks = []
    for k, item in enumerate(map(int, space.marked)):
        label = reading(space.evaluation, item)
        views = [
            View(c, picture(images[c][k], f"{c} image of {label}"), float(space.evaluation.uncertainty[c][item]))
            for c in CONDITIONS
        ]
        looks.append(CloseLook(NAMES[k], label, views))
    return looks
