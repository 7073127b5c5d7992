"""One photo of any size and mode, from a file that may be broken, to a square of upright RGB pixels."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from hedged.errors import DataError

Pixels = NDArray[np.uint8]
MOST_PIXELS = 100_000_000  # of a photo: a file that claims more is taken for a decompression bomb
FAILURES = (OSError, ValueError, SyntaxError, EOFError, MemoryError, Image.DecompressionBombError)


def read_square(path: Path, side: int) -> Pixels:
    """The middle of a photo, uint8 (side, side, 3): its shorter edge is resized to `side`, the longer is cut.

    The content decides what a file is, not its suffix. What cannot be decoded whole is a `DataError` that names it.
    """
    try:
        # The bomb's warning is not needed: such a file is refused by the size its header claims, before it is decoded.
        with warnings.catch_warnings(), Image.open(path) as image:
            warnings.simplefilter("ignore")
            check_size(image, path)
            # A JPEG decodes itself at 1/2, 1/4 or 1/8 for a fraction of the work; twice the side keeps it sharp.
            image.draft(None, (2 * side, 2 * side))
            return square(image, side)
    except DataError:
        raise
    except FileNotFoundError as error:
        raise DataError(f"there is no image {path}: check the path") from error
    except FAILURES as error:
        raise DataError(f"{path} cannot be read as an image ({_reason(path, error)})") from error


def check_size(image: Image.Image, name: object) -> None:
    """Refuse what would fill the memory."""
    if image.width * image.height > MOST_PIXELS:
        raise DataError(
            f"{name} claims {image.width:,} × {image.height:,} pixels, more than {MOST_PIXELS:,}: it may be a "
            "decompression bomb"
        )


def square(image: Image.Image, side: int) -> Pixels:
    """The middle of an image as `read_square` gives it."""
    image = rgb(image)
    scale = side / min(image.size)
    width, height = (max(side, round(edge * scale)) for edge in image.size)
    left, top = (width - side) // 2, (height - side) // 2
    box = tuple(edge / scale for edge in (left, top, left + side, top + side))
    within = (box[0], box[1], min(box[2], image.width), min(box[3], image.height))  # rounding may go a hair beyond
    if image.size == (side, side):
        return np.asarray(image)
    return np.asarray(image.resize((side, side), Image.Resampling.BILINEAR, box=within))


def rgb(image: Image.Image) -> Image.Image:
    """Upright, 8 bits, three channels; what is transparent is black."""
    image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I;16"):
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.mode in ("I", "F"):
        image = Image.fromarray(_stretched(np.asarray(image)))
    if image.mode == "RGB":
        return image
    if image.has_transparency_data:
        image = Image.alpha_composite(Image.new("RGBA", image.size, "black"), image.convert("RGBA"))
    return image.convert("RGB")


def _stretched(pixels: NDArray[Any]) -> Pixels:
    """Brightness of no agreed range to 0…255: 16 bits if the values are such, else from the least to the greatest."""
    values = pixels.astype(np.float64)
    if not np.isfinite(values).all():
        raise ValueError("it holds pixels that are no numbers")
    low, high = float(values.min()), float(values.max())
    if low >= 0 and 255 < high <= 65535:
        low, high = 0.0, 65535.0
    elif low >= 0 and high <= 255:
        low, high = 0.0, 255.0
    return ((values - low) * (255 / max(high - low, 1e-12))).round().astype(np.uint8)


def _reason(path: Path, error: BaseException) -> str:
    if path.is_file() and path.stat().st_size == 0:
        return "it is empty"
    if isinstance(error, UnidentifiedImageError):
        return "its content is of no known kind of image"
    return str(error) or type(error).__name__
