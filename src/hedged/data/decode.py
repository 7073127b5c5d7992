"""Decoding image files of any size and mode; a file that cannot be decoded is a `DataError` that names it."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from hedged.errors import DataError

Pixels = NDArray[np.uint8]
Mode = Literal["L", "RGB"]
ORIENTATION = 0x0112  # EXIF's tag
MAX_PIXELS = 128_000_000  # of an image: a file that claims more is taken for a decompression bomb
MAX_BYTES = 2**30  # of a file: as many pixels, of 16 bits in four channels, and nothing gained by compression
# Pillow knows more, but some have no mark to be known by, and one (EPS) is a program.
FORMATS = ("JPEG", "MPO", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM", "JPEG2000", "AVIF")
COMMON = ("JPEG", "PNG", "BMP", "GIF", "PPM")  # those that Pillow has ready without loading all of its plugins


@cache
def image_suffixes() -> frozenset[str]:
    """How the names of image files end, in small letters."""
    return frozenset(suffix for suffix, kind in Image.registered_extensions().items() if kind in FORMATS)


@cache
def _formats() -> tuple[str, ...]:
    """Those formats that this Pillow can read."""
    Image.init()
    return tuple(name for name in FORMATS if name in Image.OPEN)


def _identified(content: bytes) -> Image.Image:
    """The image that a file holds: of a common format if it is one, else of any, once all plugins are loaded."""
    Image.preinit()
    try:
        return Image.open(io.BytesIO(content), formats=COMMON)
    except UnidentifiedImageError:
        return Image.open(io.BytesIO(content), formats=_formats())


def file_bytes(path: Path) -> bytes:
    """The content of a file; whatever prevents reading it is a `DataError` that names the file.

    Args:
        path: the file.
    """
    try:
        with path.open("rb", buffering=0) as file:
            if (size := os.fstat(file.fileno()).st_size) > MAX_BYTES:
                raise ValueError(f"it has {size:,} bytes, over the limit of {MAX_BYTES:,}")
            return file.readall()  # a single read may give less than all on some network disks
    except FileNotFoundError as error:
        raise DataError(f"there is no image {path}: check the path") from error
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error


@contextmanager
def opened(path: Path, content: bytes | None = None) -> Iterator[Image.Image]:
    """An image file, known by its content and not by its suffix; whatever fails within is a `DataError` that names it.

    Pillow may warn of what is odd in a file: callers turn that off, for here it could be on any thread.

    Args:
        path: the file.
        content: what is in it, if it was read already.
    """
    content = file_bytes(path) if content is None else content
    try:
        with _identified(content) as image:
            if image.width * image.height > MAX_PIXELS:
                raise ValueError(f"it claims {image.width:,} × {image.height:,} pixels and may be a decompression bomb")
            yield image
    except Exception as error:  # decoders fail in any way on files that are made to break them
        raise _unreadable(path, error if content else ValueError("it is empty")) from error


def _unreadable(path: Path, error: Exception) -> DataError:
    reason = str(error) or type(error).__name__
    if isinstance(error, UnidentifiedImageError):
        reason = "its content is of no known kind of image"
    return DataError(f"{path} cannot be read as an image ({reason}): convert it to PNG or JPEG")


def upright(image: Image.Image, mode: Mode) -> Image.Image:
    """The image turned as its EXIF data says, in 8 bits; what is transparent becomes black.

    Args:
        image: as Pillow opened it.
        mode: "L" for grey, "RGB" for colours.
    """
    if image.getexif().get(ORIENTATION, 1) != 1:  # asked first, for the answer is nearly always no and costs a copy
        image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I"):
        image = _from_16_bits(image)
    if image.mode == "F":
        raise DataError("an image of mode F has no agreed range of brightness: convert it to 8 or 16 bits")
    if image.mode == mode:
        return image
    if image.has_transparency_data:
        image = Image.alpha_composite(Image.new("RGBA", image.size, "black"), image.convert("RGBA"))
    return image.convert(mode)


def _from_16_bits(image: Image.Image) -> Image.Image:
    """The upper 8 of 16 bits, which Pillow also keeps in 32."""
    values = np.asarray(image)
    if values.size and (values.min() < 0 or values.max() > 0xFFFF):
        raise DataError(f"an image of mode {image.mode} has no agreed range of brightness: convert it to 8 or 16 bits")
    return Image.fromarray((values >> 8).astype(np.uint8))


def middle(image: Image.Image, side: int) -> Pixels:
    """The middle square of an image, uint8 (side, side, 3): its shorter edge is resized to `side`, the longer is cut.

    Args:
        image: as Pillow opened it.
        side: pixels a side of the square.

    >>> middle(Image.new("L", (40, 30), 255), 8).shape
    (8, 8, 3)
    """
    image = upright(image, "RGB")
    if image.size == (side, side):
        return np.array(image)
    edge = min(image.size)
    left, top = ((length - edge) / 2 for length in image.size)
    box = (left, top, left + edge, top + edge)
    return np.array(image.resize((side, side), Image.Resampling.BILINEAR, box, reducing_gap=3.0))


def read_middle(path: Path, side: int, content: bytes | None = None) -> Pixels:
    """The middle square of an image file, uint8 (side, side, 3).

    Args:
        path: the file.
        side: pixels a side of the square.
        content: what is in the file, if it was read already.
    """
    with opened(path, content) as image:
        # A JPEG can decode itself at 1/2, 1/4 or 1/8 for a fraction of the work; twice the side keeps it as sharp.
        image.draft(None, (2 * side, 2 * side))
        return middle(image, side)
