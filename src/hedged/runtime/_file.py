"""An .onnx file that hedged exported: found whole, and told from all others, before anything is made of it.

A file is a protobuf message, of which only the outermost layer is read here: fields one after the other, each with its
number and its length. Field 14 are entries of the metadata; the last one of a file is a checksum of all before it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from hedged._reading import parse_json, read_bytes
from hedged.errors import RunError

MAX_BYTES = 2**31  # protobuf's limit
MAX_DESCRIPTION = 2**22  # bytes; a calibration of thousands of steps has a tenth of it
METADATA = 14  # ModelProto.metadata_props
KEY, CHECKSUM = b"hedged", b"hedged.checksum"
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # how the value of a field is written
DIGITS = 8  # of the checksum


class File(NamedTuple):
    """What a file holds: all its bytes, for onnxruntime, and what its metadata says."""

    content: bytes
    description: Any


def read_file(path: Path) -> File:
    """A file that hedged exported; any other is refused, by name.

    Args:
        path: the file.
    """
    try:
        content = read_bytes(path, MAX_BYTES)
    except FileNotFoundError as error:
        raise RunError(f"there is no file {path}: export a model with `hedged export RUN --onnx {path}`") from error
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read ({error}): restore the file, or export the model again") from error
    try:
        metadata = dict(_metadata(content))
        if KEY not in metadata:
            raise ValueError("its metadata does not say how inputs are prepared and compared")
        _check(content, metadata.get(CHECKSUM))
        if len(metadata[KEY]) > MAX_DESCRIPTION:
            raise ValueError(f"its description has {len(metadata[KEY]):,} bytes")
        return File(content, parse_json(metadata[KEY].decode("utf-8")))
    except ValueError as error:
        raise RunError(
            f"{path} is no model that hedged exported, or it is damaged ({error}): export one with `hedged export RUN "
            f"--onnx {path}`"
        ) from error


def _check(content: bytes, stated: bytes | None) -> None:
    """Refuse a file whose checksum is not at its end, or not that of all before it."""
    entry = _field(1, CHECKSUM) + _field(2, stated or b"")
    last = _field(METADATA, entry)
    if stated is None or len(stated) != DIGITS or not content.endswith(last):
        raise ValueError("its checksum is missing: it was cut short, or written again by another program")
    if stated != b"%08x" % zlib.crc32(memoryview(content)[: -len(last)]):
        raise ValueError("its bytes are not those that were written")


def _field(number: int, value: bytes) -> bytes:
    """A field of fewer than 128 bytes as it is written."""
    return bytes([number << 3 | BYTES, len(value)]) + value


def _metadata(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The entries of the metadata, which are messages of two fields, the key and the value."""
    for number, value in _fields(memoryview(content)):
        if number == METADATA:
            entry = dict(_fields(value))
            yield bytes(entry.get(1, b"")), bytes(entry.get(2, b""))


def _fields(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """The fields of a message that hold bytes, by number; a ValueError where it is none."""
    place = 0
    while place < len(message):
        tag, place = _varint(message, place)
        number, kind = tag >> 3, tag & 7
        if kind == VARINT:
            _, place = _varint(message, place)
        elif kind in (FIXED32, FIXED64):
            place += 4 if kind == FIXED32 else 8
        elif kind == BYTES:
            length, place = _varint(message, place)
            yield number, message[place : place + length]
            place += length
        else:
            raise ValueError("it is not in the format of ONNX")
        if number == 0 or place > len(message):
            raise ValueError("it is not in the format of ONNX, or was cut short")


def _varint(message: memoryview, place: int) -> tuple[int, int]:
    """A number of up to ten bytes of seven bits each, and where it ends."""
    number = 0
    for shift, byte in enumerate(message[place : place + 10]):
        number |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            return number, place + shift + 1
    raise ValueError("it is not in the format of ONNX, or was cut short")
