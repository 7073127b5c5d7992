"""From what people have (paths, PIL images, arrays, tensors) to what a network takes: `(N, C, H, W)` in [0, 1]."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from hedged.errors import DataError, ShapeError, ValueRangeError

Shape = tuple[int, int, int]


def image_batches(images: Any, shape: Shape, batch_size: int) -> Iterator[Tensor]:
    """Batches `(b, C, H, W)` of float32 in [0, 1], for a network that takes images of `shape` = (C, H, W).

    `images` is one image or many: a path, a PIL image, an array or tensor `(H, W)`, `(N, H, W)` or `(N, C, H, W)`
    (arrays also `(N, H, W, C)`), of uint8 in 0…255 or floats in [0, 1], or a list of any of these.

    >>> [tuple(batch.shape) for batch in image_batches(np.zeros((5, 28, 56), np.uint8), (1, 28, 56), batch_size=2)]
    [(2, 1, 28, 56), (2, 1, 28, 56), (1, 1, 28, 56)]
    """
    if batch_size < 1:
        raise ValueRangeError(f"a batch has at least one image, got batch_size={batch_size}")
    if isinstance(images, np.ndarray | Tensor):
        whole = _as_stack(images, shape)
        for start in range(0, len(whole), batch_size):
            yield _as_floats(whole[start : start + batch_size])
        return
    single = isinstance(images, str | Path | Image.Image) or not isinstance(images, Iterable)
    loaded = (_load(image, shape) for image in ([images] if single else images))
    while rows := list(islice(loaded, batch_size)):
        yield torch.cat(rows)


def _load(image: Any, shape: Shape) -> Tensor:
    """One image as `(1, C, H, W)` of float32."""
    if isinstance(image, str | Path):
        return _as_floats(_as_stack(_pixels(_open(Path(image)), shape), shape, name=str(image)))
    if isinstance(image, Image.Image):
        return _as_floats(_as_stack(_pixels(image, shape), shape))
    if isinstance(image, np.ndarray | Tensor):
        return _as_floats(_as_stack(image, shape))
    raise DataError(f"an image is a path, a PIL image, an array or a tensor, got {type(image).__name__}")


def _open(path: Path) -> Image.Image:
    try:
        with Image.open(path) as image:
            image.load()
            return image
    except FileNotFoundError as error:
        raise DataError(f"there is no image {path}: check the path") from error
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(f"{path} cannot be read as an image ({error}): convert it to PNG or JPEG") from error


def _pixels(image: Image.Image, shape: Shape) -> np.ndarray[Any, Any]:
    """Upright 8-bit pixels of the right number of channels; what is transparent is black."""
    image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I;16"):
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.mode in ("I", "F"):
        raise DataError(f"an image of mode {image.mode} has no agreed range of brightness: convert it to 8 or 16 bits")
    if image.has_transparency_data:
        image = Image.alpha_composite(Image.new("RGBA", image.size, "black"), image.convert("RGBA"))
    return np.array(image.convert("L" if shape[0] == 1 else "RGB"))


def _as_stack(images: np.ndarray[Any, Any] | Tensor, shape: Shape, name: str = "this image") -> Tensor:
    """`(N, C, H, W)` in the dtype given, or an error that tells the shapes apart."""
    channels, height, width = shape
    stack = torch.from_numpy(np.require(images, requirements=["C", "W"])) if isinstance(images, np.ndarray) else images
    given = tuple(stack.shape)
    if given[-3:] != shape:
        if given[-3:] == (height, width, channels):
            stack = stack.movedim(-1, -3)
        elif channels == 1 and len(given) <= 3 and given[-2:] == (height, width):
            stack = stack.unsqueeze(-3)
    if tuple(stack.shape[-3:]) != shape or stack.ndim > 4:
        raise ShapeError(
            f"{name} is of shape {given}, this model takes {height}×{width} pixels and {channels} channel(s): "
            f"resize it first, for example image.resize(({width}, {height}))"
        )
    return stack.reshape(-1, *shape)


def _as_floats(stack: Tensor) -> Tensor:
    if stack.dtype == torch.uint8:
        return stack.float() / 255
    if not stack.is_floating_point():
        raise ValueRangeError(f"pixels are uint8 in 0…255 or floats in [0, 1], got {stack.dtype}")
    if not torch.isfinite(stack).all() or stack.min() < 0 or stack.max() > 1:
        raise ValueRangeError(
            f"pixels given as floats lie in [0, 1], got {stack.min().item():g} to {stack.max().item():g}: "
            "divide by 255, or pass uint8"
        )
    return stack.float()
