"""The figure of Gaussian embeddings of 2 digits in 2 dimensions: small ellipses for clean images, large for corrupt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from matplotlib.figure import Figure as Canvas

from hedged.evaluation import CONDITIONS
from hedged.evaluation.space import Space
from hedged.paper.cloud_panel import cloud_panel
from hedged.paper.exhibits import Figure
from hedged.paper.recipe import recipe
from hedged.paper.shelf import Shelf
from hedged.plots.style import letters, panels, title
from hedged.training import Config


@final
@dataclass(frozen=True)
class Embeddings2d(Figure):
    """The same images in both panels."""

    name: str = "embeddings-2d"
    title: str = "Gaussian embeddings of 2 digits in 2 dimensions, clean and corrupt"

    def configs(self) -> list[Config]:
        return [recipe(2, 2, "mog-1")]

    def draw(self, shelf: Shelf) -> Canvas:
        space = Space(shelf.evaluation(self.configs()[0]))
        canvas, axes = panels(1, 2)
        for one, condition in zip(axes.flat, CONDITIONS, strict=True):
            cloud_panel(one, space, condition)
            title(one, f"{condition.capitalize()} test images")
        letters(list(axes.flat))
        return canvas


EXHIBIT = Embeddings2d()
