"""Test images as people see them: their pixels, and what they show."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from hedged.evaluation.evaluation import Condition, Evaluation


def images_of(evaluation: Evaluation, condition: Condition, items: NDArray[np.intp]) -> NDArray[np.uint8]:
    """The pixels of test images, uint8 `(n, H, W)`, or `(n, H, W, 3)` where they have colours.

    Args:
        evaluation: The test set.
        condition: Clean or corrupt.
        items: Which images, `(n,)`.
    """
    data, index = evaluation.data, torch.from_numpy(items)
    pixels = data.clean(index) if condition == "clean" else data.corrupt(evaluation.seed, index)
    images: NDArray[np.uint8] = pixels.numpy()
    return images if images.ndim == 3 else np.ascontiguousarray(images.transpose(0, 2, 3, 1))


def reading(evaluation: Evaluation, item: int) -> str:
    """What a test image truly shows: a number with its leading zeros, or an identity.

    Args:
        evaluation: The test set.
        item: Which image.
    """
    return evaluation.data.name(int(evaluation.labels[item]))
