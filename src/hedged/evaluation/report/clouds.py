"""The section on the embedding space: clean clouds beside corrupt ones, and a few images looked at closely."""

from __future__ import annotations

import numpy as np
from matplotlib.collections import EllipseCollection, LineCollection
from numpy.typing import NDArray

from hedged.evaluation.evaluation import CONDITIONS, Condition, Evaluation
from hedged.evaluation.images import images_of, reading, thumbnail
from hedged.evaluation.report.markup import Section, escape, grid
from hedged.evaluation.report.number_line import line_panel
from hedged.evaluation.report.panel import WIDTH, Panel
from hedged.evaluation.space import NAMES, Space
from hedged.plots.plane import Array
from hedged.plots.style import COLOURS, INK, MUTED

MOST_NAMED = 100  # classes whose centre is shown as its number; more would be a blur


def space_section(evaluation: Evaluation) -> Section:
    space = Space(evaluation)
    draw = line_panel if space.embedding.dim == 1 else _plane_panel
    panels = [draw(space, condition) for condition in CONDITIONS]
    body = grid(panels, "charts") + "\n" + grid(_close_looks(space), "cards")
    return Section("space", "Where images land", " ".join(_lead(space)), body)


def _lead(space: Space) -> list[str]:
    dim = space.embedding.dim
    mark = "dot" if space.is_point else "bar" if dim == 1 else "ellipse"
    words = [f"Each {mark} is one test image, {'at its place' if space.is_point else 'out to one standard deviation'}."]
    if dim == 1:
        words.append("The one dimension runs from left to right; each class has its height, its centre a grey tick.")
    else:
        sign = "numbers" if len(space.centroids.labels) <= MOST_NAMED else "squares"
        words.append(f"Grey {sign} are the centres of the clean classes.")
    if space.components > 1:
        words.append(f"A thin line joins the {space.components} components of one image.")
    if space.is_point:
        words.append("A point has no spread: an image that is hard to read lands somewhere and does not say so.")
    else:
        words.append("Hide part of an image, and its cloud should stretch over the classes that it could still be.")
    if dim > 2:
        words.append(
            f"The embedding has {dim} dimensions; this is the view along the two principal axes of the means, "
            f"which hold {space.plane.share:.0%} of their variance."
        )
    return words


def _plane_panel(space: Space, condition: Condition) -> str:
    (left, bottom), (right, top) = space.limits
    height = float(np.clip(WIDTH * (top - bottom) / (right - left), 2.6, 5.2))
    panel = Panel(f"{condition.capitalize()}, {len(space.drawn)} images", height)
    panel.axes.set(xlim=(left, right), ylim=(bottom, top), xticks=[], yticks=[], aspect="equal")
    panel.axes.spines[:].set_visible(False)
    _draw_clouds(panel, space, condition)
    _draw_centres(panel, space)
    _mark(panel, space, condition)
    return panel.html(f"{len(space.drawn)} {condition} test images over {len(space.centroids.labels)} class centres")


def _draw_clouds(panel: Panel, space: Space, condition: Condition) -> None:
    means, variances = space.parts(condition, space.drawn)
    places, colour = space.plane.project(means), COLOURS[condition]
    if space.components > 1:
        panel.axes.add_collection(LineCollection(list(places), colors=colour, linewidths=0.6, alpha=0.5))
    if space.is_point:
        panel.axes.plot(*places.reshape(-1, 2).T, "o", markersize=4, color=colour, alpha=0.7, markeredgewidth=0)
        return
    for face, edge, alpha in ((colour, "none", 0.06), ("none", colour, 0.45)):
        panel.axes.add_collection(_ellipses(panel, space, places, variances, face, edge, alpha, width=0.7))


def _ellipses(
    panel: Panel, space: Space, places: Array, variances: Array, face: str, edge: str, alpha: float, width: float
) -> EllipseCollection:
    shapes = space.plane.ellipses(variances.reshape(-1, variances.shape[-1]))
    collection = EllipseCollection(
        *shapes, units="xy", offsets=places.reshape(-1, 2), offset_transform=panel.axes.transData,
        facecolors=face, edgecolors=edge, linewidths=width,
    )  # fmt: skip
    collection.set_alpha(alpha)
    return collection


def _draw_centres(panel: Panel, space: Space) -> None:
    places, name = space.plane.project(space.centroids.positions), space.evaluation.data.name
    if len(places) > MOST_NAMED:
        panel.axes.plot(*places.T, "s", markersize=2, color=MUTED, alpha=0.6, markeredgewidth=0)
        return
    for label, (x, y) in zip(space.centroids.labels, places, strict=True):
        panel.axes.text(x, y, name(int(label)), fontsize=7, color=MUTED, ha="center", va="center", zorder=3)


def _mark(panel: Panel, space: Space, condition: Condition) -> None:
    """Outline the images that are looked at closely and give them letters."""
    means, variances = space.parts(condition, space.marked)
    places = space.plane.project(means)
    tops = space.plane.deviations(variances)[..., 1]
    if space.is_point:
        panel.axes.plot(*places.reshape(-1, 2).T, "o", markersize=6, color=INK)
    else:
        panel.axes.add_collection(_ellipses(panel, space, places, variances, "none", INK, alpha=1.0, width=1.5))
    if space.components > 1:
        panel.axes.add_collection(LineCollection(list(places), colors=INK, linewidths=1.0))
    for name, parts, heights in zip(NAMES, places, tops, strict=False):
        for (x, y), height in zip(parts, heights, strict=True):
            panel.letter(name, x, y + height)


def _close_looks(space: Space) -> list[str]:
    images = {c: images_of(space.evaluation, c, space.marked) for c in CONDITIONS}
    return [_close_look(space, k, {c: images[c][k] for c in CONDITIONS}) for k in range(len(space.marked))]


def _close_look(space: Space, k: int, images: dict[Condition, NDArray[np.uint8]]) -> str:
    item = int(space.marked[k])
    label = reading(space.evaluation, item)
    views = "".join(
        f"<div>{thumbnail(images[c], f'{c} image of {label}')}"
        f"<span>{c}{'' if space.is_point else f', η {space.evaluation.uncertainty[c][item]:.2f}'}</span></div>"
        for c in CONDITIONS
    )
    return f'<div class="card"><b>{NAMES[k]}</b> reads {escape(label)}<div class="views">{views}</div></div>'
