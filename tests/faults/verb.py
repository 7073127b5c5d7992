"""A verb that writes, as a user types it, and what has to hold of its files, whatever happened."""

from __future__ import annotations

import sys
import traceback
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from cli.commands import TINY
from PIL import Image

from hedged.cli import main

Words = list[str]

STEPS = 4

STEPS = 4
SHORT = (
    TINY.replace("steps = 20", f"steps = {STEPS}")
    .replace("warmup = 2", "warmup = 1")
    .replace("checkpoint_every = 10", f"checkpoint_every = {STEPS // 2}")
    .replace("log_every = 5", "log_every = 2")
    .replace("train_images = 1000", "train_images = 200")
    .replace("test_images = 400", "test_images = 100")
)


def hedged(*words: object) -> int:
    """Run the command line in this process; its exit code.

    Args:
        words: As they are typed.
    """
    sys.argv = ["hedged", *map(str, words)]
    try:
        main()
    except SystemExit as stop:
        return int(stop.code or 0)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


class Verb(ABC):
    """A verb as a user types it, in a folder that was made ready for it."""

    name: ClassVar[str]

    @abstractmethod
    def make_ready(self, folder: Path) -> None:
        """Make all that the verb needs, and files of an earlier time that it must not lose.

        Args:
            folder: Where to.
        """

    @abstractmethod
    def command(self, folder: Path) -> Words:
        """The words of the command.

        Args:
            folder: That was made ready.
        """

    def command_again(self, folder: Path) -> Words:
        """The command to go on with after a failure; the same if it is not said otherwise.

        Args:
            folder: As the failure left it.
        """
        return self.command(folder)

    @abstractmethod
    def check_nothing_lost(self, before: Path, folder: Path) -> None:
        """Assert that what was there is whole, and what is new as well.

        Args:
            before: The folder as it was.
            folder: As the failure left it.
        """

    @abstractmethod
    def result(self, folder: Path) -> Any:
        """What the verb made, to be compared with what it makes undisturbed.

        Args:
            folder: After the verb was done.
        """


def write_images(folder: Path, count: int, first: int = 0) -> None:
    """Images of the size that the tiny model takes."""
    folder.mkdir(parents=True)
    for number in range(first, first + count):
        pixels = np.random.default_rng(number).integers(0, 256, (28, 56), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")


def train_tiny(folder: Path) -> None:
    (folder / "tiny.toml").write_text(SHORT, encoding="utf-8")
    assert hedged("train", folder / "tiny.toml", "--out", folder / "run") == 0
