"""Writing files so that a reader, or the next start after a crash, finds the old file or the new one: never half."""

from __future__ import annotations

import json
import os
import re
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hedged._locks import is_at, try_lock
from hedged.errors import RunError

CALIBRATION = "calibration.json"  # beside a model: written by decisions, listed by training.Run
PART = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{32}\.part(-wal|-shm|-journal)?", re.DOTALL)  # a file half written


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Call `write` on a new file beside `path`, force it to disk, then put it in the place of `path`.

    If anything fails, a full disk included, what was at `path` is untouched. What a kill has left of an earlier attempt
    is removed.

    Args:
        path: The file.
        write: Writes all of it to the path that it is given, of an empty file.
    """
    try:
        remove_parts(path.parent, path.name)
        with _new_part(path) as part:
            write(part)
            _force_to_disk(part)
            part.replace(path)
        with suppress(OSError):  # not every system opens folders
            _force_to_disk(path.parent)
    except OSError as error:
        reason = error.strerror or error
        raise RunError(
            f"cannot write {path}: {reason}. Nothing was overwritten; free space or choose another folder"
        ) from error


def remove_parts(folder: Path, name: str | None = None) -> None:
    """Remove files that were half written when their writer was killed; those of a writer that lives stay.

    Args:
        folder: Where they are.
        name: Of the file that they were to become; None: any.
    """
    with os.scandir(folder) as entries:
        parts = [(entry.name, PART.fullmatch(entry.name)) for entry in entries]
    for part, match in parts:
        if match and name in (None, match["name"]):
            with suppress(OSError):  # it is gone, or may not be touched
                _remove_abandoned(folder / part)


@contextmanager
def _new_part(path: Path) -> Iterator[Path]:
    """A new file beside a path, locked while it is written so that nobody takes it for abandoned."""
    while True:
        part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
        descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            is_ours = try_lock(descriptor) and is_at(descriptor, part)
        except OSError:
            is_ours = True  # where there are no locks nobody removes it either
        if is_ours:
            break
        os.close(descriptor)  # it was taken for abandoned in the moment before it was locked
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)
        os.close(descriptor)


def _remove_abandoned(part: Path) -> None:
    descriptor = os.open(part, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    try:
        if try_lock(descriptor):
            part.unlink()
    finally:
        os.close(descriptor)


def write_text(path: Path, text: str) -> None:
    def write(part: Path) -> None:
        part.write_text(text, encoding="utf-8", errors="backslashreplace")

    write_atomically(path, write)


def write_json(path: Path, content: Any) -> None:
    write_text(path, json.dumps(content, indent=2) + "\n")


def make_folder(path: Path) -> None:
    """Make a folder and its parents, or say why not."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        reason = error.strerror or error
        raise RunError(f"cannot write in the folder {path}: {reason}. Make it writable, or choose another") from error


def path_text(path: str | Path) -> str:
    r"""A path as text that can be printed and stored: a disk may hold any bytes as a name, and two differ here too.

    Args:
        path: The path.

    >>> path_text("a\udcff")
    'a\\xff'
    """
    return os.fsencode(path).decode(errors="backslashreplace")


def _force_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
