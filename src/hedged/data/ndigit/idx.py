"""The IDX format of the original MNIST files: a magic number, the sizes, then unsigned bytes."""

from __future__ import annotations

import math
import struct

import torch
from torch import Tensor

from hedged.errors import DataError

UNSIGNED_BYTE = 8


def parse_idx(content: bytes, dimensions: int, name: str) -> Tensor:
    """The uint8 array in the bytes of an IDX file.

    Args:
        content: of the file.
        dimensions: how many the array must have.
        name: of the file, for messages.

    >>> parse_idx(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]), dimensions=1, name="labels")
    tensor([7, 8, 9], dtype=torch.uint8)
    """
    header = 4 + 4 * dimensions
    if content[:4] != bytes([0, 0, UNSIGNED_BYTE, dimensions]):
        raise DataError(
            f"{name} is not an IDX file of bytes in {dimensions} dimension(s): it starts with "
            f"{content[:4].hex() or 'nothing'}, expected {bytes([0, 0, UNSIGNED_BYTE, dimensions]).hex()}"
        )
    if len(content) < header:
        raise DataError(f"{name} ends within its header: {len(content)} of {header} bytes")
    shape = struct.unpack(f">{dimensions}I", content[4:header])
    if len(content) != header + math.prod(shape):
        raise DataError(
            f"{name} should hold {shape} bytes after its header, {math.prod(shape):,}; "
            f"it holds {len(content) - header:,}"
        )
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)[header:].reshape(shape)
