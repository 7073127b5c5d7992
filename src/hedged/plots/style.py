"""How every figure looks: sizes of print and of a web page, colours for any eye, no global state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray

# Okabe and Ito's colours, told apart with any colour vision and in grey; BROWN and WINE are distinct from all of them.
BLUE, VERMILION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
SKY, PINK, BROWN, WINE = "#56B4E9", "#CC79A7", "#8B4513", "#882255"
INK, MUTED, FAINT = "#24292f", "#59626b", "#d5dae0"  # text, small print, lines of axes and grids
COLOURS: dict[str, str] = {"clean": BLUE, "corrupt": VERMILION}  # the condition of a test image
MARKERS: dict[str, str] = {"clean": "o", "corrupt": "s"}
POINT, HEDGED, MIXTURE = MUTED, BLUE, GREEN  # the methods, wherever they are compared
# The digits 0 to 9; the yellow of Okabe and Ito is darkened, and two greys make up for those they lack.
DIGITS = ListedColormap([BLUE, ORANGE, GREEN, PINK, SKY, VERMILION, "#B8A600", "#000000", "#7F7F7F", BROWN])
HALO = withStroke(linewidth=2.5, foreground="white", alpha=0.8)  # makes text legible on whatever is drawn there


@final
@dataclass(frozen=True)
class Sizes:
    """Sizes of what a chart is made of, in points of 1/72 inch.

    Args:
        text: Titles and labels of axes.
        small: Numbers on axes and keys.
        tick: Length of a tick.
        marker: Diameter of a marker on a line.
        line: Width of a line.
    """

    text: float
    small: float
    tick: float
    marker: float
    line: float


PRINT = Sizes(text=8.0, small=7.0, tick=2.5, marker=3.2, line=1.2)  # a figure as wide as a journal's page
SCREEN = Sizes(text=9.2, small=8.2, tick=3.0, marker=4.2, line=1.5)  # a chart of a web page: 12.8 and 11.4 CSS pixels
TEXT, SMALL = PRINT.text, PRINT.small
FULL = 7.0  # inches: the width of a journal's page


def calm(axes: Axes, sizes: Sizes = PRINT) -> None:
    """Give axes thin grey lines and small text.

    Args:
        axes: The axes to change.
        sizes: Those of print, or of a screen.
    """
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=MUTED, labelsize=sizes.small, length=sizes.tick, color=FAINT)
    axes.set_axisbelow(True)


def panels(
    rows: int, columns: int, width: float = FULL, height: float | None = None, **subplots: Any
) -> tuple[Figure, NDArray[Any]]:
    """A figure for print with calm panels, and its axes, `(rows, columns)`.

    Args:
        rows: Panels from top to bottom.
        columns: Panels from left to right.
        width: Inches.
        height: Inches; without it, panels are square.
        subplots: Passed to `Figure.subplots`, such as `sharey=True`.
    """
    figure = Figure(figsize=(width, height or width * rows / columns), layout="constrained")
    axes: NDArray[Any] = figure.subplots(rows, columns, squeeze=False, **subplots)
    for one in axes.flat:
        calm(one)
    return figure, axes


def title(axes: Axes, text: str) -> None:
    """Set the title of a panel.

    Args:
        axes: The panel.
        text: Its title.
    """
    axes.set_title(text, fontsize=TEXT, color=INK)


def labels(axes: Axes, x: str = "", y: str = "", sizes: Sizes = PRINT) -> None:
    """Label both axes of a panel; without a text, the label is removed.

    Args:
        axes: The panel.
        x: What runs from left to right.
        y: What runs upwards.
        sizes: Those of print, or of a screen.
    """
    axes.set_xlabel(x, fontsize=sizes.text, color=MUTED)
    axes.set_ylabel(y, fontsize=sizes.text, color=MUTED)


def letters(all_axes: Sequence[Axes]) -> None:
    """Put (a), (b), … before the titles of panels.

    Args:
        all_axes: The panels, in order.
    """
    for letter, axes in zip("abcdefghij", all_axes, strict=False):
        title(axes, f"({letter}) {axes.get_title()}")


def grid(axes: Axes, direction: Literal["x", "y", "both"] = "y") -> None:
    """Draw thin lines behind the data, to read values by.

    Args:
        axes: The panel.
        direction: The axis whose ticks get a line.
    """
    axes.grid(axis=direction, color=FAINT, linewidth=0.6)


def digit_colour(digit: int) -> str:
    """The colour of a digit, such as "#0072b2".

    Args:
        digit: From 0 to 9.
    """
    return to_hex(DIGITS(digit))


def ink_on(colour: str) -> str:
    """White or ink, whichever is easier to read on a colour; they contrast alike where its luminance is 0.225.

    >>> ink_on("#000000")
    'white'

    Args:
        colour: What the text stands on.
    """
    parts = np.array(to_rgb(colour))
    linear = np.where(parts > 0.04, ((parts + 0.055) / 1.055) ** 2.4, parts / 12.92)  # sRGB
    return INK if float(linear @ [0.2126, 0.7152, 0.0722]) > 0.225 else "white"
