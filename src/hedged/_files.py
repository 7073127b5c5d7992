"""Writing files so that a reader, or the next start after a crash, finds the old file or the new one: never half."""

from __future__ import annotations

import json
import os
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hedged.errors import RunError

CALIBRATION = "calibration.json"  # beside a model: written by decisions, listed by training.Run


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Call `write` on a new file beside `path`, force it to disk, then put it in the place of `path`.

    If anything fails, a full disk included, what was at `path` is untouched.
    """
    try:
        part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
        try:
            write(part)
            _force_to_disk(part)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise RunError(
            f"cannot write {path}: {reason}. Nothing was overwritten; free space or choose another folder"
        ) from error


def write_text(path: Path, text: str) -> None:
    def write(part: Path) -> None:
        part.write_text(text, encoding="utf-8")

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
        raise RunError(f"cannot write in the folder {path}: {reason}. Choose another with --out") from error


def path_text(path: str | Path) -> str:
    """A path as text that can be printed and stored: a disk may hold any bytes as a name.

    Args:
        path: The path.
    """
    return str(path).encode(errors="replace").decode()


def _force_to_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
