"""How every figure looks: sizes of a journal's page, colours for any eye and for print, no global state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, to_hex, to_rgb
from matplotlib.figure import Figure
from numpy.typing import NDArray

from hedged.plots.canvas import COLOURS as COLOURS
from hedged.plots.canvas import FAINT, MUTED
from hedged.plots.canvas import INK as INK

FULL = 7.0  # inches: the width of a page
TEXT, SMALL = 8.0, 7.0  # points
POINT, HEDGED, MIXTURE = "#59626b", "#0072B2", "#009E73"  # the methods, wherever they are compared
# Ten digits: Okabe and Ito's eight colours with the yellow darkened, and two greys.
DIGITS = ListedColormap(
    ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#B8A600", "#000000", "#7F7F7F", "#8B4513"]
)


def panels(
    rows: int, columns: int, width: float = FULL, height: float | None = None, **subplots: Any
) -> tuple[Figure, NDArray[Any]]:
    """A figure of calm panels, `(rows, columns)` axes; square panels unless a height is given."""
    figure = Figure(figsize=(width, height or width * rows / columns), layout="constrained")
    axes: NDArray[Any] = figure.subplots(rows, columns, squeeze=False, **subplots)
    for one in axes.flat:
        calm(one)
    return figure, axes


def calm(axes: Axes) -> None:
    """Thin grey axes and small text."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=MUTED, labelsize=SMALL, length=2.5, color=FAINT)
    axes.set_axisbelow(True)


def title(axes: Axes, text: str) -> None:
    axes.set_title(text, fontsize=TEXT, color=INK)


def labels(axes: Axes, x: str = "", y: str = "") -> None:
    axes.set_xlabel(x, fontsize=TEXT, color=MUTED)
    axes.set_ylabel(y, fontsize=TEXT, color=MUTED)


def letters(all_axes: Sequence[Axes]) -> None:
    """(a), (b), … before the titles."""
    for letter, axes in zip("abcdefghij", all_axes, strict=False):
        title(axes, f"({letter}) {axes.get_title()}")


def digit_colour(digit: int) -> str:
    return to_hex(DIGITS(digit))


def ink_on(colour: str) -> str:
    """White or ink: what can be read on a colour. They contrast alike where its luminance is 0.225."""
    parts = np.array(to_rgb(colour))
    linear = np.where(parts > 0.04, ((parts + 0.055) / 1.055) ** 2.4, parts / 12.92)  # sRGB
    return INK if float(linear @ [0.2126, 0.7152, 0.0722]) > 0.225 else "white"
