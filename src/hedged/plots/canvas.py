"""Colours and axes of every figure: no pyplot and hence no global state."""

from __future__ import annotations

from matplotlib.axes import Axes

# Okabe and Ito's colours: told apart with any colour vision, and in grey.
COLOURS: dict[str, str] = {"clean": "#0072B2", "corrupt": "#D55E00"}
INK, MUTED, FAINT = "#24292f", "#59626b", "#d5dae0"
TEXT, SMALL_TEXT = 9.2, 8.2  # points of 1/72 inch: 12.8 and 11.4 CSS pixels


def calm(axes: Axes) -> None:
    """Thin grey axes and small text."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=MUTED, labelsize=SMALL_TEXT, length=3, color=FAINT)
    axes.set_axisbelow(True)
