"""The tables of a Lance store: where they are, of which columns, and what is asked of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from hedged.errors import HedgedError, MissingDependencyError, StoreError
from hedged.search._versions import LANCEDB, refuse_older
from hedged.search.engines._sql import tags
from hedged.search.rows import OWN_KEYS, Filter, Header, Keys, Packed

SCHEME = "lance://"
LOGIN = re.compile(r"://([^/]*|.*:.*)@")  # in an address, where others have a user and a password
Arrow = Any  # pyarrow has no types


def place_of(location: str) -> str:
    """The folder of a store, or its address on object storage, as LanceDB takes it.

    Args:
        location: The address of the store.

    >>> place_of("lance://s3://bucket/dogs/")
    's3://bucket/dogs'
    """
    place = location.removeprefix(SCHEME).rstrip("/")
    if LOGIN.search(place):
        raise StoreError(
            "an address on object storage holds no user and no password (it is not shown): leave them out, and give "
            "them as the storage expects them, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    if not place:
        raise StoreError(f"{location} names no folder: an address reads {SCHEME}folder, or {SCHEME}s3://bucket/folder")
    return place


def is_local(place: str) -> bool:
    """Whether a store is in a folder of this machine, where writers can lock it.

    Args:
        place: Of the store.
    """
    return "://" not in place


def connect(place: str) -> Any:
    """The LanceDB database at a place.

    Args:
        place: Of the store.
    """
    try:
        import lancedb
    except ImportError as error:
        raise MissingDependencyError(
            f"{SCHEME} needs LanceDB, which is not installed: pip install 'hedged[lance]'"
        ) from error
    refuse_older(lancedb, LANCEDB, "lance")
    return lancedb.connect(place)


@contextmanager
def translating_errors(name: str) -> Iterator[None]:
    """Errors of LanceDB as errors of hedged.

    Args:
        name: Of the store.
    """
    try:
        yield
    except HedgedError:
        raise
    except (ValueError, RuntimeError, OSError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise StoreError(f"{name} cannot be read or written ({reason}): check that it is there, and whole") from error


def schema_of(header: Header) -> Arrow:
    """The columns of the table of rows; each component of a mixture has its mean in a column of its own.

    Args:
        header: Of the store.
    """
    import pyarrow as pa  # type: ignore[import-untyped]

    words, number = pa.list_(pa.string()), pa.float32()
    return pa.schema(
        [
            pa.field("key", pa.int64(), nullable=False),
            pa.field("id", pa.string(), nullable=False),
            pa.field("label", pa.string()),
            pa.field("metadata", pa.string()),
            pa.field("names", words),
            pa.field("tags", words),
            pa.field("checksum", pa.binary()),
            pa.field("embedding", pa.list_(number, header.width)),
            *(pa.field(f"mean_{i}", pa.list_(number, header.dim)) for i in range(header.components)),
        ]
    )


def lists_of(numbers: Packed) -> Arrow:
    """Rows of numbers as a column.

    Args:
        numbers: `(n, width)`.
    """
    import pyarrow as pa

    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(numbers).reshape(-1)), numbers.shape[1])


def keys_of(table: Arrow) -> Keys:
    """The keys of rows.

    Args:
        table: The rows.
    """
    return np.asarray(table["key"].to_numpy(), np.int64)


def quoted(text: str) -> str:
    """Text as SQL has it.

    Args:
        text: Any.
    """
    return "'" + text.replace("'", "''") + "'"


def among(column: str, values: Iterable[str]) -> str:
    """The condition that a column has one of some values.

    Args:
        column: Its name.
        values: At least one.
    """
    return f"{column} IN ({', '.join(map(quoted, values))})"


def looked_up(metadata: Mapping[str, Any]) -> list[str]:
    """What filters look up of a row.

    Args:
        metadata: Of the row.
    """
    return [f"{key}={value}" for key, value in tags(metadata)]


def condition(where: Filter) -> str | None:
    """A filter as Lance reads it; None if all rows pass.

    Args:
        where: The filter.

    >>> from hedged.search import Where
    >>> condition([Where("label", "O'Neill"), Where("year", "2019")])
    "label = 'O''Neill' AND array_has(tags, 'year=2019')"
    """
    parts = []
    for key, value in where:
        if key in OWN_KEYS:
            parts.append(f"{key} = {quoted(value)}")
        else:
            parts += [f"array_has(tags, {quoted(tag)})" for tag in looked_up({key: value})]
    return " AND ".join(parts) or None
