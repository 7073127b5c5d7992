"""What a paper shows, a table or a figure: the models it needs, and how it is made of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

from matplotlib.figure import Figure as Canvas

from hedged._files import write_atomically, write_json
from hedged.data.ndigit.splits import TestSet
from hedged.errors import ConfigError
from hedged.paper.measurements import Cell
from hedged.paper.shelf import Need, Shelf
from hedged.training import Config

Only = Mapping[str, str]  # keys of cells and the values wanted, such as {"digits": "2"}


class Exhibit(ABC):
    """A table or figure of the paper, by the name that the command line has for it."""

    name: str
    title: str
    needs_photos: bool = False  # whether it is made of photos that you have: `--data`

    def of_photos(self, folder: Path) -> Exhibit:
        """The same, made of the photos in a folder.

        Args:
            folder: A folder of a folder for each identity.
        """
        raise ConfigError(f"--data is the folder of photos of pets; {self.name} is made of digits: leave it out")

    def refuse_cells(self, only: Only) -> None:
        """Refuse a choice of cells, where there are none to choose from.

        Args:
            only: Keys of cells and the values wanted.
        """
        if only:
            raise ConfigError(f"--only chooses cells of a table; {self.name} is made as a whole: leave it out")

    @abstractmethod
    def needs(self, only: Only) -> list[Need]:
        """The models it is made of.

        Args:
            only: Keys of cells and the values wanted; empty for all.
        """

    @abstractmethod
    def write(self, shelf: Shelf, folder: Path, only: Only) -> list[Path]:
        """Make it of trained models, as files in a folder.

        Args:
            shelf: Where trained models and their measurements are.
            folder: Where it goes.
            only: Keys of cells and the values wanted; empty for all.
        """


class Figure(Exhibit):
    """A picture, and the numbers in it where there are any."""

    @abstractmethod
    def configs(self) -> list[Config]:
        """The models it shows."""

    tests: tuple[TestSet, ...] = ()  # to measure these models on

    @abstractmethod
    def draw(self, shelf: Shelf) -> Canvas:
        """The picture.

        Args:
            shelf: Where trained models and their measurements are.
        """

    def numbers(self, shelf: Shelf) -> list[Cell]:
        """What it shows in numbers, beside the paper's; by default nothing.

        Args:
            shelf: Where trained models and their measurements are.
        """
        return []

    def needs(self, only: Only) -> list[Need]:
        self.refuse_cells(only)
        return [Need(config, self.tests) for config in self.configs()]

    def write(self, shelf: Shelf, folder: Path, only: Only) -> list[Path]:
        picture = folder / f"{self.name}.png"
        canvas = self.draw(shelf)
        write_atomically(picture, lambda part: canvas.savefig(part, format="png", dpi=200))
        if not (numbers := self.numbers(shelf)):
            return [picture]
        write_json(folder / f"{self.name}.json", numbers)
        return [picture, folder / f"{self.name}.json"]
