"""Trained models on a shelf: one folder each, found again by the hash of its config; what was measured lies beside."""

from __future__ import annotations

import json
import logging
import subprocess
import time
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, final

from hedged._files import write_json
from hedged.data import Dataset, Splits
from hedged.data.ndigit.splits import Split, TestSet
from hedged.errors import RunError
from hedged.evaluation import Evaluation
from hedged.evaluation.reference import Measure
from hedged.models import Embedder
from hedged.paper.measurements import VERSION, Cell, measure, measure_sampled
from hedged.paper.pet_measurements import measure_pets
from hedged.training import Config, Run, build_data, train

MAIN: dict[Split, TestSet] = {"number": "seen", "instance": "instance"}  # the test set that stands for a split
Measured = TestSet | Literal["sampled", "pets"]
SAMPLED: Literal["sampled"] = "sampled"
PETS: Literal["pets"] = "pets"
MADE = "made.json"
GIT_SECONDS = 30  # to wait for git
ORPHAN_SECONDS = 10  # that a worker whose parent was killed has to end, which it does within one

logger = logging.getLogger("hedged")


@final
@dataclass(frozen=True)
class Need:
    """A model that must be trained, and what to measure: test sets, `SAMPLED`, the main one with samples, or `PETS`."""

    config: Config
    tests: tuple[Measured, ...] = ()


@final
@dataclass(frozen=True, eq=False)
class Shelf:
    """The models under a folder."""

    folder: Path

    def place(self, config: Config) -> Path:
        return self.folder / config.digest()

    def has(self, need: Need) -> bool:
        """Whether nothing is left to do for a need."""
        trained = Run(self.place(need.config)).state == "finished"
        return trained and all(self._is_measured(need.config, test) for test in need.tests)

    def fill(self, need: Need) -> None:
        """Train the model if it is not there, going on where an earlier attempt stopped, and measure it."""
        run = Run(self.place(need.config))
        with run.owned(wait=ORPHAN_SECONDS):
            self._train(need.config, run)
            for test in need.tests:
                if not self._is_measured(need.config, test):
                    measured = {"version": VERSION, **self._measure(need.config, test)}
                    write_json(self._file(need.config, test), measured)

    def _train(self, config: Config, run: Run) -> None:
        if (state := run.state) == "finished":
            return
        begun, resume, made = time.monotonic(), state == "unfinished", {"seconds": None, "commit": _commit()}
        write_json(run.folder / MADE, made)  # before the model, which would be taken for all there is to do
        train(config, _data(config).train, run.folder, resume)
        if not resume:
            write_json(run.folder / MADE, made | {"seconds": time.monotonic() - begun})

    def _is_measured(self, config: Config, what: Measured) -> bool:
        """Whether it was measured, by code that measures as this does."""
        path = self._file(config, what)
        return path.exists() and json.loads(path.read_text(encoding="utf-8")).get("version", 1) == VERSION

    def _measure(self, config: Config, what: Measured) -> dict[str, Any]:
        if what == PETS:
            return asdict(measure_pets(self.embedder(config), _data(config)))
        if what == SAMPLED:
            return measure_sampled(self.evaluation(config))
        return measure(self.evaluation(config, what))

    def measured(self, config: Config, test: Measured) -> dict[str, Any]:
        """What `hedged.paper.measurements` found."""
        content: dict[str, Any] = json.loads(self._file(config, test).read_text(encoding="utf-8"))
        return content

    def cell(self, config: Config, test: Measured, measure: Measure) -> Cell:
        """What was found of one model, as a cell of a table.

        Args:
            config: The config of the model.
            test: The test set.
            measure: What was measured.
        """
        wanted = asdict(measure)
        cells: list[Cell] = self.measured(config, test)["cells"]
        for cell in cells:
            if wanted == {key: cell.get(key) for key in wanted}:
                return cell
        raise RunError(f"{self._file(config, test)} has no {measure}: remove it, and it is measured again")

    def value(self, config: Config, test: Measured, measure: Measure) -> float:
        """The number in a cell.

        Args:
            config: As for `cell`.
            test: As for `cell`.
            measure: As for `cell`.
        """
        return float(self.cell(config, test, measure)["measured"])

    def embedder(self, config: Config) -> Embedder:
        return _load(self.place(config))

    def evaluation(self, config: Config, test: TestSet | None = None) -> Evaluation:
        """The model on a test set, the main one of its split unless another is given; each is kept while in use."""
        return _evaluate(self.place(config), config, test or MAIN[config.ndigit.split])

    def made(self, config: Config) -> dict[str, Any]:
        """The `seconds` that training took, None if it was interrupted, and the `commit` of the code, if known."""
        path = self.place(config) / MADE
        unknown = {"seconds": None, "commit": None}
        return unknown | json.loads(path.read_text(encoding="utf-8")) if path.exists() else unknown

    def _file(self, config: Config, test: Measured) -> Path:
        return self.place(config) / f"measured-{test}.json"


@lru_cache(64)
def _load(place: Path) -> Embedder:
    if Run(place).state != "finished":
        raise RunError(f"there is no trained model in {place} yet: run the table or figure that needs it")
    return Embedder.load(place)


@lru_cache(3)
def _evaluate(place: Path, config: Config, test: TestSet) -> Evaluation:
    return Evaluation(_load(place), _test(config, test), progress=logger.info)


def _commit() -> str | None:
    """The commit that this code is at, where it runs from a checkout of its own."""
    try:
        _git("ls-files", "--error-unmatch", Path(__file__).name)  # of this project, not of one that it is installed in
        return _git("describe", "--always", "--dirty")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=GIT_SECONDS).stdout.strip()


def _test(config: Config, test: TestSet) -> Dataset:
    return _data(config).test[test]


def _data(config: Config) -> Splits[Dataset]:
    return _built(Config(data=config.data))


@lru_cache(2)
def _built(config: Config) -> Splits[Dataset]:
    return build_data(config)
