"""Gaussians as ellipsoids: embeddings of three dimensions."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
from matplotlib.colors import to_rgba
from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection  # type: ignore[import-untyped]

from hedged.plots.plane import Array
from hedged.plots.style import FAINT, INK

FILL, FILL_BOUNDS = 0.18, (0.2, 1.0)  # opacity of the inside where σ = 1, and its bounds
EDGE, GLOSS, SHADOW = 0.8, 0.09, 0.07  # opacity of outlines, of each cap, and of shadows on the floor
CAPS = 10  # layers of an ellipsoid
LIGHT = (40, -40)  # degrees above the viewer, and to the left
TURN = np.linspace(0, 2 * np.pi, 49)


def draw_ellipsoids(axes: Any, means: Array, variances: Array, colour: str, deviations: float = 1.0) -> Any:
    """Draw Gaussians as ellipsoids, on axes that `cube_view` has set up.

    Each is its silhouette and, upon that, nested caps of faint white that shrink towards the light: smooth, and
    without the seams between the facets of a translucent mesh. All are in one collection, since matplotlib sorts by
    depth within a collection only.

    Args:
        axes: A panel in three dimensions.
        means: `(..., 3)`.
        variances: `(..., 3)`.
        colour: Of all of them.
        deviations: How many standard deviations an ellipsoid reaches.
    """
    places, spreads = means.reshape(-1, 3), np.sqrt(variances.reshape(-1, 3))
    caps = np.stack([_caps(spread, axes) for spread in spreads])  # (n, CAPS, 49, 3)
    shapes = places[:, None, None] + deviations * spreads[:, None, None] * caps
    faces, edges = np.tile(to_rgba("white", GLOSS), (len(places), CAPS, 1)), np.zeros((len(places), CAPS, 4))
    faces[:, 0] = edges[:, 0] = to_rgba(colour, EDGE)
    faces[:, 0, 3] = np.clip(FILL / spreads.prod(-1) ** (1 / 3), *FILL_BOUNDS)
    drawn = Poly3DCollection(
        shapes.reshape(-1, len(TURN), 3), facecolors=faces.reshape(-1, 4), edgecolors=edges.reshape(-1, 4),
        linewidths=0.4, rasterized=True, in_layout=False,
    )  # fmt: skip
    axes.add_collection3d(drawn, autolim=False)
    _shadows(axes, places, deviations * spreads)
    return drawn


def _shadows(axes: Any, places: Array, reach: Array) -> None:
    """Where the ellipsoids stand over the floor of the cube."""
    circle = np.stack([np.cos(TURN), np.sin(TURN), np.zeros_like(TURN)], axis=-1)
    floor = np.column_stack([places[:, :2], np.full(len(places), axes.get_zlim()[0])])
    shadows = Poly3DCollection(floor[:, None] + reach[:, None] * circle, facecolors=to_rgba(INK, SHADOW), linewidths=0)
    shadows.set(zorder=0.5, in_layout=False)
    axes.add_collection3d(shadows, autolim=False)


def _caps(spread: Array, axes: Any) -> Array:
    """Circles on the unit sphere that an ellipsoid is the image of, `(CAPS, 49, 3)`: its silhouette, then smaller ones.

    A point n of the sphere is on the silhouette when the normal n/σ of its image is at right angles to the view.
    """
    front, light = (_unit(_direction(axes.elev + up, axes.azim + side) / spread) for up, side in ((0, 0), LIGHT))
    share = np.linspace(0, 1, CAPS, endpoint=False)[:, None, None]
    axis = _unit((1 - share) * front + share * _unit(front + light))
    across = _unit(np.cross(axis, [0.3, 0.5, 0.8]))
    around = np.cos(TURN)[:, None] * across + np.sin(TURN)[:, None] * np.cross(axis, across)
    circles: Array = np.sin(share * np.pi / 2) * axis + np.cos(share * np.pi / 2) * around
    return circles


def _unit(vectors: Array) -> Array:
    lengths: Array = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / lengths


def _direction(elevation: float, azimuth: float) -> Array:
    """Of a view in degrees, as matplotlib has it: from the origin towards the viewer."""
    up, around = np.radians([elevation, azimuth])
    return np.array([np.cos(up) * np.cos(around), np.cos(up) * np.sin(around), np.sin(up)])


def cube_view(axes: Any, points: Array, elevation: float = 20, azimuth: float = -60, margin: float = 0.1) -> None:
    """Show a cube that holds all points, in parallel projection: its edges but those nearest to the viewer.

    Args:
        axes: A panel in three dimensions.
        points: `(n, 3)`.
        elevation: Of the viewer above the floor, in degrees.
        azimuth: Of the viewer around the vertical axis, in degrees.
        margin: Room on each side, in widths of what is shown.
    """
    low, high = points.min(0), points.max(0)
    centre, reach = (low + high) / 2, (0.5 + margin) * float((high - low).max()) + 1e-6
    axes.set_proj_type("ortho")
    axes.view_init(elevation, azimuth)
    axes.set(**{f"{name}lim": (c - reach, c + reach) for name, c in zip("xyz", centre, strict=True)})
    axes.set_box_aspect((1, 1, 1), zoom=1.1)
    axes.computed_zorder = False
    axes.set_axis_off()
    edges = centre + reach * _far_edges(elevation, azimuth)
    axes.add_collection3d(Line3DCollection(edges, colors=FAINT, linewidths=0.8, zorder=0), autolim=False)


def _far_edges(elevation: float, azimuth: float) -> Array:
    """The nine edges of the cube [−1, 1]³ that do not meet the corner nearest to the viewer, `(9, 2, 3)`."""
    nearest = np.sign(_direction(elevation, azimuth))
    corners = np.array(list(product((-1.0, 1.0), repeat=3)))
    edges = np.array([pair for pair in combinations(corners, 2) if np.ptp(pair, axis=0).sum() == 2])
    far: Array = edges[(edges != nearest).any(-1).all(-1)]
    return far
