"""Inputs in a request: image files as a form, or vectors as JSON."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
from fastapi import HTTPException, Request
from numpy.typing import NDArray
from python_multipart.exceptions import MultipartParseError
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from hedged._decode import size_of
from hedged._reading import parse_json
from hedged.errors import DataError, ShapeError
from hedged.models import Embedder
from hedged.serve.refusals import Refused
from hedged.serve.settings import IMAGES, Limits

FORM = "multipart/form-data"
JSON = "application/json"
MAX_OBJECT = 64 * 1024  # bytes of a JSON object that names something
MAX_NUMBER = 32  # bytes of a number as JSON, with what is around it
MAX_COLUMN = 4 * 1024  # bytes of a label, an id or the metadata beside a vector, on average
MAX_FIELD = 64 * 1024  # bytes of a field of a form that is no file
Inputs = list[bytes] | NDArray[np.float32]


@final
@dataclass(frozen=True)
class Body:
    """What a request is about.

    Args:
        inputs: Image files, or vectors `(n, F)`.
        columns: Further fields, with a value for each input: labels, ids, metadata.
    """

    inputs: Inputs
    columns: dict[str, list[Any]] = field(default_factory=dict)


def is_of_vectors(embedder: Embedder) -> bool:
    """Whether the inputs of a model are vectors, not images.

    Args:
        embedder: The model.
    """
    return len(embedder.architecture.shape) == 1


async def read_body(request: Request, embedder: Embedder, limits: Limits, columns: tuple[str, ...] = ()) -> Body:
    """The inputs of a request, and what else it says about each.

    Args:
        request: The request.
        embedder: The model they are for.
        limits: What is refused.
        columns: The names of further fields.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    wanted = JSON if is_of_vectors(embedder) else FORM
    if kind != wanted:
        raise HTTPException(415, f"the inputs of this model are sent as {wanted}, got {kind or 'no content type'!r}")
    body = await (_vectors(request, embedder, limits, columns) if wanted == JSON else _images(request, limits, columns))
    if not 0 < len(body.inputs) <= limits.batch:
        raise HTTPException(
            422,
            f"a request has 1 to {limits.batch:,} inputs, got {len(body.inputs):,}: send them in several requests",
        )
    for name, column in body.columns.items():
        if len(column) != len(body.inputs):
            raise ShapeError(f"got {len(column)} {name} for {len(body.inputs)} inputs: give one for each, or none")
    return body


async def read_object(request: Request, most: int = MAX_OBJECT) -> dict[str, Any]:
    """A JSON object.

    Args:
        request: The request.
        most: Bytes that it may have: parsed, JSON takes many times its size.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON:
        raise HTTPException(415, f"this is sent as {JSON}, got {kind or 'no content type'!r}")
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > most:
            raise Refused(413, f"this takes JSON of at most {most:,} bytes: send fewer inputs at a time")
    try:
        content = await asyncio.to_thread(parse_json, body.decode("utf-8"))
    except ValueError as error:
        raise HTTPException(400, f"the body is no JSON ({error})") from error
    if not isinstance(content, dict):
        raise HTTPException(422, f"the body is a JSON object, got a {type(content).__name__}")
    return content


async def _vectors(request: Request, embedder: Embedder, limits: Limits, columns: tuple[str, ...]) -> Body:
    most = MAX_OBJECT + limits.batch * (embedder.architecture.shape[0] * MAX_NUMBER + len(columns) * MAX_COLUMN)
    content = await read_object(request, min(most, limits.body))
    unknown = sorted(content.keys() - {"vectors", *columns})
    if unknown:
        raise HTTPException(422, f"unknown key {unknown[0]!r}: this takes {', '.join(('vectors', *columns))}")
    given = content.get("vectors")
    if not isinstance(given, list) or not all(isinstance(one, list) for one in given):
        raise DataError('vectors are lists of numbers in a list, such as {"vectors": [[0.1, 0.2], [0.3, 0.4]]}')
    if not all(type(number) in (int, float) for one in given for number in one):
        raise DataError("vectors hold numbers only: there is something else among them")
    if len({len(one) for one in given}) > 1:
        raise ShapeError(f"vectors are of one length, got {len(given[0])} and others")
    try:
        wide = np.asarray(given, dtype=np.float64).reshape(len(given), len(given[0]) if given else 0)
    except OverflowError as error:
        raise DataError("a number is too large: vectors are numbers in single precision") from error
    vectors: NDArray[np.float32] = wide.astype(np.float32)
    found = {name: content[name] for name in columns if name in content}
    for name, column in found.items():
        if not isinstance(column, list):
            raise DataError(f"{name} are a list, with one for each vector, got a {type(column).__name__}")
    return Body(vectors, found)


async def _images(request: Request, limits: Limits, columns: tuple[str, ...]) -> Body:
    parser = MultiPartParser(
        request.headers,
        request.stream(),
        max_files=limits.batch,
        max_fields=max(1, len(columns)) * limits.batch,
        max_part_size=MAX_FIELD,
    )
    parser.spool_max_size = limits.body  # uploads are never on disk
    try:
        form = await parser.parse()
    except MultiPartException as error:
        raise HTTPException(422 if error.message.startswith("Too many") else 400, error.message) from error
    except MultipartParseError as error:  # older ones of starlette let it pass
        raise HTTPException(400, f"this is no multipart body: {error}") from error
    unknown = sorted({name for name, _ in form.multi_items()} - {"files", *columns})
    if unknown:
        raise HTTPException(422, f"unknown field {unknown[0]!r}: this takes {', '.join(('files', *columns))}")
    images = [await one.read() if isinstance(one, UploadFile) else b"" for one in form.getlist("files")]
    if any(isinstance(one, str) for one in form.getlist("files")):
        raise HTTPException(422, "files are uploaded files, got text: send them as curl -F files=@photo.jpg does")
    await asyncio.to_thread(check_pixels, images, limits)
    found = {}
    for name in columns:
        values = form.getlist(name)
        if any(isinstance(one, UploadFile) for one in values):
            raise HTTPException(422, f"{name} are plain fields, got a file")
        if values:
            found[name] = [_column_value(name, str(one)) for one in values]
    return Body(images, found)


def _column_value(name: str, text: str) -> Any:
    """A label that is empty is none; metadata are JSON."""
    if name == "metadata":
        try:
            return json.loads(text) if text else {}
        except (ValueError, RecursionError) as error:
            raise HTTPException(422, f"metadata are JSON objects, got {text[:80]!r} ({error})") from error
    return text or None


def check_pixels(images: Sequence[bytes], limits: Limits) -> None:
    """Refuse images that claim too many pixels, before they are decoded.

    Args:
        images: The image files.
        limits: How many pixels one may have, and all together.
    """
    left = IMAGES * limits.pixels
    for number, content in enumerate(images, 1):
        width, height = size_of(Path(f"file {number}"), content)
        if width * height > limits.pixels:
            words = f"file {number} has {width:,} × {height:,} pixels, at most {limits.pixels:,} are taken"
            raise Refused(413, f"{words}: make it smaller")
        left -= width * height
        if left < 0:
            raise Refused(413, f"these images have more than {IMAGES * limits.pixels:,} pixels: send fewer at a time")
