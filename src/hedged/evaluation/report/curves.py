"""Uncertainty against performance, drawn: the curves of the paper's figure 5."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hedged.evaluation.curves import Curves
from hedged.evaluation.report.markup import Section, grid, note
from hedged.evaluation.report.panel import Panel
from hedged.metrics import UncertaintyCurve
from hedged.plots.style import COLOURS, FAINT, INK, MARKERS


def curves_section(curves: Curves) -> Section:
    lead = (
        "Sort by uncertainty into 20 bins of equal size and measure each bin. If η knows what the model does not know, "
        "the lines fall from left to right. Kendall’s <i>τ</i> is 1 for a line that falls at every step and near 0 for "
        "an η that tells nothing."
    )
    panels = [
        _ap_panel(curves) if curves.ap else note(curves.why_no_ap),
        _knn_panel(curves) if curves.knn else note(curves.why_no_knn),
    ]
    return Section("curves", "Uncertainty against accuracy", lead, grid(panels, "charts"))


def _ap_panel(curves: Curves) -> str:
    panel = Panel("Verification: average precision of random pairs", height=3.6)
    for condition, curve in curves.ap.items():
        draw_line(panel, curve, f"{condition} images", COLOURS[condition], MARKERS[condition])
    finish_bins(panel, "bins of pairs, by mean η", "average precision")
    return panel.html(_alt("Average precision", {f"{c} images": curve for c, curve in curves.ap.items()}))


def _knn_panel(curves: Curves) -> str:
    panel = Panel("Identification: by the majority of the neighbours", height=3.6)
    named = {f"clean among {gallery}": curve for gallery, curve in curves.knn.items()}
    for (gallery, curve), name in zip(curves.knn.items(), named, strict=True):
        draw_line(panel, curve, name, COLOURS[gallery], MARKERS[gallery])
    if curves.corrupt_probes:
        named["corrupt among clean"] = curves.corrupt_probes
        draw_line(panel, curves.corrupt_probes, "corrupt among clean", INK, "^", hollow=True)
    finish_bins(panel, "bins of images to identify, by η", "share identified")
    return panel.html(_alt("Share identified", named))


def draw_line(panel: Panel, curve: UncertaintyCurve, name: str, colour: str, marker: str, hollow: bool = False) -> None:
    """Performance by bin, with its τ in the key."""
    bins = np.arange(1, len(curve.performance) + 1)
    panel.axes.plot(
        bins, curve.performance, marker=marker, markersize=4.2, linewidth=1.5, color=colour, clip_on=False,
        markerfacecolor="white" if hollow else colour, label=f"{name}   τ = {_signed(curve.kendall)}",
    )  # fmt: skip


def finish_bins(panel: Panel, x: str, y: str, lowest: float = 0.0) -> None:
    """Axes for 20 bins, from most to least certain."""
    axes = panel.axes
    axes.set_ylim(lowest, 1)
    axes.set_xlim(0.4, 20.6)
    axes.set_xticks([1, 20], ["1\nmost certain", "20\nleast certain"])
    axes.get_xticklabels()[0].set_horizontalalignment("left")
    axes.get_xticklabels()[1].set_horizontalalignment("right")
    axes.grid(axis="y", color=FAINT, linewidth=0.6)
    panel.label(x, y)
    panel.legend()


def _signed(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def _alt(what: str, curves: Mapping[str, UncertaintyCurve]) -> str:
    parts = (
        f"{name} from {curve.performance[0]:.2f} in the most certain bin to {curve.performance[-1]:.2f} in the least"
        for name, curve in curves.items()
    )
    return f"{what} in 20 bins of uncertainty: " + "; ".join(parts)
