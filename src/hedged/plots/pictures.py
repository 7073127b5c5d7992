"""A test image in a figure."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]


def draw_picture(axes: Axes, pixels: Pixels, colour: str) -> None:
    """Fill axes with a grey image in a coloured frame.

    Args:
        axes: The axes to fill.
        pixels: The image, `(H, W)`, black is 0.
        colour: Of the frame.
    """
    axes.imshow(pixels, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    height, width = pixels.shape
    axes.set(xticks=[], yticks=[], xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5))
    axes.spines[:].set(visible=True, color=colour, linewidth=1.2)
