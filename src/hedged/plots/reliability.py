"""The reliability diagram: the share of pairs that match against the match probability they were given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from hedged.metrics.calibration import Reliability
from hedged.plots.style import COLOURS, FAINT, INK, MUTED, SCREEN, calm

SIDE = 3.4  # inches
Values = Sequence[float] | NDArray[np.float64]


class Diagram(NamedTuple):
    """One reliability diagram: what it is of, its bins, and scores by name, written in its corner."""

    title: str
    bins: Reliability
    scores: Mapping[str, float]


def reliability_figure(before: Diagram, after: Diagram) -> Figure:
    """Two diagrams side by side; calibrated probabilities lie on the diagonal.

    Args:
        before: The probabilities as the model gives them.
        after: The calibrated ones.
    """
    figure = Figure(figsize=(2 * SIDE, SIDE + 0.4), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    for axes, diagram, colour in zip(panels, (before, after), (COLOURS["corrupt"], COLOURS["clean"]), strict=True):
        draw_reliability(axes, diagram, colour)
    panels[0].set_ylabel("share of pairs that match", fontsize=SCREEN.text, color=MUTED)
    words = "match probability, in bins of equal mass; half of the pairs match"
    figure.supxlabel(words, fontsize=SCREEN.text, color=MUTED)
    return figure


def draw_reliability(axes: Axes, diagram: Diagram, colour: str) -> None:
    """Draw a mark for each bin, and a stem from where it should be.

    Args:
        axes: The panel.
        diagram: What it shows.
        colour: Of marks and stems.
    """
    bins = diagram.bins
    calm(axes, SCREEN)
    draw_diagonal(axes)
    axes.vlines(bins.predicted, bins.predicted, bins.observed, color=colour, alpha=0.5, linewidth=1.2, zorder=2)
    axes.plot(bins.predicted, bins.observed, "o", color=colour, markersize=4.5, clip_on=False, zorder=3)
    axes.set_aspect("equal")
    axes.set_title(diagram.title, fontsize=SCREEN.text, color=INK)
    words = "\n".join(f"{name} {score:.3f}" for name, score in diagram.scores.items())
    axes.text(0.04, 0.96, words, fontsize=SCREEN.small, color=INK, va="top", transform=axes.transAxes)


def draw_reliability_lines(axes: Axes, lines: Sequence[tuple[Values, Values]], colour: str, label: str) -> None:
    """Draw many reliability curves of one kind as faint lines, such as one for each split of the identities.

    Args:
        axes: The panel.
        lines: Predicted and observed of each curve.
        colour: Of all of them.
        label: Their one name in the key.
    """
    for predicted, observed in lines:
        axes.plot(predicted, observed, color=colour, linewidth=0.8, alpha=0.35)
    axes.plot([], [], color=colour, label=label)


def draw_diagonal(axes: Axes, colour: str = FAINT, width: float = 1.0, layer: float = 1.0) -> None:
    """Draw the line on which probabilities are calibrated, and show the unit square.

    Args:
        axes: The panel.
        colour: Of the line.
        width: Of the line, in points.
        layer: Its z-order.
    """
    axes.plot([0, 1], [0, 1], color=colour, linewidth=width, zorder=layer)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
