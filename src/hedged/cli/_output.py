"""What verbs write: tables and JSON to standard output, messages to standard error, files only where there is none."""

from __future__ import annotations

import json
import logging
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from hedged.errors import RunError

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")]

LOGGER = logging.getLogger("hedged")


def log_to_stderr() -> None:
    """Show what the library tells about its work as plain lines."""
    LOGGER.handlers[:] = [logging.StreamHandler(sys.stderr)]
    LOGGER.setLevel(logging.INFO)


def examples(*lines: str) -> str:
    """Examples for the end of a help page; Click keeps line breaks in a paragraph that starts with a backspace."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


def print_json(content: Any) -> None:
    """One JSON document; numbers that are not finite, which JSON lacks, become null."""
    print(json.dumps(finite(content), indent=2, ensure_ascii=False))


def finite(content: Any) -> Any:
    """The same content with null for NaN and infinities.

    >>> finite({"tau": [float("nan"), 0.5]})
    {'tau': [None, 0.5]}
    """
    if isinstance(content, dict):
        return {key: finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table: ruled on a terminal, else columns two spaces apart. The first column is words, the others numbers."""
    if sys.stdout.isatty():
        _print_ruled(title, header, rows)
        return
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    print(title)
    for row in (header, *rows):
        cells = [
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())


def _print_ruled(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), box=SIMPLE_HEAD, title_justify="left")
    for i, name in enumerate(header):
        table.add_column(name, justify="left" if i == 0 else "right")
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)


def refuse_overwriting(path: Path | None, force: bool) -> None:
    """Say no before any work is done if a file is in the way."""
    if path is not None and path.exists() and not force:
        raise RunError(f"{path} exists already: choose another file, or overwrite it with --force")
