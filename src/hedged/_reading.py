"""Reading files that others may have written: nothing but files, within limits, and JSON and TOML that can be handled.

Every function raises an OSError or a ValueError, in words; who calls it says which file it was, and what to do.
"""

from __future__ import annotations

import errno
import io
import json
import os
import stat
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

MAX_JSON_BYTES = 2**25  # no description, calibration or report comes near it
MAX_TOML_BYTES = 2**16  # the parser takes time that grows with the square of a key
MAX_TABLE_BYTES = 2**30  # of a table of the user's, as text
MAX_LINE = 2**20  # characters
MAX_DEPTH = 64  # of lists and tables in each other
MAX_INTEGER = 2**63 - 1
MAX_FLOAT = int(sys.float_info.max)  # an integer that is still a number in double precision
MAX_DIGITS = len(str(MAX_FLOAT)) + 1  # of it, with a sign
KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def open_file(path: Path) -> BinaryIO:
    """A file, open to be read; what is no file is refused by what it is, and never waited for.

    Args:
        path: The file.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
        if kind == stat.S_IFDIR:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if kind in KINDS:
            raise OSError(f"it is {KINDS[kind]}, not a file: copy what it gives to a file")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


@contextmanager
def named_in_utf8(path: Path) -> Iterator[Path]:
    """The path of a file for a library that takes no name but in UTF-8; one that is no file is refused.

    Args:
        path: The file, by any name.
    """
    with open_file(path) as file:
        is_text = not any("\ud800" <= one <= "\udfff" for one in str(path))
        yield path if is_text else Path(f"/dev/fd/{file.fileno()}")


def read_bytes(path: Path, limit: int) -> bytes:
    """All of a file, if it is not too large.

    Args:
        path: The file.
        limit: How many bytes it may have.
    """
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        _check_size(size, limit)
        content = file.read(size + 1)  # memory is taken for as much as is asked for
        if len(content) > size:  # it grows, or does not state its size
            while len(content) <= limit and (more := file.read(MAX_LINE)):
                content += more
    _check_size(len(content), limit)
    return content


def read_lines(path: Path, encoding: str = "utf-8") -> Iterator[str]:
    """The lines of a text file, with their ends.

    Args:
        path: The file.
        encoding: Of the text.
    """
    with open_file(path) as raw, io.TextIOWrapper(raw, encoding=encoding, newline="") as file:
        _check_size(os.fstat(raw.fileno()).st_size, MAX_TABLE_BYTES)
        while line := file.readline(MAX_LINE):
            if len(line) == MAX_LINE and not line.endswith(("\n", "\r")):
                raise ValueError(f"a line has {MAX_LINE:,} characters or more")
            yield line


def read_json(path: Path, limit: int = MAX_JSON_BYTES) -> Any:
    """The content of a JSON file.

    Args:
        path: The file.
        limit: How many bytes it may have.
    """
    return parse_json(read_bytes(path, limit).decode("utf-8"))


def parse_json(text: str, largest: int = MAX_INTEGER) -> Any:
    """The content of a JSON text; an integer beyond 64 bits and what is nested too deeply is refused.

    Args:
        text: The text.
        largest: How large an integer may be, with either sign.

    >>> parse_json('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    """

    def integer(digits: str) -> int:
        if len(digits) > MAX_DIGITS or abs(int(digits)) > largest:
            raise ValueError(f"an integer of {len(digits.lstrip('-')):,} digits is too large")
        return int(digits)

    try:
        content = json.loads(text, parse_int=integer)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    check_depth(content)
    return content


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file.

    Args:
        path: The file.
    """
    return parse_toml(read_bytes(path, MAX_TOML_BYTES).decode("utf-8"))


def parse_toml(text: str) -> dict[str, Any]:
    """The content of a TOML text; an integer beyond 64 bits and what is nested too deeply is refused.

    Args:
        text: The text.

    >>> parse_toml("a.b = 1")
    {'a': {'b': 1}}
    """
    _check_size(len(text), MAX_TOML_BYTES)
    try:
        content = tomllib.loads(text)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    for level in levels(content):
        for value in level:
            if isinstance(value, int) and abs(value) > MAX_INTEGER + 1:
                raise ValueError("an integer is larger than 64 bits")
    return content


def check_depth(content: Any) -> None:
    """Refuse lists and tables that are nested too deeply for what follows.

    Args:
        content: JSON values.
    """
    for _ in levels(content):
        pass


def levels(content: Any) -> Iterator[list[Any]]:
    """The values of JSON or TOML, all of one depth at a time; a ValueError if there is no end of it.

    Args:
        content: JSON values.

    >>> list(levels({"a": [1, {}]}))
    [[{'a': [1, {}]}], [[1, {}]], [1, {}], []]
    """
    level = [content]
    for _ in range(MAX_DEPTH):
        yield level
        if not level:
            return
        tables = [value for value in level if isinstance(value, dict | list | tuple)]
        level = [one for table in tables for one in (table.values() if isinstance(table, dict) else table)]
    raise ValueError(TOO_DEEP)


TOO_DEEP = f"it is nested more than {MAX_DEPTH} deep"


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        raise ValueError(f"it has {size:,} bytes or more, over the limit of {limit:,}")
