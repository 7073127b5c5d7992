"""Arrays in .npz files; and arrays that are read, damaged or claiming more than they hold: checked before that.

What is wrong with a file is an OSError or a ValueError, in words; who calls says which file it was, and what to do.
"""

from __future__ import annotations

import math
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from hedged._reading import open_file

MAX_RATIO = 200  # of what is unpacked to what is packed, of a large array: more is taken for a decompression bomb
LARGE = 2**28  # bytes
ENCRYPTED = 0x1  # a bit of the flags of a member
HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
# What NumPy and zipfile raise on bytes that are none of theirs.
DAMAGE = (
    ValueError, EOFError, KeyError, TypeError, IndexError, OverflowError, NotImplementedError, RuntimeError,
    MemoryError, SyntaxError, struct.error, zlib.error, zipfile.BadZipFile, tokenize.TokenError,
)  # fmt: skip


def write_npz(path: Path, arrays: Mapping[str, Any], compress: bool = False) -> None:
    """Write arrays as `numpy.savez` does, which leaves its archive open where the disk is full.

    Args:
        path: The file.
        arrays: By name.
        compress: Whether they are compressed.
    """
    how = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    with path.open("wb") as file, zipfile.ZipFile(file, "w", how) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                npy.write_array(member, np.asanyarray(array), allow_pickle=False)


def read_npy(path: Path) -> NDArray[Any]:
    """The array in an .npy file.

    Args:
        path: The file.
    """
    with open_file(path) as file:
        return _array(file, os.fstat(file.fileno()).st_size)


def map_npy(path: Path) -> NDArray[Any]:
    """The array in an .npy file, left on disk until it is looked at.

    Args:
        path: The file.
    """
    with _telling_damage():
        return np.asanyarray(np.load(path, mmap_mode="r"))


def read_npz(path: Path, names: Collection[str]) -> dict[str, NDArray[Any]]:
    """Arrays of an .npz file by name; those that it does not have are left out.

    Args:
        path: The file.
        names: Of the arrays to read.
    """
    with open_file(path) as file:
        if file.read(len(npy.MAGIC_PREFIX)) == npy.MAGIC_PREFIX:
            raise ValueError("it is an .npy file by another name: rename it")
        file.seek(0)
        with _telling_damage():
            archive = zipfile.ZipFile(file)
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        return {name: _member(archive, members[name]) for name in names if name in members}


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    if info.flag_bits & ENCRYPTED:
        raise ValueError(f"{info.filename} in it is encrypted: save it without a password")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{info.filename} in it is compressed in a way that NumPy does not use: save it with NumPy")
    size, packed = info.file_size, info.compress_size
    if size > max(LARGE, packed) and size > MAX_RATIO * packed:
        raise ValueError(f"{info.filename} in it claims to unpack {packed:,} bytes to {size:,}: it may be a bomb")
    with _telling_damage():
        stream = archive.open(info)
    with stream:
        array = _array(stream, size)
        with _telling_damage():
            stream.read(1)  # the end, where the checksum is compared
    return array


def _array(file: IO[bytes], size: int) -> NDArray[Any]:
    """The array in a stream of so many bytes."""
    with _telling_damage():
        version = npy.read_magic(file)
    if version not in HEADERS:
        raise ValueError(f"it is of version {version[0]}.{version[1]} of the .npy format: save plain numbers or words")
    with _telling_damage():
        shape, is_fortran, dtype = HEADERS[version](file)
        start = file.tell()
    if dtype.hasobject:
        raise ValueError("it holds Python objects")
    wanted = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or dtype.itemsize == 0 or wanted > size - start:
        raise ValueError(f"it claims to hold {shape} of {dtype}, {wanted:,} bytes, and has {max(size - start, 0):,}")
    content = np.empty(wanted, np.uint8)
    with _telling_damage():
        filled = _fill(file, content.data)
    if filled < wanted:
        raise ValueError(f"it ends after {filled:,} of {wanted:,} bytes")
    with _telling_damage():
        return content.view(dtype).reshape(shape, order="F" if is_fortran else "C")


def _fill(file: IO[bytes], content: memoryview) -> int:
    """Read until all is there or no more comes; how much there is."""
    filled = 0
    while filled < len(content) and (part := file.read(min(len(content) - filled, 2**24))):
        content[filled : filled + len(part)] = part
        filled += len(part)
    return filled


@contextmanager
def _telling_damage() -> Iterator[None]:
    """What NumPy and zipfile raise on damaged bytes, as a ValueError. Nothing of hedged itself runs within."""
    try:
        yield
    except DAMAGE as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(reason) from error
