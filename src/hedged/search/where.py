"""Filters on labels and metadata: a row passes if each key that is named has the value that is named."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hedged.errors import ConfigError


class Where(NamedTuple):
    """The rows whose metadata hold this value under this key; `label` and `id` are keys too.

    Values are compared as text: `Where("year", "2019")` finds 2019 and "2019".
    """

    key: str
    value: str


Filter = Sequence[Where]
LONGEST = 256  # characters of a value that are kept as they are


def parse_where(text: str) -> Where:
    """A filter as it is typed.

    >>> parse_where("breed=great dane")
    Where(key='breed', value='great dane')
    """
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise ConfigError(f"a filter reads key=value, got {text!r}: for example --where breed=beagle")
    return Where(key, value)


def as_text(value: Any) -> str:
    """A value of metadata as filters compare it.

    >>> as_text("a"), as_text(3.0), as_text(True), as_text([1, None])
    ('a', '3', 'true', '[1, null]')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def tags(metadata: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a store keeps of metadata for filters to look up: keys and values as text."""
    for key, value in metadata.items():
        yield key, _short(as_text(value))


def _short(text: str) -> str:
    """Text that a database can look up: what is longer stands as its hash."""
    return text if len(text) <= LONGEST else f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def condition(where: Filter) -> tuple[str, list[str]]:
    """SQL that holds for the rows of `item` that pass, with its parameters.

    >>> condition([Where("label", "Rex"), Where("year", "2019")])
    ('label = ? AND key IN (SELECT item FROM tag WHERE name = ? AND value = ?)', ['Rex', 'year', '2019'])
    """
    parts, parameters = [], []
    for key, value in where:
        if key in ("id", "label"):
            parts.append(f"{key} = ?")
            parameters.append(value)
        else:
            parts.append("key IN (SELECT item FROM tag WHERE name = ? AND value = ?)")
            parameters += [key, _short(value)]
    return " AND ".join(parts) or "TRUE", parameters


def refuse_unknown(key: str, known: Sequence[str], store: str) -> None:
    """Say which keys there are if this is none of them."""
    if key not in known:
        there = ", ".join([*known, "label", "id"])
        raise ConfigError(f"no row of {store} has the key {key!r}: filter by one of {there}")
