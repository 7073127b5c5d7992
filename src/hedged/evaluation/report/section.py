"""What a page is made of before it is HTML: sections, charts, pictures and notes, each as plain data for a template."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

DIGIT_SCALE = 2  # pixels of the page for a pixel of a test image of digits


@final
@dataclass(frozen=True)
class Section:
    """A part of the page.

    Args:
        template: The file in `templates/` that renders it.
        content: What that template shows, as `content`.
    """

    template: str
    content: Mapping[str, Any] = field(default_factory=dict)


@final
@dataclass(frozen=True)
class Note:
    """A line in the place of something that could not be shown.

    Args:
        message: Why not.
    """

    message: str


@final
@dataclass(frozen=True)
class Chart:
    """A chart as the page shows it.

    Args:
        title: Its heading.
        source: The image as an address that needs no file.
        width: CSS pixels.
        height: CSS pixels.
        alt: What it shows, for those who cannot see it.
    """

    title: str
    source: str
    width: int
    height: int
    alt: str


@final
@dataclass(frozen=True)
class Picture:
    """A test image as the page shows it.

    Args:
        kind: "digits" or "photo".
        source: The image as an address that needs no file.
        width: CSS pixels.
        height: CSS pixels.
        alt: What it shows, for those who cannot see it.
    """

    kind: str
    source: str
    width: int
    height: int
    alt: str


def picture(pixels: NDArray[np.uint8], alt: str) -> Picture:
    """A test image for the page: digits enlarged, photos as they are.

    Args:
        pixels: `(H, W)`, or `(H, W, 3)` where it has colours.
        alt: What it shows.
    """
    kind, scale, image_format = ("photo", 1, "jpeg") if pixels.ndim == 3 else ("digits", DIGIT_SCALE, "png")
    buffer = BytesIO()
    Image.fromarray(pixels).save(buffer, format=image_format)
    height, width = (scale * side for side in pixels.shape[:2])
    return Picture(kind, data_uri(buffer.getvalue(), image_format), width, height, alt)


def data_uri(content: bytes, image_format: str = "png") -> str:
    """An image as an address that needs no file.

    Args:
        content: The encoded image.
        image_format: As in its media type, such as "png".
    """
    return f"data:image/{image_format};base64," + b64encode(content).decode("ascii")
