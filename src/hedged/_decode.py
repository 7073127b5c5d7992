"""Decoding image files of any size and mode; a file that cannot be decoded is a `DataError` that names it."""

from __future__ import annotations

import io
import os
import struct
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from hedged._reading import read_bytes
from hedged.errors import DataError

Pixels = NDArray[np.uint8]
Mode = Literal["L", "RGB"]
ORIENTATION = 0x0112  # EXIF's tag
MAX_PIXELS = 128_000_000  # of an image: a file that claims more is taken for a decompression bomb
MAX_BYTES = 2**30  # of a file: as many pixels, of 16 bits in four channels, and nothing gained by compression
# Of formats whose decoders keep several copies of an image, 16 bytes a pixel and more: no image takes 1.5 GB.
MAX_PIXELS_OF = {"WEBP": 75_000_000, "TIFF": 75_000_000, "AVIF": 75_000_000, "JPEG2000": 48_000_000}
STRIP_PIXELS = 4_000_000  # that are brought to another mode at a time: every step of it takes a copy
TURNS = {  # by the number that EXIF has for how the camera was held
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
# What Pillow raises on files that are made to break it; caught where nothing but Pillow runs.
PILLOW_ERRORS = (
    OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, SyntaxError, EOFError, MemoryError,
    RuntimeError, AssertionError, struct.error, zlib.error, Image.DecompressionBombError,
)  # fmt: skip
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
        return read_bytes(path, MAX_BYTES)
    except FileNotFoundError as error:
        raise DataError(f"there is no image {path}: check the path") from error
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error


@final
class Budget:
    """Pixels that may be in memory at a time, over all threads: who wants more than are left waits.

    Args:
        most: How many; who wants more than these has all of them.
    """

    def __init__(self, most: int) -> None:
        self._most = self._left = most
        self._changed = threading.Condition()

    @contextmanager
    def taking(self, pixels: int) -> Iterator[None]:
        """Hold so many pixels. A thread that holds some does not ask for more: it could wait for itself.

        Args:
            pixels: How many.
        """
        taken = min(pixels, self._most)
        with self._changed:
            self._changed.wait_for(lambda: self._left >= taken)
            self._left -= taken
        try:
            yield
        finally:
            with self._changed:
                self._left += taken
                self._changed.notify_all()


_in_flight = Budget(MAX_PIXELS)


def _start_anew() -> None:
    """A forked process decodes nothing of what its parent is decoding."""
    global _in_flight
    _in_flight = Budget(MAX_PIXELS)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)


@contextmanager
def opened(path: Path, content: bytes | None = None, side: int | None = None) -> Iterator[Image.Image]:
    """An image file, decoded, known by its content and not by its suffix; it is a `DataError` if that cannot be done.

    As long as it is open its pixels count among those of all threads. Pillow may warn of what is odd in a file: callers
    turn that off, for here it could be on any thread.

    Args:
        path: the file.
        content: what is in it, if it was read already.
        side: pixels that the shorter edge needs, if fewer will do: a JPEG is then decoded at 1/2, 1/4 or 1/8, for a
            fraction of the work; twice the side keeps it as sharp.
    """
    content = file_bytes(path) if content is None else content
    with _opened_lazily(path, content) as image:
        pixels = image.width * image.height
        if side is not None:
            with _telling_damage(path):
                image.draft(None, (2 * side, 2 * side))
            if not image.info.get("progressive"):  # of which all is kept until its end
                pixels = image.width * image.height
        with _in_flight.taking(pixels * MAX_PIXELS // _most_pixels(image)):
            with _telling_damage(path):
                image.load()
                image.getexif().get(ORIENTATION)
            try:
                yield image
            except DataError as error:
                raise _unreadable(path, error) from error


def _most_pixels(image: Image.Image) -> int:
    """How many pixels an image of this format may have."""
    return MAX_PIXELS_OF.get(image.format or "", MAX_PIXELS)


def size_of(path: Path, content: bytes) -> tuple[int, int]:
    """Width and height of an image, without decoding it.

    Args:
        path: the file, for messages.
        content: what is in it.
    """
    with _opened_lazily(path, content) as image:
        return image.size


@contextmanager
def _opened_lazily(path: Path, content: bytes) -> Iterator[Image.Image]:
    """An image whose pixels are not decoded yet."""
    if not content:
        raise _unreadable(path, ValueError("it is empty"))
    with _telling_damage(path):
        image = _identified(content)
    with image:
        most = _most_pixels(image)
        if image.width * image.height > most:
            claim = f"it claims {image.width:,} × {image.height:,} pixels and may be a decompression bomb"
            raise _unreadable(path, ValueError(claim))
        yield image


@contextmanager
def _telling_damage(path: Path) -> Iterator[None]:
    """What Pillow raises as a `DataError` that names the file. Nothing of hedged itself runs within."""
    try:
        yield
    except PILLOW_ERRORS as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> DataError:
    reason = str(error) or type(error).__name__
    if isinstance(error, KeyError | AttributeError | TypeError | IndexError):
        reason = "its parts contradict each other"
    if isinstance(error, UnidentifiedImageError):
        reason = "its content is of no known kind of image"
    return DataError(f"{path} cannot be read as an image ({reason}): convert it to PNG or JPEG")


def upright(image: Image.Image, mode: Mode) -> Image.Image:
    """The image turned as its EXIF data says, in 8 bits; what is transparent becomes black.

    Args:
        image: as Pillow opened it.
        mode: "L" for grey, "RGB" for colours.
    """
    turn = TURNS.get(image.getexif().get(ORIENTATION, 1))
    if turn is not None:
        image = image.transpose(turn)
    if image.mode == mode:
        return image
    width, height = image.size
    rows = max(STRIP_PIXELS // max(width, 1), 1)
    if height <= rows:
        return _converted(image, mode)
    whole = Image.new(mode, image.size)
    for top in range(0, height, rows):
        whole.paste(_converted(image.crop((0, top, width, min(top + rows, height))), mode), (0, top))
    return whole


def _converted(image: Image.Image, mode: Mode) -> Image.Image:
    """An image, or a strip of one, in 8 bits, with black where it is transparent."""
    if image.mode.startswith("I"):
        image = _from_16_bits(image)
    if image.mode == "F":
        raise DataError("an image of mode F has no agreed range of brightness: convert it to 8 or 16 bits")
    try:
        if image.has_transparency_data:
            image = Image.alpha_composite(Image.new("RGBA", image.size, "black"), image.convert("RGBA"))
        return image.convert(mode)
    except ValueError as error:  # a palette or a transparency that is none
        raise DataError(f"its colours cannot be told: {error}") from error


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
    with opened(path, content, side) as image:
        return middle(image, side)
