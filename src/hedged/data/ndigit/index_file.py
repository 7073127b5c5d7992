"""The index files of google/n-digit-mnist: which digits make up the images of its four standard sets.

A file holds `image_ids` (classes, samples, N), the `chosen_numbers` (classes,) and `sample_per_number`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hedged._files import make_folder, write_atomically
from hedged.data.arrays import read_npz, write_npz
from hedged.data.ndigit.dataset import NDigit
from hedged.data.ndigit.mnist import Digits
from hedged.errors import DataError

Array = NDArray[Any]

ARRAY_NAMES = ("image_ids", "chosen_numbers", "sample_per_number")


def read_index(path: str | Path, digits: Digits) -> NDigit:
    """The images that an index file names, in its order.

    Args:
        path: the file.
        digits: the part of MNIST, training or test, whose images it counts through.
    """
    try:
        arrays = read_npz(Path(path), ARRAY_NAMES)
        missing = [name for name in ARRAY_NAMES if name not in arrays]
        if missing:
            raise DataError(f"it has no array {missing[0]}")
        ids, numbers, samples = (arrays[name] for name in ARRAY_NAMES)
        return _checked_index(ids, numbers, samples, digits)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is no index file of n-digit-mnist for these digits: {error}") from error


def _checked_index(ids: Array, numbers: Array, samples: Array, digits: Digits) -> NDigit:
    for name, array in zip(ARRAY_NAMES, (ids, numbers, samples), strict=True):
        if array.dtype.kind not in "iu":
            raise DataError(f"{name} must be whole numbers, got {array.dtype}")
    if ids.ndim != 3 or samples.size != 1 or ids.shape[:2] != (*numbers.shape, samples.item()):
        raise DataError(
            f"image_ids must be (classes, samples, N), got {ids.shape} for chosen_numbers {numbers.shape} and "
            f"sample_per_number {samples}"
        )
    images = NDigit(digits, torch.from_numpy(ids.astype(np.int64)).flatten(0, 1))
    named = torch.from_numpy(numbers.astype(np.int64)).repeat_interleave(ids.shape[1])
    if len(differ := (images.labels != named).nonzero()):
        first = int(differ[0])
        raise DataError(
            f"image {first} should read {named[first]} but its digits are {images.labels[first]}; "
            "were these digits the training part and the file for the test part, or the other way round?"
        )
    return images


def write_index(path: str | Path, images: NDigit) -> None:
    """Write the index file of a set whose classes are of one size.

    Args:
        path: an .npz file.
        images: the set.
    """
    path = Path(path)
    if path.suffix != ".npz":
        raise DataError(f"an index file ends in .npz, got {path}: rename it")
    samples = len(images) // images.n_classes
    labels = images.labels[: samples * images.n_classes].view(images.n_classes, samples)
    if labels.numel() != len(images) or (labels != labels[:, :1]).any():
        raise DataError(
            "the classes of this part differ in size, which an index file cannot hold: write its parts on their own, "
            "such as --part seen and --part unseen"
        )
    ids = images.image_ids.view(images.n_classes, samples, -1).numpy()

    arrays = {"image_ids": ids, "chosen_numbers": labels[:, 0].numpy(), "sample_per_number": np.array(samples)}
    make_folder(path.parent)
    write_atomically(path, lambda part: write_npz(part, arrays, compress=True))
