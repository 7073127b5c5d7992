"""Test images as the report shows them."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from hedged.evaluation.evaluation import Condition, Evaluation
from hedged.evaluation.report.markup import data_uri, escape

SCALE = 2  # pixels of the page for a pixel of a test image


def images_of(evaluation: Evaluation, condition: Condition, items: NDArray[np.intp]) -> NDArray[np.uint8]:
    """The pixels of some test images, uint8 `(n, H, W)`, or `(n, H, W, 3)` where they have colours."""
    data, index = evaluation.data, torch.from_numpy(items)
    pixels = data.clean(index) if condition == "clean" else data.corrupt(evaluation.seed, index)
    images: NDArray[np.uint8] = pixels.numpy()
    return images if images.ndim == 3 else np.ascontiguousarray(images.transpose(0, 2, 3, 1))


def reading(evaluation: Evaluation, item: int) -> str:
    """What a test image truly shows: a number with its leading zeros, or an identity."""
    return evaluation.data.name(int(evaluation.labels[item]))


def thumbnail(pixels: NDArray[Any], alt: str) -> str:
    """A test image, uint8 `(H, W)` or `(H, W, 3)`, as an `<img>`."""
    buffer = BytesIO()
    kind, scale, format_ = ("photo", 1, "jpeg") if pixels.ndim == 3 else ("digits", SCALE, "png")
    Image.fromarray(pixels).save(buffer, format=format_)
    height, width = (scale * side for side in np.shape(pixels)[:2])
    source = data_uri(buffer.getvalue(), format_)
    return f'<img class="{kind}" src="{source}" width="{width}" height="{height}" alt="{escape(alt)}">'
