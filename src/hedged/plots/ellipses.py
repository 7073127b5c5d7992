"""Gaussians as ellipses, and the classes they lie on: embeddings on a plane."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection, LineCollection
from matplotlib.colors import to_rgba

from hedged.plots.plane import Array, Plane
from hedged.plots.style import FAINT, MUTED, SMALL

PALE, TILE = "#8b949e", "#e6eaee"  # of the name of a class, and of the square beneath it
AS_IT_IS = Plane.through(np.zeros((1, 2)))  # two dimensions need no other plane
FILL, FILL_BOUNDS = 0.05, (0.03, 0.6)  # opacity of the inside where σ = 1, and its bounds
EDGE = 0.8  # opacity of an outline


def draw_ellipses(
    axes: Axes,
    means: Array,
    spreads: Array,
    colour: str,
    deviations: float = 1.0,
    width: float = 0.7,
    plane: Plane = AS_IT_IS,
    filled: bool = True,
) -> EllipseCollection:
    """Draw Gaussians as ellipses, turned where coordinates covary, large ones beneath small ones.

    The wider a Gaussian, the fainter its fill, as is its density.

    Args:
        axes: The panel.
        means: `(..., D)`.
        spreads: Covariances `(..., D, D)`, or the diagonals of diagonal ones, `(..., D)`.
        colour: Of outline and fill.
        deviations: How many standard deviations an ellipse reaches.
        width: Of the outline, in points.
        plane: What the D dimensions are seen on; two are drawn as they are.
        filled: Whether there is a fill; an ellipse without one has an opaque outline.
    """
    dim = means.shape[-1]
    places = plane.project(means.reshape(-1, dim))
    widths, heights, angles = plane.ellipses(spreads.reshape(-1, *spreads.shape[means.ndim - 1 :]))
    size = widths * heights / 4  # σ₁σ₂
    order = np.argsort(-size, kind="stable")  # the largest is drawn first
    inside = np.clip(FILL / np.sqrt(np.maximum(size[order], 1e-12)), *FILL_BOUNDS)
    drawn = EllipseCollection(
        deviations * widths[order], deviations * heights[order], angles[order], units="xy",
        offsets=places[order], offset_transform=axes.transData, linewidths=width,
        facecolors=[to_rgba(colour, alpha) for alpha in inside] if filled else "none",
        edgecolors=to_rgba(colour, EDGE if filled else 1.0),
    )  # fmt: skip
    axes.add_collection(drawn, autolim=False)
    return drawn


def join_components(axes: Axes, places: Array, colour: str, width: float = 0.5) -> LineCollection:
    """Draw a thin line through the components of each input, the shortest through all of them.

    Args:
        axes: The panel.
        places: Of the components on the plane, `(n, C, 2)`.
        colour: Of the line.
        width: Of the line, in points.
    """
    lines = LineCollection([_shortest_path(parts) for parts in places], colors=to_rgba(colour, 0.6), linewidths=width)
    lines.set_zorder(0.9)  # beneath the ellipses
    axes.add_collection(lines, autolim=False)
    return lines


def _shortest_path(points: Array) -> Array:
    paths = [points[list(order)] for order in permutations(range(len(points)))]
    return min(paths, key=lambda path: float(np.linalg.norm(np.diff(path, axis=0), axis=-1).sum()))


def draw_clouds(axes: Axes, means: Array, spreads: Array, colour: str, plane: Plane = AS_IT_IS) -> None:
    """Draw embeddings out to one standard deviation, the components of a mixture joined.

    Args:
        axes: The panel.
        means: Of the components, `(n, C, D)`.
        spreads: Their covariances `(n, C, D, D)`, or the diagonals of diagonal ones, `(n, C, D)`.
        colour: Of all of them.
        plane: What the D dimensions are seen on; two are drawn as they are.
    """
    if means.shape[1] > 1:
        join_components(axes, plane.project(means), colour)
    draw_ellipses(axes, means, spreads, colour, plane=plane)


def draw_class_names(
    axes: Axes, names: Sequence[str], places: Array, squares: bool = False, colour: str = PALE, layer: float = 0.8
) -> None:
    """Write the name of every class at its centre, beneath what is drawn of the images.

    Args:
        axes: The panel.
        names: Of the classes.
        places: Of their centres, `(n, 2)`.
        squares: Whether there is a square beneath each name; names are darker then.
        colour: Of the names.
        layer: The z-order of the names; images are drawn at 1.
    """
    if squares:
        axes.plot(*places.T, "s", markersize=10, color=TILE, markeredgewidth=0, zorder=layer - 0.1)
    for name, (x, y) in zip(names, places, strict=True):
        word = axes.text(x, y, name, ha="center", va="center", clip_on=True, zorder=layer)
        word.set(fontsize=SMALL, color=MUTED if squares else colour)


def square_view(axes: Axes, points: Array, margin: float = 0.1) -> None:
    """Show a framed square that holds all points, at one scale in both directions and without ticks.

    Args:
        axes: The panel.
        points: `(n, 2)`.
        margin: Room on each side, in widths of what is shown.
    """
    low, high = points.min(0), points.max(0)
    centre, reach = (low + high) / 2, (0.5 + margin) * (high - low).max() + 1e-6
    axes.set(xlim=centre[0] + np.array([-reach, reach]), ylim=centre[1] + np.array([-reach, reach]))
    axes.set(xticks=[], yticks=[], aspect="equal")
    axes.spines[:].set(visible=True, color=FAINT)
