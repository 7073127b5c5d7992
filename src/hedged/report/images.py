"""Test images as the report shows them."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from hedged.evaluation import Condition, Evaluation
from hedged.report.markup import escape, png_uri

SCALE = 2  # pixels of the page for a pixel of a test image


def images_of(evaluation: Evaluation, condition: Condition, items: NDArray[np.intp]) -> NDArray[np.uint8]:
    """The pixels of some test images, uint8 `(n, H, W)`."""
    data, index = evaluation.data, torch.from_numpy(items)
    pixels = data.clean(index) if condition == "clean" else data.corrupt(evaluation.seed, index)
    images: NDArray[np.uint8] = pixels.numpy()
    return images


def reading(evaluation: Evaluation, item: int) -> str:
    """The number that a test image truly reads, with its leading zeros."""
    return evaluation.data.name(int(evaluation.labels[item]))


def thumbnail(pixels: NDArray[Any], alt: str) -> str:
    """A test image, uint8 `(H, W)`, as an `<img>`."""
    buffer = BytesIO()
    Image.fromarray(pixels).save(buffer, format="png")
    height, width = (SCALE * side for side in np.shape(pixels))
    source = png_uri(buffer.getvalue())
    return f'<img class="digits" src="{source}" width="{width}" height="{height}" alt="{escape(alt)}">'
