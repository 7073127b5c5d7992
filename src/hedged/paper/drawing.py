"""What the figures of embeddings are drawn with: ellipses, ellipsoids, class centres, lines and test images."""

from __future__ import annotations

from itertools import combinations, permutations, product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection, LineCollection
from matplotlib.colors import to_rgba
from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection  # type: ignore[import-untyped]
from numpy.typing import NDArray

from hedged.evaluation import CONDITIONS, Condition
from hedged.evaluation.space import DRAWN, MARGIN, Space
from hedged.metrics import Centroids
from hedged.plots.canvas import FAINT, MUTED
from hedged.plots.plane import Array, Plane
from hedged.plots.style import COLOURS, INK, SMALL

Pixels = NDArray[np.uint8]

PALE, TILE = "#8b949e", "#e6eaee"  # of the number of a class, and of the square beneath it
PLANE = Plane.through(np.zeros((1, 2)))  # embeddings of two dimensions are drawn as they are
# Opacity: of a fill where σ = 1, for ellipses and for ellipsoids, and its bounds; of outlines, gloss and shadows.
FLAT, FLAT_BOUNDS, SOLID, SOLID_BOUNDS = 0.05, (0.03, 0.6), 0.18, (0.2, 1.0)
EDGE, GLOSS, SHADOW = 0.8, 0.09, 0.07
CAPS = 10  # layers of an ellipsoid
LIGHT = (40, -40)  # degrees above the viewer, and to the left
TURN = np.linspace(0, 2 * np.pi, 49)


def ellipses(
    axes: Axes, means: Array, variances: Array, colour: str, deviations: float = 1.0, width: float = 0.7
) -> EllipseCollection:
    """The ellipses of Gaussians out to some standard deviations, large ones beneath small ones.

    `means` and `variances` are `(..., 2)`. The wider a Gaussian, the fainter its fill, as is its density.
    """
    order = np.argsort(-variances.reshape(-1, 2).prod(-1), kind="stable")  # the largest is drawn first
    places, spreads = means.reshape(-1, 2)[order], variances.reshape(-1, 2)[order]
    fill = np.clip(FLAT / spreads.prod(-1) ** 0.25, *FLAT_BOUNDS)
    widths, heights, angles = PLANE.ellipses(spreads)
    drawn = EllipseCollection(
        deviations * widths, deviations * heights, angles, units="xy", offsets=places, offset_transform=axes.transData,
        facecolors=[to_rgba(colour, alpha) for alpha in fill], edgecolors=to_rgba(colour, EDGE), linewidths=width,
    )  # fmt: skip
    axes.add_collection(drawn, autolim=False)
    return drawn


def joined(axes: Axes, means: Array, colour: str, width: float = 0.5) -> LineCollection:
    """A thin line through the components of each input, `means` `(n, C, 2)`: the shortest through all of them."""
    lines = LineCollection([_shortest_path(parts) for parts in means], colors=to_rgba(colour, 0.6), linewidths=width)
    lines.set_zorder(0.9)  # beneath the ellipses
    axes.add_collection(lines, autolim=False)
    return lines


def _shortest_path(points: Array) -> Array:
    paths = [points[list(order)] for order in permutations(range(len(points)))]
    return min(paths, key=lambda path: float(np.linalg.norm(np.diff(path, axis=0), axis=-1).sum()))


def ellipsoids(axes: Any, means: Array, variances: Array, colour: str, deviations: float = 1.0) -> Any:
    """The ellipsoids of Gaussians out to some standard deviations, on axes that `cube_view` has set up.

    `means` and `variances` are `(..., 3)`. Each is its silhouette and, upon that, nested caps of faint white that
    shrink towards the light: smooth, and without the seams between the facets of a translucent mesh. All are in one
    collection, since matplotlib sorts by depth within a collection only.
    """
    places, spreads = means.reshape(-1, 3), np.sqrt(variances.reshape(-1, 3))
    caps = np.stack([_caps(spread, axes) for spread in spreads])  # (n, CAPS, 49, 3)
    shapes = places[:, None, None] + deviations * spreads[:, None, None] * caps
    faces, edges = np.tile(to_rgba("white", GLOSS), (len(places), CAPS, 1)), np.zeros((len(places), CAPS, 4))
    faces[:, 0] = edges[:, 0] = to_rgba(colour, EDGE)
    faces[:, 0, 3] = np.clip(SOLID / spreads.prod(-1) ** (1 / 3), *SOLID_BOUNDS)
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
    """Show a cube that holds all points `(n, 3)`, in parallel projection: its edges but those nearest to the viewer."""
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


def numbers(axes: Axes, centroids: Centroids, digits: int, squares: bool = False) -> None:
    """Every class centre as its number, on a square if wanted; all beneath what is drawn of the images."""
    if squares:
        axes.plot(*centroids.positions.T, "s", markersize=10, color=TILE, markeredgewidth=0, zorder=0.7)
    for label, (x, y) in zip(centroids.labels, centroids.positions, strict=True):
        word = axes.text(x, y, f"{label:0{digits}d}", ha="center", va="center", clip_on=True, zorder=0.8)
        word.set(fontsize=SMALL, color=MUTED if squares else PALE)


def square_view(axes: Axes, points: Array, margin: float = 0.1) -> None:
    """Show a framed square that holds all points `(n, 2)`, at one scale in both directions and without ticks."""
    low, high = points.min(0), points.max(0)
    centre, reach = (low + high) / 2, (0.5 + margin) * (high - low).max() + 1e-6
    axes.set(xlim=centre[0] + np.array([-reach, reach]), ylim=centre[1] + np.array([-reach, reach]))
    axes.set(xticks=[], yticks=[], aspect="equal")
    axes.spines[:].set(visible=True, color=FAINT)


def cloud_panel(axes: Axes, space: Space, condition: Condition, images: int = DRAWN) -> None:
    """Some of the images that a space draws, as ellipses of one standard deviation on the numbers of the classes."""
    drawn = space.drawn[:images]
    means, variances = space.parts(condition, drawn)
    numbers(axes, space.centroids, space.evaluation.ndigit.n_digits)
    if space.components > 1:
        joined(axes, means, COLOURS[condition])
    ellipses(axes, means, variances, COLOURS[condition])
    square_view(axes, np.concatenate([space.parts(c, drawn)[0].reshape(-1, 2) for c in CONDITIONS]), MARGIN)


def thumbnail(axes: Axes, pixels: Pixels, colour: str) -> None:
    """A test image `(H, W)` in a coloured frame."""
    axes.imshow(pixels, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    height, width = pixels.shape
    axes.set(xticks=[], yticks=[], xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5))
    axes.spines[:].set(visible=True, color=colour, linewidth=1.2)
