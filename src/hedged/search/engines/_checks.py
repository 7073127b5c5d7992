"""What tells a whole row from a broken one: a checksum for its embedding, one for the rest, and values that can be.

Checksums (CRC-32) find damage, every run of up to 32 flipped bits and all but one in four billion others. They are no
protection against somebody who writes to the store on purpose.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from hedged._reading import parse_json
from hedged.search.rows import FLOAT, LARGEST_INTEGER, Described, Header

CHECKSUM = struct.Struct(">II")  # of the embedding, and of id, label and metadata


class RawRow(NamedTuple):
    """A row as the database has it, whatever that is."""

    key: Any
    embedding: Any
    checksum: Any
    id: Any
    label: Any
    metadata: Any


def checksum(embedding: bytes, name: str, label: str | None, metadata: str) -> bytes:
    """The checksum of a row, 8 bytes.

    Args:
        embedding: The packed embedding.
        name: The id.
        label: The label.
        metadata: As text, always the same for the same metadata.
    """
    return CHECKSUM.pack(zlib.crc32(embedding), _of_description(name, label, metadata))


def header_checksum(uuid: str, header: str) -> int:
    """The checksum of what a store says of itself.

    Args:
        uuid: Of the store.
        header: As text.
    """
    return zlib.crc32(f"{uuid} {header}".encode(errors="surrogatepass"))


def canonical(metadata: Mapping[str, Any]) -> str:
    """Metadata as the same text before and after a database that keeps numbers in a way of its own.

    Args:
        metadata: JSON values by key.

    >>> canonical({"b": 1.0, "a": [100, True, "x"]}) == canonical({"a": [1e2, True, "x"], "b": 1})
    True
    """
    return json.dumps(_with_plain_numbers(metadata), sort_keys=True)


def embedding_fault(header: Header, embedding: Any, stored: Any) -> str:
    """What is wrong with the embedding of a row; empty if nothing is.

    Args:
        header: Of the store.
        embedding: As the database has it.
        stored: The checksum of the row; None if it has none.
    """
    if not isinstance(embedding, bytes) or len(embedding) != header.width * FLOAT.itemsize:
        return "its embedding is of another size"
    if stored is not None and _unpacked(stored)[0] != zlib.crc32(embedding):
        return "its embedding is not what was written"
    return ""


def value_fault(header: Header, embedding: bytes) -> str:
    """Which values of an embedding cannot be; empty if all can.

    Args:
        header: Of the store.
        embedding: The packed embedding.
    """
    numbers = np.frombuffer(embedding, FLOAT)
    if not np.isfinite(numbers).all():
        return "its embedding has values that are NaN or infinite"
    if not (numbers[header.components * header.dim :] > 0).all():
        return "its embedding has variances that are not positive"
    return ""


def description_fault(name: Any, label: Any, metadata: Any, stored: Any) -> str:
    """What is wrong with id, label and metadata of a row; empty if nothing is.

    Args:
        name: The id, as the database has it.
        label: The label.
        metadata: As text.
        stored: The checksum of the row; None if it has none.
    """
    if not isinstance(name, str) or not isinstance(label, str | None) or not isinstance(metadata, str):
        return "its id, label or metadata are no text"
    if stored is not None and _unpacked(stored)[1] != _of_description(name, label, metadata):
        return "its id, label or metadata are not what was written"
    try:
        is_whole = isinstance(parse_json(metadata, LARGEST_INTEGER), dict)
    except ValueError:
        is_whole = False
    return "" if is_whole else "its metadata are no JSON"


def row_fault(header: Header, row: RawRow, metadata: Any) -> str:
    """What is wrong with a row; empty if nothing is.

    Args:
        header: Of the store.
        row: As the database has it.
        metadata: Its metadata as the text that its checksum is of.
    """
    return (
        embedding_fault(header, row.embedding, row.checksum)
        or value_fault(header, row.embedding)
        or description_fault(row.id, row.label, metadata, row.checksum)
    )


def described(row: RawRow) -> Described:
    """A row without its embedding, of one that was found to be whole.

    Args:
        row: As the database has it.
    """
    metadata = parse_json(row.metadata, LARGEST_INTEGER) if isinstance(row.metadata, str) else row.metadata
    return Described(row.id, row.label, metadata)


def _unpacked(stored: Any) -> tuple[int, int]:
    """Both parts of a checksum; of what is none, what no row has."""
    if not isinstance(stored, bytes) or len(stored) != CHECKSUM.size:
        return -1, -1
    first, second = CHECKSUM.unpack(stored)
    return first, second


def _of_description(name: str, label: str | None, metadata: str) -> int:
    text = json.dumps([name, label, metadata])
    return zlib.crc32(text.encode())


def _with_plain_numbers(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _with_plain_numbers(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_with_plain_numbers(one) for one in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    try:
        return float(value) + 0.0  # which makes one zero of both
    except OverflowError:
        return str(value)
