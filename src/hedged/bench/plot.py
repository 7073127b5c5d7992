"""The costs of `hedged.bench.growth`, a panel for each thing that grows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes

from hedged.bench.growth import Cost
from hedged.plots.style import (
    BROWN,
    FULL,
    GREEN,
    HEDGED,
    ORANGE,
    PRINT,
    SKY,
    SMALL,
    VERMILION,
    grid,
    labels,
    panels,
    title,
)

COLOURS = {
    "closed form": HEDGED,
    "closed form, eager": SKY,
    "Monte Carlo, cdist": GREEN,
    "Monte Carlo, all differences": VERMILION,
    "Monte Carlo, matrix product": ORANGE,
    "Monte Carlo, gathered": BROWN,
}
MARKS = dict(zip(COLOURS, "osXD^v", strict=True))
AXES = {
    "embeddings": "embeddings on each side",
    "dimensions": "dimensions",
    "components": "components",
    "samples": "samples",
    "batch": "images in a batch, all pairs, with gradient",
}


def plot(costs: Sequence[Cost], path: Path) -> None:
    """Microseconds a pair on logarithmic axes, one line a way to compute, all panels on one scale.

    Args:
        costs: What was measured.
        path: Where the picture goes.
    """
    figure, axes = panels(2, 3, height=FULL * 0.62, sharey=True)
    for panel, axis in zip(axes.flat, AXES, strict=False):
        _panel(panel, axis, [cost for cost in costs if cost.axis == axis])
    for row in axes:
        labels(row[0], row[0].get_xlabel(), "µs a pair")
    legend = axes.flat[-1]
    legend.axis("off")
    handles = [legend.plot([], [], color=COLOURS[way], marker=MARKS[way], label=way)[0] for way in COLOURS]
    legend.legend(handles=handles, loc="center", frameon=False, fontsize=SMALL)
    figure.savefig(path, dpi=200, format="png")


def _panel(axes: Axes, axis: str, costs: Sequence[Cost]) -> None:
    for way, colour in COLOURS.items():
        points = [(cost.at, cost.microseconds) for cost in costs if cost.way == way]
        if points:
            axes.plot(*zip(*points, strict=True), color=colour, marker=MARKS[way], markersize=3.5, linewidth=PRINT.line)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    ticks = sorted({cost.at for cost in costs})
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    grid(axes)
    title(axes, axis)
    labels(axes, AXES[axis])
