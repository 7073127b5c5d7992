"""A panel of embeddings in two dimensions: ellipses on the numbers of the classes."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from hedged.evaluation import CONDITIONS, Condition
from hedged.evaluation.space import DRAWN, MARGIN, Space
from hedged.plots.ellipses import draw_class_names, draw_clouds, square_view
from hedged.plots.style import COLOURS


def cloud_panel(axes: Axes, space: Space, condition: Condition, images: int = DRAWN) -> None:
    """Draw images of a space as ellipses of one standard deviation on the numbers of the classes.

    Args:
        axes: The panel.
        space: The test set, embedded in two dimensions.
        condition: Clean or corrupt; the view is the same for both.
        images: How many of the images that the space draws.
    """
    drawn = space.drawn[:images]
    draw_class_names(axes, space.class_names, space.centroids.positions)
    draw_clouds(axes, space.parts(condition, drawn)[0], space.covariances(condition, drawn), COLOURS[condition])
    square_view(axes, np.concatenate([space.parts(c, drawn)[0].reshape(-1, 2) for c in CONDITIONS]), MARGIN)
