"""What a `Model` takes, as batches for its network: arrays of any kind, and images where Pillow is there."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hedged.errors import DataError, MissingDependencyError, ShapeError, ValueRangeError
from hedged.runtime._description import Input

if TYPE_CHECKING:
    from PIL.Image import Image

Batch = NDArray[np.float32]
UNNAMED = Path("an image given as bytes")  # what messages call it


def batches(inputs: Any, wanted: Input, size: int) -> Iterator[Batch]:
    """Batches `(b, *shape)` of float32.

    Args:
        inputs: one array of inputs, or an iterable of arrays and images, or one of them.
        wanted: what the network takes.
        size: inputs of a batch.
    """
    if size < 1:
        raise ValueRangeError(f"a batch has at least one input, got batch_size={size}")
    if wanted.kind != "image":
        whole = _vectors(inputs, wanted.shape)
        yield from (whole[start : start + size] for start in range(0, len(whole), size))
        return
    if isinstance(inputs, np.ndarray):
        stack = _stack(inputs, wanted.shape)
        yield from (_floats(stack[start : start + size]) for start in range(0, len(stack), size))
        return
    is_one = isinstance(inputs, str | Path | bytes | bytearray) or not isinstance(inputs, Iterable)
    given = iter([inputs] if is_one else inputs)
    while some := list(islice(given, size)):
        yield np.concatenate([_image(one, wanted) for one in some])


def _vectors(inputs: Any, shape: tuple[int, ...]) -> Batch:
    rows = np.asarray(inputs)
    rows = rows[None] if rows.shape == shape else rows
    if rows.shape[1:] != shape or rows.dtype.kind not in "fiub":
        raise ShapeError(
            f"this model takes numbers of shape (n, {', '.join(map(str, shape))}), got {rows.dtype} of shape "
            f"{rows.shape}"
        )
    rows = rows.astype(np.float32)
    if not np.isfinite(rows).all():
        raise ValueRangeError("this input has numbers that are not finite: leave such rows out")
    return rows


def _image(image: Any, wanted: Input) -> Batch:
    """One image, or a stack of them in an array, as `(b, C, H, W)`."""
    if isinstance(image, np.ndarray):
        return _floats(_stack(image, wanted.shape))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Pillow finds odd in a file that it can read
        return _floats(_pixels(image, wanted))


def _pixels(image: Any, wanted: Input) -> NDArray[Any]:
    try:
        from PIL import Image

        from hedged import _decode
    except ImportError as error:
        raise MissingDependencyError(
            f"reading images needs Pillow ({error}): pip install pillow, or give arrays {wanted.shape} of uint8"
        ) from error
    if isinstance(image, str | Path | bytes | bytearray):
        path, content = (UNNAMED, bytes(image)) if isinstance(image, bytes | bytearray) else (Path(image), None)
        if wanted.resize is not None:
            return _middle(_decode.read_middle(path, wanted.resize, content), wanted)
        content = _decode.file_bytes(path) if content is None else content
        size = _decode.size_of(path, content)
        if set(size) != set(wanted.shape[1:]):  # either way, for the camera may have been turned
            raise _wrong_shape(str(path), size[::-1], wanted.shape)
        with _decode.opened(path, content) as opened:
            return _stack(_upright(opened, wanted), wanted.shape, str(path))
    if isinstance(image, Image.Image):
        if wanted.resize is not None:
            return _middle(_decode.middle(image, wanted.resize), wanted)
        return _stack(_upright(image, wanted), wanted.shape)
    raise DataError(f"an image is a path, the bytes of a file, a PIL image or an array, got {type(image).__name__}")


def _upright(image: Image, wanted: Input) -> NDArray[np.uint8]:
    from hedged._decode import upright

    return np.array(upright(image, "L" if wanted.colour == "grey" else "RGB"))


def _middle(square: NDArray[np.uint8], wanted: Input) -> NDArray[np.uint8]:
    """The middle `(1, 3, H, W)` of a square `(S, S, 3)`."""
    _, height, width = wanted.shape
    top, left = ((len(square) - side) // 2 for side in (height, width))
    return square[top : top + height, left : left + width].transpose(2, 0, 1)[None]


def _stack(images: NDArray[Any], shape: tuple[int, ...], name: str = "this image") -> NDArray[Any]:
    """`(N, C, H, W)` in the dtype given."""
    channels, height, width = shape
    stack = images
    if stack.shape[-3:] != shape:
        if stack.shape[-3:] == (height, width, channels):
            stack = np.moveaxis(stack, -1, -3)
        elif channels == 1 and stack.ndim <= 3 and stack.shape[-2:] == (height, width):
            stack = stack[..., None, :, :]
    if stack.shape[-3:] != shape or stack.ndim > 4:
        raise _wrong_shape(name, images.shape, shape)
    return stack.reshape(-1, *shape)


def _wrong_shape(name: str, given: tuple[int, ...], shape: tuple[int, ...]) -> ShapeError:
    channels, height, width = shape
    return ShapeError(
        f"{name} is of shape {given}, this model takes {height}×{width} pixels and {channels} channel(s): resize it "
        f"first, for example image.resize(({width}, {height}))"
    )


def _floats(stack: NDArray[Any]) -> Batch:
    """Pixels in [0, 1]."""
    if stack.dtype == np.uint8:
        return stack.astype(np.float32) / np.float32(255)
    if stack.dtype.kind != "f":
        raise ValueRangeError(f"pixels are uint8 in 0…255 or floats in [0, 1], got {stack.dtype}")
    if stack.size and not (stack.min() >= 0 and stack.max() <= 1):  # nor is what is not a number
        raise ValueRangeError(
            f"pixels given as floats lie in [0, 1], got {stack.min():g} to {stack.max():g}: divide by 255, "
            "or pass uint8"
        )
    return stack.astype(np.float32)
