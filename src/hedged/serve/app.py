"""The service as an ASGI application: calls, page, errors, and their description."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from importlib.resources import files
from typing import Any

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException as AnyHTTPException
from starlette.routing import Match

from hedged.errors import HedgedError, MissingDependencyError, RunError, StoreError
from hedged.serve.bodies import FORM, JSON, is_of_vectors
from hedged.serve.calls import COLUMNS, TAKES, first_complaint, router
from hedged.serve.guard import BUG, Guard
from hedged.serve.places import Places
from hedged.serve.refusals import Refused, busy
from hedged.serve.service import Service
from hedged.serve.settings import Settings

LOGGER = logging.getLogger("hedged.serve")
PAGE = {
    name.name: name.read_bytes()
    for name in files("hedged.serve").joinpath("page").iterdir()
    if name.name.rpartition(".")[2] in ("html", "css", "js")
}
TYPES = {"html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}
DESCRIPTION = """Embeddings that know what they don't know, behind HTTP.

Every call under `/v1` and `/metrics` needs a key: `Authorization: Bearer KEY`. Keys have the role *read* or *write*;
who may write may read, too. Errors are JSON: `{"error": "what was given, what was expected, what to do"}`.
"""


def create_app(settings: Settings) -> Guard:
    """The service as an ASGI application.

    Args:
        settings: What is served.
    """
    service = Service.of(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.get_running_loop().run_in_executor(None, service.close)

    app = FastAPI(
        title="hedged",
        description=DESCRIPTION,
        version="1",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    _add_errors(app, service.places)
    _add_page(app)
    app.include_router(router)
    app.state.service = service
    app.openapi = partial(_described, app, service)  # type: ignore[method-assign]
    service.warm_up()
    return Guard(app, settings.limits, service.metrics)


def _add_errors(app: FastAPI, places: Places) -> None:
    """Every error as JSON with words."""
    words = {404: "there is no such call: /openapi.json lists them", 405: "this call takes another method"}

    def told(status: int, said: str, headers: Mapping[str, str] | None = None) -> Response:
        return JSONResponse({"error": said}, status, headers)

    async def refused(_: Request, error: Exception) -> Response:
        assert isinstance(error, Refused)
        return told(error.status, str(error), error.headers())

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, AnyHTTPException)
        said = error.detail if isinstance(error, HTTPException) else words.get(error.status_code, error.detail)
        headers = dict(error.headers or {})
        if error.status_code == 405 and (methods := _methods(request)):
            headers["Allow"] = ", ".join(methods)
        return told(error.status_code, str(said), headers)

    async def invalid(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return told(422, first_complaint(error.errors()))

    async def hedged(_: Request, error: Exception) -> Response:
        assert isinstance(error, HedgedError)
        if isinstance(error, StoreError | RunError | MissingDependencyError):
            LOGGER.warning("the store cannot be used: %s", error)
            return told(503, places.told(error), busy("").headers())
        return told(422, places.told(error))

    async def bug(_: Request, error: Exception) -> Response:
        return told(500, BUG)

    app.add_exception_handler(Refused, refused)
    app.add_exception_handler(AnyHTTPException, http)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HedgedError, hedged)
    app.add_exception_handler(Exception, bug)


def _methods(request: Request) -> list[str]:
    """What may be done where a request led to: calls with one path have a route each."""
    found = [one for one in router.routes if one.matches(request.scope)[0] is not Match.NONE]
    return sorted({method for one in found if isinstance(one, APIRoute) for method in one.methods or ()})


def _add_page(app: FastAPI) -> None:
    def file(name: str) -> Response:
        return Response(PAGE[name], media_type=TYPES[name.rpartition(".")[2]], headers={"cache-control": "no-cache"})

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return file("index.html")

    @app.get("/static/{name}", include_in_schema=False)
    async def static(name: str) -> Response:
        if name not in PAGE:
            raise HTTPException(404, "there is no such file")
        return file(name)

    @app.get("/favicon.ico", include_in_schema=False)
    async def favicon() -> Response:
        return Response(status_code=204)


def _described(app: FastAPI, service: Service) -> dict[str, Any]:
    """OpenAPI's description, with the kind of inputs that the model takes."""
    if app.openapi_schema is None:
        found = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        for path, calls in found["paths"].items():
            for method, call in calls.items():
                if TAKES in call:
                    columns = COLUMNS if (path, method) == ("/v1/items", "post") else ()
                    call["requestBody"] = _inputs_described(service, call.pop(TAKES), columns)
        app.openapi_schema = found
    return app.openapi_schema


def _inputs_described(service: Service, number: int, columns: tuple[str, ...]) -> dict[str, Any]:
    """The body of a request in OpenAPI."""
    most = {"minItems": number, "maxItems": 2 if number == 2 else service.settings.limits.batch}
    embedder = service.model.embedder
    per_input = {
        "labels": {"type": "array", "items": {"type": "string"}, "example": ["Rex"]},
        "ids": {"type": "array", "items": {"type": "string"}, "example": ["rex-4.jpg"]},
        "metadata": {"type": "array", "items": {"type": "object"}, "example": [{"year": 2026}]},
    }
    further = {name: per_input[name] for name in columns}
    if is_of_vectors(embedder):
        length = embedder.architecture.shape[0]
        vector = {"type": "array", "items": {"type": "number"}, "minItems": length, "maxItems": length}
        schema = {
            "type": "object",
            "required": ["vectors"],
            "additionalProperties": False,
            "properties": {"vectors": {"type": "array", "items": vector, **most}, **further},
        }
        example = {"vectors": [[round(0.1 * (i % 7), 1) for i in range(length)]] * number}
        return {"required": True, "content": {JSON: {"schema": schema, "example": example}}}
    image = {"type": "string", "format": "binary", "description": "an image file: JPEG, PNG, WebP, …"}
    schema = {
        "type": "object",
        "required": ["files"],
        "additionalProperties": False,
        "properties": {"files": {"type": "array", "items": image, **most}, **further},
    }
    return {"required": True, "content": {FORM: {"schema": schema}}}
