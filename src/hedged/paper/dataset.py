"""The table of the data: how many classes and images N-digit MNIST has, counted in what is built."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import final

from hedged._files import write_json
from hedged.paper.exhibits import Exhibit, Only
from hedged.paper.measurements import Cell
from hedged.paper.recipe import recipe
from hedged.paper.shelf import Need, Shelf

METRICS = (
    "total_classes", "training_classes", "unseen_test_classes", "seen_test_classes", "training_images", "test_images"
)  # fmt: skip
PAPER = {2: (100, 70, 30, 70, 100_000, 10_000), 3: (1000, 700, 100, 100, 100_000, 10_000)}


@final
@dataclass(frozen=True)
class Dataset(Exhibit):
    """Counts, not measurements: the paper's are met exactly, or up to the rounding to equal classes."""

    name: str = "dataset"
    title: str = "N-digit MNIST"

    def needs(self, only: Only) -> list[Need]:
        self.refuse_cells(only)
        return []

    def write(self, shelf: Shelf, folder: Path, only: Only) -> list[Path]:
        path = folder / f"{self.name}.json"
        write_json(path, [cell for digits in PAPER for cell in _cells(digits)])
        return [path]


def _cells(digits: int) -> Iterator[Cell]:
    for metric, paper, count in zip(METRICS, PAPER[digits], _counted(digits), strict=True):
        yield {"digits": digits, "metric": metric, "split": "number", "paper": paper, "measured": count}


def _counted(digits: int) -> tuple[int, ...]:
    parts = recipe(digits, 2, "point").data.open()
    seen, unseen = parts.test["seen"], parts.test["unseen"]
    return 10**digits, parts.train.n_classes, unseen.n_classes, seen.n_classes, len(parts.train), len(seen)


EXHIBIT = Dataset()
