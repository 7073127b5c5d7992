"""What an `Embedder` takes (paths, PIL images, arrays, tensors, files of vectors), as batches for its network."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from hedged._decode import Pixels, file_bytes, middle, opened, read_middle, size_of, upright
from hedged._parallel import cores
from hedged.data.features.files import is_feature_file, read_features
from hedged.errors import DataError, ShapeError, ValueRangeError

Shape = tuple[int, int, int]
UNNAMED = "an image given as bytes"  # what messages call it


@final
class ImageContent(NamedTuple):
    """What is in an image file that is no file of its own: a member of an archive, a value of a table.

    Args:
        name: what messages call it.
        content: its bytes.
    """

    name: str
    content: bytes


def image_batches(images: Any, shape: Shape, batch_size: int, resize: int | None = None) -> Iterator[Tensor]:
    """Batches `(b, C, H, W)` of float32 in [0, 1], for a network that takes images of `shape` = (C, H, W).

    `images` is one image or many: a path, the bytes of an image file, a PIL image, an array or tensor `(H, W)`,
    `(N, H, W)` or `(N, C, H, W)` (arrays also `(N, H, W, C)`), of uint8 in 0…255 or floats in [0, 1], or a list of any
    of these. With `resize`, files and PIL images may be of any size: the shorter edge is resized to `resize` pixels,
    then the middle is taken.

    Args:
        images: one image or many.
        shape: (C, H, W) that the network takes.
        batch_size: images of a batch.
        resize: pixels of the shorter edge; none: sizes must fit.

    >>> [tuple(batch.shape) for batch in image_batches(np.zeros((5, 28, 56), np.uint8), (1, 28, 56), batch_size=2)]
    [(2, 1, 28, 56), (2, 1, 28, 56), (1, 1, 28, 56)]
    """
    if batch_size < 1:
        raise ValueRangeError(f"batch_size must be at least 1, got batch_size={batch_size}")
    if isinstance(images, np.ndarray | Tensor):
        whole = _as_stack(images, shape)
        for start in range(0, len(whole), batch_size):
            yield _as_floats(whole[start : start + batch_size])
        return
    single = isinstance(images, str | Path | bytes | bytearray | Image.Image) or not isinstance(images, Iterable)
    given = iter([images] if single else images)
    with ThreadPoolExecutor(cores(), thread_name_prefix="hedged-decode") as pool:
        while batch := list(islice(given, batch_size)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what Pillow finds odd in a file that it can read
                rows = list(pool.map(partial(_load, shape=shape, resize=resize), batch))
            yield torch.cat(rows)


def _load(image: Any, shape: Shape, resize: int | None) -> Tensor:
    """One image as `(1, C, H, W)` of float32."""
    if isinstance(image, bytes | bytearray):
        image = ImageContent(UNNAMED, bytes(image))
    if isinstance(image, str | Path | ImageContent):
        path, content = (Path(image.name), image.content) if isinstance(image, ImageContent) else (Path(image), None)
        if resize is not None:
            return _as_floats(_middle(read_middle(path, resize, content), shape))
        return _as_floats(_as_stack(_read_pixels(path, content, shape), shape, name=str(path)))
    if isinstance(image, Image.Image):
        if resize is not None:
            return _as_floats(_middle(middle(image, resize), shape))
        return _as_floats(_as_stack(_pixels(image, shape), shape))
    if isinstance(image, np.ndarray | Tensor):
        return _as_floats(_as_stack(image, shape))
    raise DataError(
        f"an image is a path, the bytes of a file, a PIL image, an array or a tensor, got {type(image).__name__}"
    )


def _read_pixels(path: Path, content: bytes | None, shape: Shape) -> Pixels:
    """The pixels of an image file, which is decoded only if its size is right."""
    content = file_bytes(path) if content is None else content
    size = size_of(path, content)
    if set(size) != set(shape[1:]):  # either way, for the camera may have been turned
        raise _wrong_shape(str(path), size[::-1], shape)
    with opened(path, content) as image:
        return _pixels(image, shape)


def _pixels(image: Image.Image, shape: Shape) -> Pixels:
    return np.array(upright(image, "L" if shape[0] == 1 else "RGB"))


def _middle(square: Pixels, shape: Shape) -> Tensor:
    """The middle `(1, 3, H, W)` of a square `(S, S, 3)`."""
    top, left = ((len(square) - side) // 2 for side in shape[1:])
    part = torch.from_numpy(square[top : top + shape[1], left : left + shape[2]])
    return part.permute(2, 0, 1).unsqueeze(0)


def _as_stack(images: np.ndarray[Any, Any] | Tensor, shape: Shape, name: str = "this image") -> Tensor:
    """`(N, C, H, W)` in the dtype given, or an error that tells the shapes apart."""
    channels, height, width = shape
    if isinstance(images, np.ndarray) and images.dtype.kind not in "buif":
        raise DataError(f"pixels are numbers, got an array of {images.dtype}: give images one by one, or np.stack them")
    stack = torch.from_numpy(np.require(images, requirements=["C", "W"])) if isinstance(images, np.ndarray) else images
    given = tuple(stack.shape)
    if given[-3:] != shape:
        if given[-3:] == (height, width, channels):
            stack = stack.movedim(-1, -3)
        elif channels == 1 and len(given) <= 3 and given[-2:] == (height, width):
            stack = stack.unsqueeze(-3)
    if tuple(stack.shape[-3:]) != shape or stack.ndim > 4:
        raise _wrong_shape(name, given, shape)
    return stack.reshape(-1, *shape)


def _wrong_shape(name: str, given: tuple[int, ...], shape: Shape) -> ShapeError:
    channels, height, width = shape
    return ShapeError(
        f"{name} is of shape {given}, this model takes {height}×{width} pixels and {channels} channel(s): "
        f"resize it first, for example image.resize(({width}, {height}))"
    )


def _as_floats(stack: Tensor) -> Tensor:
    if stack.dtype == torch.uint8:
        return stack.float().div_(255)
    if not stack.is_floating_point():
        raise ValueRangeError(f"pixels are uint8 in 0…255 or floats in [0, 1], got {stack.dtype}")
    if not torch.isfinite(stack).all() or stack.min() < 0 or stack.max() > 1:
        raise ValueRangeError(
            f"pixels given as floats lie in [0, 1], got {stack.min().item():g} to {stack.max().item():g}: "
            "divide by 255, or pass uint8"
        )
    return stack.float()


def vector_batches(inputs: Any, size: int, batch_size: int) -> Iterator[Tensor]:
    """Batches `(b, size)` of float32: of an array or tensor `(n, size)` or `(size,)`, a feature file, or a list of any.

    Args:
        inputs: the vectors.
        size: the length of a vector that the network takes.
        batch_size: vectors of a batch.

    >>> [tuple(batch.shape) for batch in vector_batches(np.zeros((5, 8)), size=8, batch_size=2)]
    [(2, 8), (2, 8), (1, 8)]
    """
    if batch_size < 1:
        raise ValueRangeError(f"batch_size must be at least 1, got batch_size={batch_size}")
    many = isinstance(inputs, list | tuple) and not all(isinstance(x, int | float) for x in inputs)
    for given in inputs if many else [inputs]:
        yield from torch.split(_vectors(given, size), batch_size)


def _as_tensor(given: Any) -> Tensor:
    try:
        rows = torch.as_tensor(given)
    except (TypeError, ValueError, RuntimeError) as error:  # of objects, of words, of lists of uneven lengths
        raise DataError(
            f"this model takes vectors, an array or a tensor of numbers, got {type(given).__name__} ({error})"
        ) from error
    if rows.is_complex():
        raise ValueRangeError("this model takes vectors of real numbers, got complex ones: give their parts")
    return rows


def _vectors(given: Any, size: int) -> Tensor:
    if isinstance(given, str | Path):
        if not is_feature_file(Path(given)):
            raise DataError(
                f"this model takes vectors, in .npy, .npz or .parquet, got {given}: embed it with your network first"
            )
        name, rows = str(given), torch.from_numpy(read_features(Path(given)).vectors)
    else:
        name, rows = "this input", _as_tensor(given)
    rows = rows.unsqueeze(0) if rows.ndim == 1 else rows
    if rows.ndim != 2 or rows.shape[1] != size:
        raise ShapeError(f"{name} is of shape {tuple(rows.shape)}, this model takes vectors (n, {size})")
    rows = rows.float()
    if not torch.isfinite(rows).all():
        raise ValueRangeError(f"{name} has numbers that are not finite: leave such rows out")
    return rows
