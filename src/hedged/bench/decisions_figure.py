"""The figure of what `hedged.bench.decisions` measured: a row for each set of images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hedged.bench.decisions import ABSTAIN, CHOICES, TARGET
from hedged.plots.reliability import draw_diagonal, draw_reliability_lines
from hedged.plots.style import (
    COLOURS,
    FAINT,
    FULL,
    GREEN,
    HEDGED,
    INK,
    ORANGE,
    PINK,
    POINT,
    SMALL,
    TEXT,
    VERMILION,
    labels,
    panels,
    title,
)

LINES = dict(zip(CHOICES, (HEDGED, VERMILION, ORANGE, POINT, GREEN, PINK), strict=True))
STYLES = dict(zip(CHOICES, ("-", "-", "-", "-", ":", ":"), strict=True))


def draw(sets: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Reliability, false-match rates in their intervals, and error against abstention, by the name of the set."""
    figure, axes = panels(len(sets), 3, height=FULL * 0.36 * len(sets) + 0.1)
    for row, (name, content) in zip(axes, sets.items(), strict=True):
        _reliability(row[0], [trial["bins"] for trial in content["trials"]])
        _rates(row[1], content["trials"])
        _abstention(row[2], content["curves"])
        row[0].annotate(
            name,
            (-0.36, 0.5),
            xycoords="axes fraction",
            rotation=90,
            fontsize=TEXT,
            color=INK,
            va="center",
            ha="center",
        )
    for panel, text in zip(axes[0], ("probabilities come true", "false-match rates", "not deciding"), strict=True):
        title(panel, text)
    axes[0, 2].legend(frameon=False, fontsize=SMALL - 1, labelcolor=INK, handlelength=1.4, labelspacing=0.25)
    axes[0, 0].legend(frameon=False, fontsize=SMALL, labelcolor=INK, handlelength=1.2, loc="lower right")
    return figure


def _reliability(axes: Axes, trials: list[Mapping[str, list[float]]]) -> None:
    """A line for each split, before and after."""
    draw_diagonal(axes, INK, width=0.6, layer=3)
    for when, colour in (("before", COLOURS["corrupt"]), ("after", COLOURS["clean"])):
        lines = [(bins[f"predicted {when}"], bins[f"observed {when}"]) for bins in trials]
        draw_reliability_lines(axes, lines, colour, when)
    labels(axes, "match probability", "share that match")


def _rates(axes: Axes, trials: list[Mapping[str, Any]]) -> None:
    """A line for each split: its interval, and the rate on the other half."""
    trials = sorted(trials, key=lambda trial: float(trial["false_match_rate"]))
    axes.axvline(TARGET, color=FAINT, linewidth=1.0)
    for k, trial in enumerate(trials):
        colour = COLOURS["clean"] if trial["inside"] else COLOURS["corrupt"]
        axes.plot([trial["low"], trial["high"]], [k, k], color=colour, alpha=0.4, linewidth=2.4, solid_capstyle="butt")
        axes.plot(trial["false_match_rate"], k, "o", color=colour, markersize=3)
    inside = sum(bool(trial["inside"]) for trial in trials)
    axes.set_yticks([])
    axes.set_xlim(0, max(0.02, *(1.08 * max(trial["high"], trial["false_match_rate"]) for trial in trials)))
    labels(axes, f"aimed at {TARGET:g}: {inside} of {len(trials)} inside", "splits")


def _abstention(axes: Axes, curves: Mapping[str, Any]) -> None:
    shares = np.array(curves["not_decided"])
    axes.axvline(ABSTAIN, color=FAINT, linewidth=1.0)
    for name, colour in LINES.items():
        axes.plot(shares, curves["error"][name], STYLES[name], color=colour, linewidth=1.2, label=name)
    axes.set_xlim(0, shares[-1])
    axes.set_ylim(0, None)
    labels(axes, "share of pairs not decided", "error of the others")
