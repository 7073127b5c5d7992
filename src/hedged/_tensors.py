"""Tensors in a file (safetensors), with a checksum: what is damaged is refused, not used."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from hedged._files import write_atomically
from hedged._reading import named_in_utf8

CHECKSUM = "checksum"  # its key among the metadata; files that were written before there was one are read too


class Saved(NamedTuple):
    """What a file holds: tensors by name, and words by name."""

    tensors: dict[str, Tensor]
    metadata: dict[str, str]


def save_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write a file, whole or not at all.

    Args:
        path: The file.
        tensors: By name.
        metadata: Words by name.
    """
    whole = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    words = dict(metadata or {})
    content = _in_order(save(whole, {**words, CHECKSUM: _checksum(whole, words)}))
    # Written by Python: a full disk is then an OSError as anywhere else.
    write_atomically(path, lambda part: part.write_bytes(content))


def _in_order(content: bytes) -> bytes:
    """The same file with its words in order, which safetensors does not keep: the same content, the same bytes."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    ordered = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode().ljust(size)
    return content[:8] + ordered + content[8 + size :] if len(ordered) == size else content


def load_tensors(path: Path) -> Saved:
    """Read a file; a ValueError, an OSError or safetensors' own error if it is damaged.

    Args:
        path: The file.
    """
    with named_in_utf8(path) as name, safe_open(name, framework="pt") as file:
        words = dict(file.metadata() or {})
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    stated = words.pop(CHECKSUM, None)
    if stated is not None and stated != _checksum(tensors, words):
        raise ValueError("its numbers are not those that were written")
    return Saved(tensors, words)


def read_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shapes of the tensors in a file, by name, without reading them; errors are those of `load_tensors`.

    Args:
        path: The file.
    """
    with named_in_utf8(path) as name, safe_open(name, framework="pt") as file:
        return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118 (not a dict)


def _checksum(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    """CRC-32 of all that a file holds."""
    found = zlib.crc32(json.dumps(dict(metadata), sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = tensors[name].cpu()
        found = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), found)
        found = zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy().data, found)
    return f"{found:08x}"
