"""Versions of the engines: one that is too old is refused before anything is done."""

from __future__ import annotations

import re
from typing import Any

from hedged.errors import MissingDependencyError

PGVECTOR, LANCEDB, USEARCH = "0.8", "0.40", "2.26"  # the least: those of packages are in pyproject.toml, too


def is_older(found: str, least: str) -> bool:
    """Whether a version comes before another.

    Args:
        found: The one.
        least: The other.

    >>> is_older("0.7.4", "0.8"), is_older("0.10.0", "0.8"), is_older("0.8", "0.8")
    (True, False, False)
    """
    return _numbers(found) < _numbers(least)


def _numbers(version: str) -> list[int]:
    start = re.match(r"[0-9.]*", version)
    return [int(number) for number in start[0].split(".") if number] if start else []


def refuse_older(package: Any, least: str, extra: str) -> None:
    """Raise an error if a package is too old.

    Args:
        package: The module.
        least: The least version that will do.
        extra: Of hedged, which installs it.
    """
    found = str(getattr(package, "__version__", "0"))
    if is_older(found, least):
        raise MissingDependencyError(
            f"{package.__name__} {found} is too old, {least} or later is needed: "
            f"pip install --upgrade 'hedged[{extra}]'"
        )
