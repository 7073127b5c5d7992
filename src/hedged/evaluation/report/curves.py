"""The section on uncertainty against performance: the curves of the paper's figure 5, drawn."""

from __future__ import annotations

from collections.abc import Mapping

from hedged.evaluation.curves import Curves
from hedged.evaluation.report.panel import Panel
from hedged.evaluation.report.section import Chart, Note, Section
from hedged.metrics import UncertaintyCurve
from hedged.plots.curves import draw_bins
from hedged.plots.style import COLOURS, INK, MARKERS, SCREEN, grid


def curves_section(curves: Curves, inputs: str) -> Section:
    """Performance in 20 bins of η, or why it is missing.

    Args:
        curves: What was measured.
        inputs: What was measured on, in a word: "images".
    """
    charts: list[Chart | Note] = []
    charts += [_ap_chart(curves, inputs)] if curves.ap else []
    charts += [Note(curves.why_no_ap)] if curves.why_no_ap else []
    charts += [_knn_chart(curves, inputs)] if curves.knn else []
    charts += [Note(curves.why_no_knn)] if curves.why_no_knn else []
    return Section("curves.html", {"charts": charts})


def _ap_chart(curves: Curves, inputs: str) -> Chart:
    panel = Panel("Verification: average precision of random pairs", height=3.6)
    for condition, curve in curves.ap.items():
        draw_curve(panel, curve, f"{condition} {inputs}", COLOURS[condition], MARKERS[condition])
    finish_bins(panel, "bins of pairs, by mean η", "average precision")
    return panel.chart(_alt("Average precision", {f"{c} {inputs}": curve for c, curve in curves.ap.items()}))


def _knn_chart(curves: Curves, inputs: str) -> Chart:
    panel = Panel("Identification: by the majority of the neighbours", height=3.6)
    named = {f"clean among {gallery}": curve for gallery, curve in curves.knn.items()}
    for (gallery, curve), name in zip(curves.knn.items(), named, strict=True):
        draw_curve(panel, curve, name, COLOURS[gallery], MARKERS[gallery])
    if curves.corrupt_probes:
        named["corrupt among clean"] = curves.corrupt_probes
        draw_curve(panel, curves.corrupt_probes, "corrupt among clean", INK, "^", hollow=True)
    finish_bins(panel, f"bins of {inputs} to identify, by η", "share identified")
    return panel.chart(_alt("Share identified", named))


def draw_curve(
    panel: Panel, curve: UncertaintyCurve, name: str, colour: str, marker: str, hollow: bool = False
) -> None:
    """Draw performance by bin, with its τ in the key.

    Args:
        panel: The chart.
        curve: What was measured.
        name: Its name in the key.
        colour: Of the line.
        marker: As matplotlib names it.
        hollow: Whether markers are white inside.
    """
    tau = f"{curve.kendall:.2f}".replace("-", "−")
    draw_bins(panel.axes, curve.performance, colour, marker, SCREEN, f"{name}   τ = {tau}", hollow)


def finish_bins(panel: Panel, x: str, y: str, lowest: float = 0.0) -> None:
    """Give a chart axes for 20 bins, from most to least certain, and its key.

    Args:
        panel: The chart.
        x: What is in the bins.
        y: What was measured of them.
        lowest: Where the vertical axis begins.
    """
    axes = panel.axes
    axes.set_ylim(lowest, 1)
    axes.set_xlim(0.4, 20.6)
    axes.set_xticks([1, 20], ["1\nmost certain", "20\nleast certain"])
    axes.get_xticklabels()[0].set_horizontalalignment("left")
    axes.get_xticklabels()[1].set_horizontalalignment("right")
    grid(axes)
    panel.label(x, y)
    panel.legend()


def _alt(what: str, curves: Mapping[str, UncertaintyCurve]) -> str:
    parts = (
        f"{name} from {curve.performance[0]:.2f} in the most certain bin to {curve.performance[-1]:.2f} in the least"
        for name, curve in curves.items()
    )
    return f"{what} in 20 bins of uncertainty: " + "; ".join(parts)
