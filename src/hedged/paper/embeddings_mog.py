"""The figure of mixture embeddings of 2 digits: 2 and 4 components, those of one image joined by a thin line."""

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

IMAGES = 60  # of each panel: with four components, as many as can be told apart


@final
@dataclass(frozen=True)
class EmbeddingsMog(Figure):
    """A row for each number of components; the same images in all panels."""

    name: str = "embeddings-mog"
    title: str = "Mixture embeddings of 2 digits in 2 dimensions, clean and corrupt"

    def configs(self) -> list[Config]:
        return [recipe(2, 2, "mog-2"), recipe(2, 2, "mog-4")]

    def draw(self, shelf: Shelf) -> Canvas:
        canvas, axes = panels(2, 2)
        for row, config in zip(axes, self.configs(), strict=True):
            space = Space(shelf.evaluation(config))
            for one, condition in zip(row, CONDITIONS, strict=True):
                cloud_panel(one, space, condition, IMAGES)
                title(one, f"{condition.capitalize()} test images, {space.components} components")
        letters(list(axes.flat))
        return canvas


EXHIBIT = EmbeddingsMog()
