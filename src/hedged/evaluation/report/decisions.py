"""Same or not, in charts: what a threshold costs, how scores lie, and what refusing the uncertain is worth."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedged.evaluation.report.curves import draw_curve, finish_bins
from hedged.evaluation.report.panel import Panel
from hedged.evaluation.report.section import Chart, Note, Section
from hedged.evaluation.verification import Decisions
from hedged.metrics import (
    accepted_counts,
    average_precision,
    equal_count_bins,
    is_constant,
    precision_recall,
    roc_auc,
)
from hedged.plots.style import COLOURS, FAINT, INK, MUTED, grid

BINS, STEPS = 20, 60
POINTS = 2_000  # of a line in a chart: more would not be seen


def decisions_section(decisions: Decisions, inputs: str) -> Section:
    """What one threshold gets right, in a sentence and in charts.

    Args:
        decisions: Pairs with their scores, and the threshold.
        inputs: What the pairs are of, in a word: "images".
    """
    charts: list[Chart | Note] = [_roc(decisions), _precision_recall(decisions)]
    if not is_constant(decisions.uncertainty):
        charts += [_densities(decisions), _bins(decisions, inputs), _rejects(decisions, inputs)]
    return Section("decisions.html", {"decisions": decisions, "charts": charts})


def _roc(decisions: Decisions) -> Chart:
    matches, scores = decisions.pairs.matches, decisions.scores
    counts = accepted_counts(scores, matches)
    false, true = (np.r_[0, x / x[-1]] for x in (counts.false, counts.true))
    area, panel = roc_auc(scores, matches), Panel("ROC curve, over all pairs", height=3.6)
    panel.axes.plot([0, 1], [0, 1], color=FAINT, linewidth=1)
    panel.axes.plot(*_thinned(false, true), color=COLOURS["clean"], linewidth=1.6, label=f"area {area:.3f}")
    accepted = scores >= decisions.threshold
    panel.axes.plot(
        accepted[~matches].mean(), accepted[matches].mean(), "o", color=INK, markersize=5, label="the threshold",
    )  # fmt: skip
    _square(panel, "false match rate", "true match rate")
    return panel.chart(f"ROC curve with an area of {area:.3f} below it")


def _precision_recall(decisions: Decisions) -> Chart:
    matches, scores = decisions.pairs.matches, decisions.scores
    precision, recall = precision_recall(scores, matches)
    ap, panel = average_precision(scores, matches), Panel("Precision against recall, over all pairs", height=3.6)
    panel.axes.axhline(matches.mean(), color=FAINT, linewidth=1)
    panel.axes.plot(*_thinned(recall, precision), color=COLOURS["clean"], linewidth=1.6, label=f"AP {ap:.3f}")
    _square(panel, "recall", "precision")
    return panel.chart(f"Precision against recall, with an average precision of {ap:.3f}")


def _densities(decisions: Decisions) -> Chart:
    """How the scores of matches and of others lie, where η is lowest and where it is highest."""
    eta = (decisions.uncertainty[decisions.pairs.first] + decisions.uncertainty[decisions.pairs.second]) / 2
    bins = equal_count_bins(eta, BINS)
    low, high = np.percentile(decisions.scores, [0.5, 99.9])
    edges = np.linspace(min(low, high - 1e-6), high, STEPS + 1)
    panel = Panel("Match scores in the lowest and the highest bin of η", height=3.6)
    for name, colour, which in (("lowest η", COLOURS["clean"], 0), ("highest η", COLOURS["corrupt"], BINS - 1)):
        for matches, style in ((True, "-"), (False, ":")):
            some = decisions.scores[(bins == which) & (decisions.pairs.matches == matches)]
            label = f"{name}, {'matches' if matches else 'others'}"
            panel.axes.stairs(_density(some, edges), edges, color=colour, linestyle=style, linewidth=1.5, label=label)
    panel.axes.axvline(decisions.threshold, color=MUTED, linewidth=1)
    panel.axes.set_yticks([])
    panel.label("log-odds of a match", "density")
    panel.legend()
    return panel.chart("Densities of match scores: apart where η is lowest, overlapping more where it is highest")


def _density(values: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shares of the values by place, those beyond the edges counted at them; zeros where there are no values."""
    counts, _ = np.histogram(np.clip(values, edges[0], edges[-1]), edges)
    return counts / max(len(values), 1)


def _bins(decisions: Decisions, inputs: str) -> Chart | Note:
    if decisions.curve is None:
        return Note("The test set is too small for 20 bins of pairs: some would hold fewer than 20 matches.")
    panel = Panel("Balanced accuracy in 20 bins of η", height=3.6)
    draw_curve(panel, decisions.curve, f"clean {inputs}", COLOURS["clean"], "o")
    finish_bins(panel, "bins of pairs, by mean η", "balanced accuracy", lowest=0.4)
    first, last = decisions.curve.performance[[0, -1]]
    return panel.chart(f"Balanced accuracy from {first:.2f} in the most certain bin to {last:.2f} in the least")


def _rejects(decisions: Decisions, inputs: str) -> Chart | Note:
    curve = decisions.rejects
    if curve is None or not len(curve.error):
        return Note(f"There are too few pairs to see what refusing {inputs} is worth.")
    panel = Panel(f"Error when the most uncertain {inputs} are refused", height=3.6)
    panel.axes.plot(100 * curve.rejected, curve.error, color=COLOURS["clean"], marker="o", markersize=3, linewidth=1.5)
    panel.axes.set_ylim(0, 1.15 * max(*curve.error, 1e-3))
    grid(panel.axes)
    panel.label(f"% of {inputs} refused", "1 − balanced accuracy")
    return panel.chart(
        f"Error from {curve.error[0]:.3f} with all {inputs} to {curve.error[-1]:.3f} with the most certain"
    )


def _square(panel: Panel, x: str, y: str) -> None:
    panel.axes.set_xlim(0, 1)
    panel.axes.set_ylim(0, 1.01)
    grid(panel.axes, "both")
    panel.label(x, y)
    panel.legend()


def _thinned(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A line of no more points than a chart can show."""
    some = np.unique(np.linspace(0, len(x) - 1, min(len(x), POINTS)).round().astype(np.intp))
    return x[some], y[some]
