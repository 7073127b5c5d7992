"""Figures of the paper as they look with models of three steps."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection
from matplotlib.figure import Figure as Canvas

from hedged.evaluation import Evaluation
from hedged.paper.catalogue import exhibit
from hedged.paper.exhibits import Figure
from hedged.paper.measurements import Cell
from hedged.paper.shelf import Need, Shelf
from hedged.plots.plane import Array
from hedged.training import Config


@final
@dataclass(frozen=True, eq=False)
class Made:
    """A figure as it was drawn and as `write` left it: its picture, and the cells beside it, if there are any."""

    canvas: Canvas
    picture: Path
    cells: list[Cell]

    @property
    def axes(self) -> list[Axes]:
        return self.canvas.axes


@final
class Exhibition:
    """Figures by name. Each is drawn, and each model trained, when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.shelf = folder, Shelf(folder / "models")
        self._made: dict[str, Made] = {}

    def __getitem__(self, name: str) -> Made:
        if name not in self._made:
            figure = exhibit(name)
            assert isinstance(figure, Figure)
            for need in figure.needs({}):
                self.shelf.fill(need)
            self._made[name] = _make(figure, self.shelf, self.folder)
        return self._made[name]

    def evaluation(self, config: Config) -> Evaluation:
        self.shelf.fill(Need(config))
        return self.shelf.evaluation(config)


def _make(figure: Figure, shelf: Shelf, folder: Path) -> Made:
    canvas = figure.draw(shelf)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(figure), "draw", lambda figure, shelf: canvas)  # once is enough
        picture, *numbers = figure.write(shelf, folder, {})
    return Made(canvas, picture, json.loads(numbers[0].read_text(encoding="utf-8")) if numbers else [])


def ellipses_of(axes: Axes) -> tuple[Array, Array]:
    """Centres and widths and heights of all ellipses of a panel, `(n, 2)` each."""
    found = [c for c in axes.collections if isinstance(c, EllipseCollection)]
    sizes = [np.stack([c.get_widths(), c.get_heights()], axis=-1) for c in found]
    return np.concatenate([c.get_offsets() for c in found]), np.concatenate(sizes)


def has_ellipses(axes: Axes, means: Array, variances: Array, deviations: float) -> bool:
    """Whether the ellipses of a panel are those of these Gaussians, whatever their order, and turned or not."""
    centres, sizes = ellipses_of(axes)
    drawn = np.column_stack([centres, np.sort(sizes, axis=-1)])
    reach = np.sort(2 * deviations * np.sqrt(variances.reshape(-1, 2)), axis=-1)
    wanted = np.column_stack([means.reshape(-1, 2), reach])
    if drawn.shape != wanted.shape:
        return False
    return bool(np.allclose(drawn[np.lexsort(drawn.T)], wanted[np.lexsort(wanted.T)], rtol=1e-4))
