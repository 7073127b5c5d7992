"""Performance in bins of uncertainty, and histograms: the lines that several figures draw."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from hedged.plots.style import PRINT, Sizes

Values = Sequence[float] | NDArray[np.float64]


def draw_bins(
    axes: Axes,
    performance: Values,
    colour: str,
    marker: str,
    sizes: Sizes = PRINT,
    label: str | None = None,
    hollow: bool = False,
) -> None:
    """Draw performance by bin, the bins counted from 1.

    Args:
        axes: The panel.
        performance: A number a bin, the most certain bin first.
        colour: Of the line and its markers.
        marker: As matplotlib names it.
        sizes: Those of print, or of a screen.
        label: Its name in the key, if it is to have one.
        hollow: Whether markers are white inside.
    """
    axes.plot(
        np.arange(1, len(performance) + 1), performance, color=colour, marker=marker, markersize=sizes.marker,
        linewidth=sizes.line, clip_on=False, markerfacecolor="white" if hollow else colour, label=label,
    )  # fmt: skip


def draw_histogram(axes: Axes, heights: Values, edges: Values, colour: str, label: str, width: float = 1.0) -> None:
    """Draw a histogram as a step line with a faint fill.

    Args:
        axes: The panel.
        heights: Of the columns, `(n,)`.
        edges: Of the columns, `(n + 1,)`.
        colour: Of line and fill.
        label: Its name in the key.
        width: Of the line, in points.
    """
    axes.stairs(heights, edges, fill=True, color=colour, alpha=0.35)
    axes.stairs(heights, edges, color=colour, linewidth=width, label=label)
