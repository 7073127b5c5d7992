"""The reliability diagram: what came true against what was predicted, before calibration and after."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hedged.decisions import Calibration, Quality
from hedged.plots.canvas import COLOURS, FAINT, INK, MUTED, SMALL_TEXT, TEXT, calm

SIDE = 3.4  # inches


def reliability_figure(calibration: Calibration) -> Figure:
    """Two panels; on the diagonal, probabilities come true."""
    choice = calibration.choice
    figure = Figure(figsize=(2 * SIDE, SIDE + 0.4), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    draw_reliability(panels[0], choice.before, "before", COLOURS["corrupt"])
    draw_reliability(panels[1], choice.after, f"after: {calibration.kind}", COLOURS["clean"])
    panels[0].set_ylabel("share of pairs that match", fontsize=TEXT, color=MUTED)
    figure.supxlabel("match probability, in bins of equal mass; half of the pairs match", fontsize=TEXT, color=MUTED)
    return figure


def draw_reliability(axes: Axes, quality: Quality, name: str, colour: str) -> None:
    """One panel: a mark for each bin and a stem from where it should be."""
    bins = quality.reliability
    calm(axes)
    axes.plot([0, 1], [0, 1], color=FAINT, linewidth=1.0, zorder=1)
    axes.vlines(bins.predicted, bins.predicted, bins.observed, color=colour, alpha=0.5, linewidth=1.2, zorder=2)
    axes.plot(bins.predicted, bins.observed, "o", color=colour, markersize=4.5, clip_on=False, zorder=3)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_aspect("equal")
    axes.set_title(name, fontsize=TEXT, color=INK)
    told = f"ECE {quality.ece:.3f}\nBrier {quality.brier:.3f}\nNLL {quality.nll:.3f}"
    axes.text(0.04, 0.96, told, fontsize=SMALL_TEXT, color=INK, va="top", transform=axes.transAxes)
