"""Tables of the paper: which models each is made of, its cells as they are measured, and whether any is missing."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from hedged._files import write_json
from hedged.data.ndigit.splits import TestSet
from hedged.errors import ConfigError
from hedged.evaluation.reference import PaperCell
from hedged.paper.exhibits import Exhibit, Only
from hedged.paper.measurements import Cell
from hedged.paper.recipe import recipe
from hedged.paper.shelf import MAIN, SAMPLED, Measured, Need, Shelf
from hedged.training import Config

RESULTS = ("paper", "measured", "std", "seeds", "steps", "repeats_std")  # of a cell; all else names it
NUMBER_TESTS: tuple[TestSet, ...] = ("seen", "unseen", "all")


@final
@dataclass(frozen=True)
class Series:
    """The cells of a table once more, measured in another way.

    Args:
        tests: The test sets to measure on.
        seeds: How many models are averaged.
        blocks: Which (N, D); all if None.
        models: Which models; all if None.
        settings: Departures from the recipe, as `recipe` takes them.
        marks: What its cells say about that.
        variant: Whether its cells go to a file of their own.
    """

    tests: tuple[Measured, ...] = NUMBER_TESTS
    seeds: int = 1
    blocks: tuple[tuple[int, int], ...] | None = None
    models: tuple[str, ...] | None = None
    settings: tuple[tuple[str, Any], ...] = ()
    marks: tuple[tuple[str, Any], ...] = ()
    variant: bool = False

    def covers(self, cell: PaperCell) -> bool:
        """Whether a cell of the table belongs to the series.

        Args:
            cell: A cell of the paper.
        """
        in_blocks = self.blocks is None or (cell.digits, cell.dim) in self.blocks
        return in_blocks and (self.models is None or cell.model in self.models)

    def configs(self, cell: PaperCell) -> list[Config]:
        """The models that a cell is measured on, one a seed.

        Args:
            cell: A cell of the paper.
        """
        beta = {} if cell.beta is None else {"loss__beta": cell.beta}
        settings = {**beta, **dict(self.settings)}
        return [recipe(cell.digits, cell.dim, cell.model, seed, **settings) for seed in range(self.seeds)]


@final
@dataclass(frozen=True)
class Table(Exhibit):
    """Numbers of the paper beside the same numbers measured.

    Args:
        name: Of the table.
        title: What it shows.
        cells: The paper's numbers.
        series: How they are measured.
    """

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
        """The cells that agree with `only`; it is refused if it names no cell.

        Args:
            only: Keys of cells and the values wanted; empty for all.
        """
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
        for variant in (False, True):
            if cells := [*self.measured(shelf, only, variant)]:
                path = folder / self.file_name(variant)
                write_json(path, _merged(path, cells) if only else cells)
                written.append(path)
        return written

    def file_name(self, variant: bool) -> str:
        """Of the cells of the frozen recipe, or of those of its variants.

        Args:
            variant: Which of the two.
        """
        return f"{self.name}-variants.json" if variant else f"{self.name}.json"

    def measured(self, shelf: Shelf, only: Only, variant: bool) -> Iterator[Cell]:
        """The cells as results/paper has them, those of the frozen recipe or those of its variants.

        Args:
            shelf: Where trained models and their measurements are.
            only: Keys of cells and the values wanted; empty for all.
            variant: Which of the two.
        """
        for series, test in self._turns(variant):
            for cell in filter(series.covers, self.wanted(only)):
                yield _measured(shelf, series, test, cell)

    def _turns(self, variant: bool) -> Iterator[tuple[Series, Measured]]:
        """Each time that the table is measured: in another way or on another test set."""
        for series in self.series:
            if series.variant == variant:
                yield from ((series, test) for test in series.tests)

    def complete(self, cells: Sequence[Cell], variant: bool) -> list[Cell]:
        """Those of some cells that are whole tables, in order: of each test set all that the paper has, or none.

        Args:
            cells: As they were measured.
            variant: Which of the two.
        """
        kept: list[Cell] = []
        for series, test in self._turns(variant):
            wanted = [*filter(series.covers, self.cells)]
            found = [cell for each in wanted if (cell := _find(cells, series, test, each))]
            kept += found if len(found) == len(wanted) else []
        return kept

    def missing(self, cells: Sequence[Cell], variant: bool) -> list[Cell]:
        """What is not among some cells and should be, each as far as it is known before it is measured.

        Args:
            cells: As they were measured.
            variant: Which of the two.
        """
        return [
            _named(series, test, wanted)
            for series, test in self._turns(variant)
            for wanted in filter(series.covers, self.cells)
            if _find(cells, series, test, wanted) is None
        ]


def _named(series: Series, test: Measured, wanted: PaperCell) -> Cell:
    """All of a cell that is known before it is measured."""
    config = series.configs(wanted)[0]
    named = {key: value for key, value in wanted.as_json().items() if key != "paper"}
    if wanted.model != "point":
        named["beta"] = config.loss.beta
    return {
        **named,
        "split": MAIN[config.ndigit.split] if test == SAMPLED else test,
        "backbone": config.model.backbone,
        "steps": config.train.steps,
        **dict(series.marks),
    }


def _measured(shelf: Shelf, series: Series, test: Measured, wanted: PaperCell) -> Cell:
    configs = series.configs(wanted)
    found = [shelf.cell(config, test, wanted.measure) for config in configs]
    values = [cell["measured"] for cell in found]
    repeats = {key: value for key, value in found[0].items() if key in ("estimator", "repeats")}
    if repeats:
        repeats["repeats_std"] = round(statistics.fmean(cell["repeats_std"] for cell in found), 5)
    return {
        **_named(series, test, wanted),
        **repeats,
        "paper": wanted.paper,
        "measured": round(statistics.fmean(values), 5),
        "std": round(statistics.stdev(values), 5) if len(values) > 1 else 0.0,
        "seeds": len(values),
    }


def _find(cells: Sequence[Cell], series: Series, test: Measured, wanted: PaperCell) -> Cell | None:
    """The cell that measures this, by the recipe as it is and with all its seeds."""
    named = {**_named(series, test, wanted), "seeds": series.seeds}
    for cell in cells:
        if named.items() <= cell.items() and ("estimator" in cell) == (test == SAMPLED):
            return cell
    return None


def _merged(path: Path, cells: Sequence[Cell]) -> list[Cell]:
    """The cells of a file with these in the place of those of the same name, and new ones at the end."""
    old: list[Cell] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    by_name = {_name(cell): cell for cell in (*old, *cells)}
    return list(by_name.values())


def _name(cell: Cell) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((key, value) for key, value in cell.items() if key not in RESULTS))


def _says(value: Any, text: str) -> bool:
    """Whether a value is what the text says; numbers by value, so that 1e-4 is 0.0001."""
    if isinstance(value, int | float):
        try:
            return float(text) == value
        except ValueError:
            return False
    return bool(value == text)
