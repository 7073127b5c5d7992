"""Which shards of a job are finished: one JSON file, replaced as a whole, that says what was embedded by which model.

A shard counts once the manifest names it. So whatever dies, every row is there once when all are named.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self, final

from hedged._files import write_json
from hedged._reading import read_json
from hedged.errors import RunError
from hedged.models.bulk.pieces import Piece

FILE = "manifest.json"
VERSION = 1
MAX_BYTES = 2**30  # of a manifest: some million shards


@final
@dataclass(frozen=True)
class Shard:
    """A finished shard.

    Args:
        file: Its name in the folder; empty if no input of the piece could be embedded.
        rows: How many rows it has.
        sha256: Of the file.
        broken: Why each of the other inputs could not be embedded.
    """

    file: str
    rows: int
    sha256: str
    broken: list[str] = field(default_factory=list)


@final
@dataclass
class Manifest:
    """What a folder of shards holds, and what is still to do.

    Args:
        folder: Where the shards are.
        model: The fingerprint of the model.
        inputs: A hash of the pieces that the inputs were cut into.
        count: How many inputs there are.
        shard_size: How many of them a shard has at most.
        pieces: How many shards there will be.
        shards: Those that are finished, by number.
    """

    folder: Path
    model: str
    inputs: str
    count: int
    shard_size: int
    pieces: int
    shards: dict[int, Shard] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path, model: str, pieces: Sequence[Piece], shard_size: int) -> Self:
        """The manifest of a job of which nothing is done.

        Args:
            folder: Where its shards will be.
            model: The fingerprint of the model.
            pieces: Of the inputs.
            shard_size: How many inputs a piece has at most.
        """
        content = hashlib.sha256()
        for piece in pieces:
            content.update(repr(piece).encode(errors="backslashreplace"))
        return cls(folder, model, content.hexdigest(), sum(map(len, pieces)), shard_size, len(pieces))

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The manifest in a folder.

        Args:
            folder: The folder.
        """
        path = folder / FILE
        try:
            content = read_json(path, MAX_BYTES)
            if content.pop("version") != VERSION:
                raise ValueError("it is of another version of hedged")
            shards = {int(number): Shard(**shard) for number, shard in content.pop("shards").items()}
            return cls(folder, **content, shards=shards)
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise RunError(
                f"{path} cannot be read ({error}): restore it, or embed into a new folder; see that {folder} was "
                "written by `hedged embed --ray`"
            ) from error

    def write(self) -> None:
        """Replace the manifest in the folder by this one."""
        content = {name: value for name, value in asdict(self).items() if name != "folder"}
        write_json(self.folder / FILE, {"version": VERSION, **content})

    def continued(self) -> Self:
        """The job with what is finished of it in its folder, which is refused if it is of another job."""
        if not is_shard_folder(self.folder):
            if any(self.folder.glob("*.parquet")):
                raise RunError(f"{self.folder} holds other Parquet files: choose a new folder for the shards")
            return self
        before = type(self).read(self.folder)
        for name, words in (
            ("model", "by the model {}, not by {}"),
            ("shard_size", "in shards of {:,}, not of {:,}"),
            ("count", "of {:,} inputs, not of {:,}"),
            ("inputs", "of other inputs (their hash was {:.12}, now it is {:.12})"),
        ):
            was, now = getattr(before, name), getattr(self, name)
            if was != now:
                raise RunError(
                    f"{self.folder} holds shards {words.format(was, now)}: continue with the same command, or choose "
                    "a new folder"
                )
        before.shards = {number: shard for number, shard in before.shards.items() if before.has(shard)}
        return before

    def has(self, shard: Shard) -> bool:
        """Whether the file of a shard is there."""
        return not shard.file or (self.folder / shard.file).exists()

    def unfinished(self, retry_broken: bool) -> list[int]:
        """The numbers of the shards that are still to be made.

        Args:
            retry_broken: Whether those of which inputs were broken are made again.
        """
        return [i for i in range(self.pieces) if i not in self.shards or (retry_broken and self.shards[i].broken)]

    @property
    def rows(self) -> int:
        """How many rows the finished shards have."""
        return sum(shard.rows for shard in self.shards.values())

    @property
    def broken(self) -> list[str]:
        """Why inputs could not be embedded."""
        return [why for _, shard in sorted(self.shards.items()) for why in shard.broken]

    def files(self) -> list[Path]:
        """The files of the shards, in order; refused while some are missing or not what was written."""
        if missing := self.pieces - len(self.shards):
            raise RunError(
                f"{self.folder} lacks {missing:,} of its {self.pieces:,} shards: continue `hedged embed --ray` with "
                "the same command"
            )
        shards = [shard for _, shard in sorted(self.shards.items()) if shard.file]
        for shard in shards:
            path = self.folder / shard.file
            if not path.exists() or sha256_of(path) != shard.sha256:
                raise RunError(
                    f"{path} is not what was written: remove it, and run the command that embedded it again, which "
                    "makes only this shard"
                )
        return [self.folder / shard.file for shard in shards]


def is_shard_folder(path: Path) -> bool:
    """Whether a folder holds shards and their manifest.

    Args:
        path: The folder.
    """
    return (path / FILE).is_file()


def sha256_of(path: Path) -> str:
    """The hash of a file.

    Args:
        path: The file.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
