"""Targets that start from valid files: one of them is damaged, the others stay."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from fuzz.formats import damaged
from fuzz.harness import Target

Files = Mapping[str, bytes]


class FileTarget(Target):
    """A target whose valid inputs are files of a folder."""

    def prepare(self) -> None:
        with TemporaryDirectory() as folder:
            places = self.write_seeds(Path(folder))
            self._seeds = [files_of(place) for place in places]
            for place in places:
                self.use(place)

    @abstractmethod
    def write_seeds(self, folder: Path) -> list[Path]:
        """Write valid inputs, each in a folder of its own, and return these folders.

        Args:
            folder: Where to make them.
        """

    def is_damaged(self, name: str) -> bool:
        """Whether a file of an input may be damaged; all may, if it is not said otherwise.

        Args:
            name: Of the file.
        """
        return True

    def damage(self, random: Random, folder: Path) -> None:
        seed = random.choice(self._seeds)
        chosen = random.choice(sorted(filter(self.is_damaged, seed)))
        others = [files[name] for files in self._seeds for name in files if Path(name).suffix == Path(chosen).suffix]
        for name, content in seed.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(damaged(random, name, content, random.choice(others)) if name == chosen else content)


def files_of(folder: Path) -> Files:
    """The content of all files below a folder, by their path in it."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }
