"""What a paper shows, a table or a figure: the models it needs, and how it is made of them."""

from __future__ import annotations

import json
import statistics
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from matplotlib.figure import Figure as Canvas

from hedged.errors import ConfigError
from hedged.files import write_atomically, write_json
from hedged.paper.measurements import Cell
from hedged.paper.numbers import PaperCell
from hedged.paper.recipe import recipe
from hedged.paper.shelf import MAIN, SAMPLED, Measured, Need, Shelf, Test
from hedged.training import Config

Only = Mapping[str, str]  # keys of cells and the values wanted, such as {"digits": "2"}
RESULTS = ("paper", "measured", "std", "seeds", "steps", "repeats_std")  # of a cell; all else names it
NUMBER_TESTS: tuple[Test, ...] = ("seen", "unseen", "all")


class Exhibit(ABC):
    """A table or figure of the paper, by the name that the command line has for it."""

    name: str
    title: str

    @abstractmethod
    def needs(self, only: Only) -> list[Need]:
        """The models it is made of."""

    @abstractmethod
    def write(self, shelf: Shelf, folder: Path, only: Only) -> list[Path]:
        """Make it of trained models, as files in a folder."""


@final
@dataclass(frozen=True)
class Series:
    """The cells of a table once more, measured in another way.

    `settings` depart from the recipe, as `recipe` takes them; `marks` are what its cells say about that. Cells of a
    `variant` go to a file of their own.
    """

    tests: tuple[Measured, ...] = NUMBER_TESTS
    seeds: int = 1
    blocks: tuple[tuple[int, int], ...] | None = None  # (N, D), all unless told
    models: tuple[str, ...] | None = None
    settings: tuple[tuple[str, Any], ...] = ()
    marks: tuple[tuple[str, Any], ...] = ()
    variant: bool = False

    def covers(self, cell: PaperCell) -> bool:
        in_blocks = self.blocks is None or (cell.digits, cell.dim) in self.blocks
        return in_blocks and (self.models is None or cell.model in self.models)

    def configs(self, cell: PaperCell) -> list[Config]:
        beta = {} if cell.beta is None else {"loss__beta": cell.beta}
        settings = {**beta, **dict(self.settings)}
        return [recipe(cell.digits, cell.dim, cell.model, seed, **settings) for seed in range(self.seeds)]


@final
@dataclass(frozen=True)
class Table(Exhibit):
    """Numbers of the paper beside the same numbers measured."""

    name: str
    title: str
    cells: tuple[PaperCell, ...]
    series: tuple[Series, ...]

    def needs(self, only: Only) -> list[Need]:
        return [
            Need(config, series.tests)
            for series in self.series
            for cell in self.wanted(only)
            if series.covers(cell)
            for config in series.configs(cell)
        ]

    def wanted(self, only: Only) -> list[PaperCell]:
        """The cells that agree with `only`; it is refused if it names no cell."""
        known = {key for cell in self.cells for key in cell.as_json()} - {"paper"}
        if unknown := sorted(set(only) - known):
            raise ConfigError(f"--only {unknown[0]}=… is not a key of {self.name}: it has {', '.join(sorted(known))}")
        chosen = [cell for cell in self.cells if all(_says(cell.as_json().get(k), v) for k, v in only.items())]
        if not chosen:
            wanted = ",".join(f"{key}={value}" for key, value in only.items())
            raise ConfigError(f"no cell of {self.name} has {wanted}: see `hedged paper show {self.name}`")
        return chosen

    def write(self, shelf: Shelf, folder: Path, only: Only) -> list[Path]:
        written = []
        for variant, name in ((False, self.name), (True, f"{self.name}-variants")):
            if cells := [*self.measured(shelf, only, variant)]:
                path = folder / f"{name}.json"
                write_json(path, _merged(path, cells) if only else cells)
                written.append(path)
        return written

    def measured(self, shelf: Shelf, only: Only, variant: bool) -> Iterator[Cell]:
        """The cells as results/paper has them, those of the frozen recipe or those of its variants."""
        for series in (series for series in self.series if series.variant == variant):
            for test in series.tests:
                for cell in filter(series.covers, self.wanted(only)):
                    yield _measured(shelf, series, test, cell)


def _measured(shelf: Shelf, series: Series, test: Measured, wanted: PaperCell) -> Cell:
    configs = series.configs(wanted)
    found = [_find(shelf.measured(config, test)["cells"], wanted) for config in configs]
    values = [cell["measured"] for cell in found]
    told = {key: value for key, value in wanted.as_json().items() if key != "paper"}
    if wanted.model != "point":
        told["beta"] = configs[0].loss.beta
    repeats = {key: value for key, value in found[0].items() if key in ("estimator", "repeats")}
    if repeats:
        repeats["repeats_std"] = round(statistics.fmean(cell["repeats_std"] for cell in found), 5)
    return {
        **told,
        "split": MAIN[configs[0].data.split] if test == SAMPLED else test,
        "backbone": configs[0].model.backbone,
        "steps": configs[0].train.steps,
        **repeats,
        **dict(series.marks),
        "paper": wanted.paper,
        "measured": round(statistics.fmean(values), 5),
        "std": round(statistics.stdev(values), 5) if len(values) > 1 else 0.0,
        "seeds": len(values),
    }


def _merged(path: Path, cells: Sequence[Cell]) -> list[Cell]:
    """The cells of a file with these in the place of those of the same name, and new ones at the end."""
    old: list[Cell] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    by_name = {_name(cell): cell for cell in (*old, *cells)}
    return list(by_name.values())


def _name(cell: Cell) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((key, value) for key, value in cell.items() if key not in RESULTS))


def _find(cells: Sequence[Cell], wanted: PaperCell) -> Cell:
    same = (wanted.metric, wanted.gallery, wanted.probe, wanted.vote)
    return next(cell for cell in cells if tuple(map(cell.get, ("metric", "gallery", "probe", "vote"))) == same)


def _says(value: Any, text: str) -> bool:
    """Whether a value is what the text says; numbers by value, so that 1e-4 is 0.0001."""
    if isinstance(value, int | float):
        try:
            return float(text) == value
        except ValueError:
            return False
    return bool(value == text)


class Figure(Exhibit):
    """A picture, and the numbers in it where there are any."""

    @abstractmethod
    def configs(self) -> list[Config]:
        """The models it shows."""

    tests: tuple[Test, ...] = ()  # to measure these models on

    @abstractmethod
    def draw(self, shelf: Shelf) -> Canvas:
        """The picture."""

    def numbers(self, shelf: Shelf) -> list[Cell]:
        """What it shows in numbers, beside the paper's; nothing unless told."""
        return []

    def needs(self, only: Only) -> list[Need]:
        if only:
            raise ConfigError(f"--only chooses cells of a table; {self.name} is a figure: leave it out")
        return [Need(config, self.tests) for config in self.configs()]

    def write(self, shelf: Shelf, folder: Path, only: Only) -> list[Path]:
        picture = folder / f"{self.name}.png"
        canvas = self.draw(shelf)
        write_atomically(picture, lambda part: canvas.savefig(part, format="png", dpi=200))
        if not (numbers := self.numbers(shelf)):
            return [picture]
        write_json(folder / f"{self.name}.json", numbers)
        return [picture, folder / f"{self.name}.json"]
