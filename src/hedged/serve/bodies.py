"""Inputs in a request: image files as a form, or vectors as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
from fastapi import HTTPException, Request
from numpy.typing import NDArray
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException

from hedged._decode import size_of
from hedged._reading import parse_json
from hedged.errors import DataError, ShapeError
from hedged.models import Embedder
from hedged.serve.settings import Limits

FORM = "multipart/form-data"
JSON = "application/json"
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
    body = await (_vectors(request, columns) if wanted == JSON else _images(request, limits, columns))
    if not 0 < len(body.inputs) <= limits.batch:
        raise HTTPException(
            413 if len(body.inputs) else 422,
            f"a request has 1 to {limits.batch:,} inputs, got {len(body.inputs):,}: send them in several requests",
        )
    for name, column in body.columns.items():
        if len(column) != len(body.inputs):
            raise ShapeError(f"got {len(column)} {name} for {len(body.inputs)} inputs: give one for each, or none")
    return body


async def read_object(request: Request) -> dict[str, Any]:
    """A JSON object.

    Args:
        request: The request.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON:
        raise HTTPException(415, f"this is sent as {JSON}, got {kind or 'no content type'!r}")
    try:
        content = parse_json((await request.body()).decode("utf-8"))
    except ValueError as error:
        raise HTTPException(400, f"the body is no JSON ({error})") from error
    if not isinstance(content, dict):
        raise HTTPException(422, f"the body is a JSON object, got a {type(content).__name__}")
    return content


async def _vectors(request: Request, columns: tuple[str, ...]) -> Body:
    content = await read_object(request)
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
        vectors = np.asarray(given, dtype=np.float64).reshape(len(given), -1).astype(np.float32)
    except OverflowError as error:
        raise DataError("a number is too large: vectors are numbers in single precision") from error
    found = {name: content[name] for name in columns if content.get(name) is not None}
    for name, column in found.items():
        if not isinstance(column, list):
            raise DataError(f"{name} are a list, with one for each vector, got a {type(column).__name__}")
    return Body(vectors, found)


async def _images(request: Request, limits: Limits, columns: tuple[str, ...]) -> Body:
    try:
        form = await request.form(max_files=limits.batch, max_fields=2 * limits.batch, max_part_size=MAX_FIELD)
    except MultiPartException as error:
        raise HTTPException(413 if error.message.startswith("Too many") else 400, error.message) from error
    async with _closing(form):
        unknown = sorted({name for name, _ in form.multi_items()} - {"files", *columns})
        if unknown:
            raise HTTPException(422, f"unknown field {unknown[0]!r}: this takes {', '.join(('files', *columns))}")
        images = []
        for number, given in enumerate(form.getlist("files")):
            if not isinstance(given, UploadFile):
                raise HTTPException(422, "files are uploaded files, got a plain field: give it a file name")
            content = await given.read()
            check_pixels(content, f"file {number + 1}", limits)
            images.append(content)
        found = {}
        for name in columns:
            values = form.getlist(name)
            if any(isinstance(one, UploadFile) for one in values):
                raise HTTPException(422, f"{name} are plain fields, got a file")
            if values:
                found[name] = [_column_value(name, str(one)) for one in values]
    return Body(images, found)


class _closing:
    """Lets go of the temporary files of a form."""

    def __init__(self, form: FormData) -> None:
        self._form = form

    async def __aenter__(self) -> None:
        pass

    async def __aexit__(self, *_: object) -> None:
        await self._form.close()


def _column_value(name: str, text: str) -> Any:
    """A label that is empty is none; metadata are JSON."""
    if name == "metadata":
        try:
            return json.loads(text) if text else {}
        except (ValueError, RecursionError) as error:
            raise HTTPException(422, f"metadata are JSON objects, got {text[:80]!r} ({error})") from error
    return text or None


def check_pixels(content: bytes, name: str, limits: Limits) -> None:
    """Refuse an image that claims too many pixels, before it is decoded.

    Args:
        content: The image file.
        name: What it is called in the message.
        limits: How many pixels it may have.
    """
    width, height = size_of(Path(name), content)
    if width * height > limits.pixels:
        raise HTTPException(413, f"{name} has {width:,} × {height:,} pixels, at most {limits.pixels:,} are taken")
