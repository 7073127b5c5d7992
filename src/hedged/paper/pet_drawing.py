"""The figure of the pets: accuracy in bins of uncertainty, and match scores in the first and the last of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from scipy.special import logit

from hedged.paper.pet_measurements import COLUMNS, FAINTEST, STRONGEST, BinsOfUncertainty, Spread
from hedged.plots.canvas import FAINT, INK
from hedged.plots.style import HEDGED, POINT, SMALL, labels, letters, panels, title

TICKS = (1, 5, 10, 15, 20)  # bins that are numbered
ACCURACIES = 5  # that are numbered, at most
SAME, DIFFERENT = HEDGED, "#D55E00"
ODDS = {1e-6: "10⁻⁶", 1e-4: "10⁻⁴", 0.01: "0.01", 0.5: "0.5", 0.98: "0.98"}  # probabilities that are numbered


def draw(found: Sequence[BinsOfUncertainty]) -> Figure:
    """(a) all seeds and their mean; (b) and (c) the first seed."""
    figure, axes = panels(1, 3, height=2.5, width_ratios=(1.25, 1, 1))
    _accuracies(axes[0, 0], found)
    top = max(_density(counts).max() for end in _ends(found[0]) for counts in (end.same, end.different))
    for one, spread, words in zip(axes[0, 1:], _ends(found[0]), ("lowest", "highest"), strict=True):
        _scores(one, spread)
        one.set_ylim(0, 1.08 * top)
        title(one, f"{words} uncertainty")
    labels(axes[0, 1], x="match probability", y="density, in log-odds")
    labels(axes[0, 2], x="match probability")
    axes[0, 2].tick_params(labelleft=False)
    axes[0, 1].legend(loc="upper left", fontsize=SMALL, frameon=False, handlelength=1.2, labelcolor=INK)
    letters(list(axes.flat))
    return figure


def _ends(found: BinsOfUncertainty) -> tuple[Spread, Spread]:
    return found.lowest, found.highest


def _accuracies(axes: Axes, found: Sequence[BinsOfUncertainty]) -> None:
    curves = np.array([each.accuracy for each in found])
    bins, mean = np.arange(1, curves.shape[1] + 1), curves.mean(0)
    axes.plot(bins, curves.T, color=POINT, alpha=0.45, linewidth=0.7)
    axes.plot(bins, mean, color=HEDGED, marker="o", markersize=3.2, linewidth=1.2)
    kendall, pearson = (np.mean([getattr(each, name) for each in found]) for name in ("kendall", "pearson"))
    title(axes, f"$\\tau = {kendall:.2f}$, Pearson’s $r = {pearson:.2f}$")
    axes.set_xlim(0, len(bins) + 1)
    axes.set_xticks(TICKS)
    axes.yaxis.set_major_locator(MaxNLocator(ACCURACIES, steps=(1, 2, 5, 10)))
    axes.grid(axis="y", color=FAINT, linewidth=0.6)
    labels(axes, x="bin of uncertainty", y="balanced accuracy")


def _scores(axes: Axes, spread: Spread) -> None:
    edges = np.linspace(FAINTEST, STRONGEST, COLUMNS + 1)
    for counts, colour, words in ((spread.same, SAME, "same dog"), (spread.different, DIFFERENT, "different dogs")):
        axes.stairs(_density(counts), edges, fill=True, color=colour, alpha=0.35)
        axes.stairs(_density(counts), edges, color=colour, linewidth=1.0, label=words)
    axes.set_xlim(FAINTEST, STRONGEST)
    axes.set_xticks(logit(list(ODDS)), list(ODDS.values()))


def _density(counts: Sequence[int]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    width = (STRONGEST - FAINTEST) / COLUMNS
    shares: np.ndarray[tuple[int], np.dtype[np.float64]] = np.array(counts, dtype=np.float64) / sum(counts) / width
    return shares
