"""What verbs write: tables and JSON to standard output, messages to standard error, files only where there is none."""

from __future__ import annotations

import json
import logging
import math
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from hedged.errors import RunError

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")]

LOGGER = logging.getLogger("hedged")


WIDTH = 80  # columns of a terminal that says nothing of its own
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")  # characters that tell a terminal what to do
CONTROL_IN_LINES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # the same without the ends of lines, and tabs


def printable(text: str) -> str:
    r"""A name as it may be shown on a terminal, on one line: control characters are written out.

    Args:
        text: An id, a label, a path: anything that came from outside.

    >>> printable("a\x1b[31mb\n")
    'a\\x1b[31mb\\n'
    """
    return CONTROL.sub(_written_out, text)


def printable_lines(text: str) -> str:
    r"""A message of one line or several, with all other control characters written out.

    Args:
        text: The message.
    """
    return CONTROL_IN_LINES.sub(_written_out, text)


def _written_out(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def say(text: str = "", flush: bool = False) -> None:
    """A line on standard output, or several. What names are in it tell the terminal nothing.

    Args:
        text: The line.
        flush: Whether it must be seen at once.
    """
    print(printable_lines(text), flush=flush)


def complain(text: str) -> None:
    """A line on standard error, as far as that can be written to.

    Args:
        text: The line.
    """
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)


class _PrintableLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable_lines(super().format(record))


def log_to_stderr() -> None:
    """Show what the library tells about its work as plain lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_PrintableLines())
    LOGGER.handlers[:] = [handler]
    LOGGER.setLevel(logging.INFO)


def examples(*lines: str) -> str:
    """Examples for the end of a help page; Click keeps line breaks in a paragraph that starts with a backspace."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


def print_json(content: Any) -> None:
    """One JSON document; numbers that are not finite, which JSON lacks, become null."""
    text = json.dumps(finite(content), indent=2, ensure_ascii=False)
    print(re.sub("[\x7f-\x9f]", lambda found: f"\\u{ord(found[0]):04x}", text))  # others are escaped already


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
    """A table: ruled on a terminal, else columns two spaces apart. The first column is words, the others numbers.

    Nothing is cut. Where columns do not fit side by side, the first is on lines of its own, above the others; and where
    these do not fit either, each cell is.
    """
    title, header, rows = printable(title), list(map(printable, header)), [list(map(printable, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    space = shutil.get_terminal_size((WIDTH, 24)).columns if sys.stdout.isatty() else WIDTH
    if sys.stdout.isatty() and sum(widths) + 3 * len(widths) <= space:
        _print_ruled(title, header, rows)
        return
    say(title)
    if sum(widths) + 2 * (len(widths) - 1) <= space:
        for row in (header, *rows):
            say(_line(row, widths))
    elif 2 + sum(widths[1:]) + 2 * (len(widths) - 2) <= space:
        for row in (header, *rows):
            say("\n".join(filter(None, (row[0], _line(["", *row[1:]], [0, *widths[1:]])))))
    else:
        for row in rows:
            say(row[0])
            say("\n".join(f"  {name}: {cell}" for name, cell in zip(header[1:], row[1:], strict=True) if cell))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (
        cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join([first, *others]).rstrip()


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


@contextmanager
def owning_output(path: Path | None, force: bool) -> Iterator[None]:
    """The right to write a file, while what goes into it is found: refused before that work if it cannot be written.

    Args:
        path: The file; None: none is wanted.
        force: Whether one that is there may be overwritten.
    """
    from hedged._files import make_folder
    from hedged._locks import owning

    refuse_overwriting(path, force)
    if path is None:
        yield
        return
    if path.is_dir() or not path.name:
        raise RunError(f"{path} is a folder: give the name of a file in it")

    def refusal(holder: str) -> RunError:
        return RunError(f"{path} is being written by {holder}: wait until it is done, or choose another file")

    make_folder(path.parent)
    with owning(path.with_name(f".{path.name}.lock"), refusal):
        refuse_overwriting(path, force)  # again: another process may have been at it until now
        yield
