"""Embeddings of one dimension: Gaussians as bars μ ± σ, and classes in the order of their centres."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from numpy.typing import NDArray

from hedged.metrics import run_lengths
from hedged.plots.plane import Array
from hedged.plots.style import INK, SMALL, digit_colour, ink_on

Labels = NDArray[np.int64]
TRACKS = {"tens": 10, "ones": 1}  # a digit, and what it counts; from top to bottom


def draw_bars(axes: Axes, means: Array, deviations: Array, heights: Array, colour: str, width: float) -> None:
    """Draw embeddings as bars μ ± σ, points as dots; a thin line joins the components of a mixture.

    Args:
        axes: The panel.
        means: Of the components, `(n, C)`.
        deviations: Standard deviations of the components, `(n, C)`.
        heights: Of the bars, `(n,)`.
        colour: Of all of them.
        width: Of a bar, in points.
    """
    upwards = np.broadcast_to(heights[:, None], means.shape)
    if means.shape[1] > 1:
        axes.hlines(heights, means.min(1), means.max(1), colors=colour, linewidths=0.6, alpha=0.6)
    if not deviations.any():
        axes.plot(means.ravel(), upwards.ravel(), "o", color=colour, markersize=2 * width)
        return
    ends = np.stack([means - deviations, means + deviations], axis=-1)
    bars = np.stack([ends, np.broadcast_to(upwards[..., None], ends.shape)], axis=-1)
    axes.add_collection(LineCollection(list(bars.reshape(-1, 2, 2)), colors=colour, linewidths=width, alpha=0.75))


def draw_order(axes: Axes, order: Labels) -> None:
    """Draw numbers of two digits in an order: a track a digit, and under them a bar a run.

    Args:
        axes: The panel.
        order: The numbers from left to right, `(n,)`.
    """
    for height, unit in zip((2, 1), TRACKS.values(), strict=True):
        _draw_track(axes, list(blocks(order // unit % 10)), height)
    lengths = run_lengths(order)
    starts = np.cumsum(lengths) - lengths
    runs = [(start + 0.25, length - 0.5) for start, length in zip(starts, lengths, strict=True)]
    axes.broken_barh(runs, (0.5, 0.2), facecolor=INK)
    axes.set(xlim=(0, len(order)), ylim=(0.3, 3), xticks=[])
    axes.set_yticks([2.46, 1.46, 0.6], [*TRACKS, "runs"])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _draw_track(axes: Axes, found: Sequence[tuple[int, int, int]], height: float) -> None:
    """Blocks in the colours of their digits, and the digits in them."""
    colours = [digit_colour(digit) for *_, digit in found]
    axes.broken_barh(
        [(start, length) for start, length, _ in found], (height, 0.92),
        facecolors=colours, edgecolor="white", linewidth=0.5,
    )  # fmt: skip
    for (start, length, digit), colour in zip(found, colours, strict=True):
        axes.text(
            start + length / 2, height + 0.46, str(digit), fontsize=SMALL, color=ink_on(colour),
            ha="center", va="center_baseline", in_layout=False,
        )  # fmt: skip


def blocks(values: Labels) -> Iterator[tuple[int, int, int]]:
    """Equal neighbours together: where each block begins, how many values it has, and which.

    >>> list(blocks(np.array([7, 7, 3])))
    [(0, 2, 7), (2, 1, 3)]

    Args:
        values: Non-negative, `(n,)`.
    """
    starts = np.flatnonzero(np.diff(values, prepend=-1))
    for start, end in zip(starts, [*starts[1:], len(values)], strict=True):
        yield int(start), int(end - start), int(values[start])
