"""The figure of Gaussian embeddings of 3 digits in 3 dimensions, as ellipsoids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from matplotlib.figure import Figure as Canvas

from hedged.evaluation import CONDITIONS
from hedged.evaluation.space import Space
from hedged.paper.exhibits import Figure
from hedged.paper.recipe import recipe
from hedged.paper.shelf import Shelf
from hedged.plots.ellipsoids import cube_view, draw_ellipsoids
from hedged.plots.plane import one_of_each
from hedged.plots.style import COLOURS, letters, panels, title
from hedged.training import Config

DRAWN = 60  # ellipsoids: as many as can be told apart


@final
@dataclass(frozen=True)
class Embeddings3d(Figure):
    """The same images in both panels, seen from the same place."""

    name: str = "embeddings-3d"
    title: str = "Gaussian embeddings of 3 digits in 3 dimensions, clean and corrupt"

    def configs(self) -> list[Config]:
        return [recipe(3, 3, "mog-1")]

    def draw(self, shelf: Shelf) -> Canvas:
        space = Space(shelf.evaluation(self.configs()[0]))
        drawn = one_of_each(space.evaluation.labels, DRAWN, space.evaluation.seed)
        canvas, axes = panels(1, 2, height=3.6, subplot_kw={"projection": "3d"})
        means, variances = space.parts("clean", drawn)
        reach = np.sqrt(variances)
        corners = np.concatenate([means - reach, means + reach, space.parts("corrupt", drawn)[0]]).reshape(-1, 3)
        for one, condition in zip(axes.flat, CONDITIONS, strict=True):
            cube_view(one, corners, margin=0.05)
            draw_ellipsoids(one, *space.parts(condition, drawn), COLOURS[condition])
            title(one, f"{condition.capitalize()} test images")
        letters(list(axes.flat))
        canvas.set_layout_engine("constrained", h_pad=0.1)  # inches: these titles stand higher than others
        return canvas


EXHIBIT = Embeddings3d()
