"""One chart of the report: its size, its key and its place on the page."""

from __future__ import annotations

from io import BytesIO
from typing import final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hedged.evaluation.report.section import Chart, data_uri
from hedged.plots.style import HALO, INK, SCREEN, calm, labels

WIDTH = 4.6  # inches of 100 CSS pixels: a chart is shown at about this size on a desk and at 3/4 of it on a phone
CSS_DPI, SHARPNESS = 100, 2
HAIR = 1e-6  # inches: matplotlib before 3.11 cuts what rounding leaves short of a whole pixel


@final
class Panel:
    """A chart in the making: draw on `axes`, then ask for the `chart`.

    Args:
        title: Its heading on the page.
        height: Inches of 100 CSS pixels.
    """

    def __init__(self, title: str, height: float = 3.3) -> None:
        self.figure = Figure(figsize=(WIDTH + HAIR, height + HAIR), dpi=CSS_DPI, layout="constrained")
        self.axes: Axes = self.figure.add_subplot()
        self.title = title
        calm(self.axes, SCREEN)

    def label(self, x: str = "", y: str = "") -> None:
        """Label both axes.

        Args:
            x: What runs from left to right.
            y: What runs upwards.
        """
        labels(self.axes, x, y, SCREEN)

    def legend(self) -> None:
        """Put the key above the chart, where no line can run through it."""
        self.axes.legend(
            loc="lower left", bbox_to_anchor=(0.0, 1.0), frameon=False, fontsize=SCREEN.text, labelcolor=INK,
            handlelength=1.6, borderpad=0.2, borderaxespad=0.2, labelspacing=0.3,
        )  # fmt: skip

    def letter(self, name: str, x: float, y: float) -> None:
        """Write a bold letter just above a place, legible on whatever is drawn there.

        Args:
            name: The letter.
            x: The place, from left to right.
            y: The place, upwards.
        """
        self.axes.annotate(
            name, (x, y), (0, 3), textcoords="offset points", fontsize=11, fontweight="bold", color=INK,
            ha="center", va="bottom", path_effects=[HALO], zorder=4,
        )  # fmt: skip

    def png(self) -> bytes:
        """The chart on a transparent ground: the page decides whether that is light or dark."""
        buffer = BytesIO()
        self.figure.savefig(buffer, format="png", dpi=CSS_DPI * SHARPNESS, transparent=True)
        return buffer.getvalue()

    def chart(self, alt: str) -> Chart:
        """The chart as the page shows it.

        Args:
            alt: What it shows, for those who cannot see it.
        """
        width, height = (round(CSS_DPI * inches) for inches in self.figure.get_size_inches())
        return Chart(self.title, data_uri(self.png()), width, height, alt)
