"""Embeddings of one dimension: bars μ ± σ along the line, each class at its own height."""

from __future__ import annotations

import numpy as np
from matplotlib.collections import LineCollection
from numpy.typing import NDArray

from hedged.evaluation.evaluation import Condition
from hedged.evaluation.report.panel import Panel
from hedged.evaluation.space import NAMES, Space
from hedged.plots.style import COLOURS, INK, MUTED


def line_panel(space: Space, condition: Condition) -> str:
    """Classes are stacked in the order of their centres, so that the centres rise from left to right."""
    panel = Panel(f"{condition.capitalize()}, {len(space.drawn)} images", height=4.6)
    centres = np.sort(space.centroids.positions[:, 0])
    panel.axes.plot(centres, np.arange(len(centres)), "|", color=MUTED, markersize=5, zorder=3)
    for items, colour, width in ((space.drawn, COLOURS[condition], 2.0), (space.marked, INK, 2.6)):
        _draw_bars(panel, space, condition, items, colour, width)
    _name(panel, space, condition)
    (low,), (high,) = space.limits
    panel.axes.set(xlim=(low, high), yticks=[], ylim=(-1.5, len(centres) + 0.5))
    panel.axes.spines["left"].set_visible(False)
    panel.label("embedding", "classes, in the order of their centres")
    return panel.html(f"{len(space.drawn)} {condition} test images on the number line of the embedding")


def _heights(space: Space, items: NDArray[np.intp]) -> NDArray[np.intp]:
    """The rank of each image's class along the line."""
    order = np.argsort(space.centroids.positions[:, 0], kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[np.searchsorted(space.centroids.labels, space.evaluation.labels[items])]


def _draw_bars(
    panel: Panel, space: Space, condition: Condition, items: NDArray[np.intp], colour: str, width: float
) -> None:
    means, variances = space.parts(condition, items)
    places, sigmas = means[..., 0], np.sqrt(variances[..., 0])
    heights = np.broadcast_to(_heights(space, items)[:, None], places.shape)
    if space.components > 1:
        panel.axes.hlines(heights[:, 0], places.min(1), places.max(1), colors=colour, linewidths=0.6, alpha=0.6)
    if space.is_point:
        panel.axes.plot(places.ravel(), heights.ravel(), "o", color=colour, markersize=2 * width)
        return
    ends = np.stack([places - sigmas, places + sigmas], axis=-1)
    bars = np.stack([ends, np.broadcast_to(heights[..., None], ends.shape)], axis=-1)
    panel.axes.add_collection(LineCollection(list(bars.reshape(-1, 2, 2)), colors=colour, linewidths=width, alpha=0.75))


def _name(panel: Panel, space: Space, condition: Condition) -> None:
    means, _ = space.parts(condition, space.marked)
    for name, place, height in zip(NAMES, means[:, 0, 0], _heights(space, space.marked), strict=False):
        panel.letter(name, place, height)
