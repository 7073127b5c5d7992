"""The calls."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import ValidationError

from hedged.search import parse_where
from hedged.serve import answers, examples, tasks
from hedged.serve.bodies import JSON, Body, is_of_vectors, read_body, read_object
from hedged.serve.keys import Caller, Role
from hedged.serve.service import Service

REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": answers.Error, "description": "What was sent cannot be read"},
    401: {"model": answers.Error, "description": "No key, or an unknown one"},
    403: {"model": answers.Error, "description": "The role of the key does not allow this"},
    404: {"model": answers.Error, "description": "There is no such item or call"},
    409: {"model": answers.Error, "description": "It does not fit what the store holds now"},
    413: {"model": answers.Error, "description": "More than the limits allow"},
    415: {"model": answers.Error, "description": "Another content type is expected"},
    422: {"model": answers.Error, "description": "What was sent is not what the model or the call takes"},
    429: {"model": answers.Error, "description": "Too many requests of this key"},
    503: {"model": answers.Error, "description": "The store or the model is busy, or cannot be reached"},
}
INPUTS_REFUSALS = (400, 413, 415, 422)
COLUMNS = ("labels", "ids", "metadata")  # that may be given for each item that is enrolled
TAKES = "x-hedged-inputs"  # how many inputs a call takes at least, for `app`, which knows of what kind they are
router = APIRouter()
bearer = HTTPBearer(auto_error=False, description="A key, made by `hedged key`; the role decides what it may do.")


def _service(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


async def _reader(
    request: Request,
    service: Annotated[Service, Depends(_service)],
    given: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)],
) -> Caller:
    """Who asks, if the key is known."""
    caller = service.keys.caller(given.credentials) if given else None
    if caller is None:
        service.rates.take(f"nobody at {request.client.host if request.client else ''}")
        words = "this key is unknown" if given else "a key is needed: send the header `Authorization: Bearer KEY`"
        raise HTTPException(401, words, {"www-authenticate": "Bearer"})
    request.state.caller = caller
    service.rates.take(caller.name)
    return caller


Reader = Annotated[Caller, Depends(_reader)]
Serving = Annotated[Service, Depends(_service)]


async def _writer(caller: Reader) -> Caller:
    """Who asks, if the key allows to write."""
    if caller.role is not Role.WRITE:
        raise HTTPException(403, f"the key {caller.name!r} may read, not write: use one with the role write")
    return caller


Writer = Annotated[Caller, Depends(_writer)]


async def _images(request: Request, service: Serving, _: Reader) -> Body:
    """The inputs of a request by who may read."""
    return await read_body(request, service.model.embedder, service.settings.limits)


async def _new_items(request: Request, service: Serving, _: Writer) -> Body:
    """The inputs of a request by who may write, with labels, ids and metadata."""
    return await read_body(request, service.model.embedder, service.settings.limits, COLUMNS)


Inputs = Annotated[Body, Depends(_images)]
NewItems = Annotated[Body, Depends(_new_items)]


async def _finding(request: Request, _: Writer) -> answers.Finding:
    """A finding of the audit, named by who may write."""
    try:
        return answers.Finding.model_validate(await read_object(request))
    except ValidationError as error:
        raise HTTPException(422, first_complaint(error.errors())) from error


Finding = Annotated[answers.Finding, Depends(_finding)]


def first_complaint(errors: Any) -> str:
    """The first of pydantic's complaints, in a line.

    Args:
        errors: All of them.
    """
    error = errors[0]
    return f"{'.'.join(str(part) for part in error['loc'])}: {error['msg']}"


def says(model: Any, *refusals: int, status: int = 200, inputs: int = 0) -> dict[str, Any]:
    """What OpenAPI is told of a call.

    Args:
        model: What it answers.
        refusals: Statuses of errors, beside those of every call.
        status: Of an answer.
        inputs: How many inputs it takes at least.
    """
    known = {code: REFUSALS[code] for code in (401, 403, 429, 503, *refusals)}
    extra = {"openapi_extra": {TAKES: inputs}} if inputs else {}
    responses = {status: examples.of(model), **known}
    return {"response_model": None, "status_code": status, "responses": responses, **extra}


@router.get("/health", response_model=None, responses={200: examples.of(answers.Health)}, tags=["service"])
async def health(service: Serving) -> Response:
    """Whether the service works; no key is needed."""
    return JSONResponse({"status": "ok", "model": "replaced" if service.model.is_replaced() else "current"})


@router.get(
    "/metrics",
    response_model=None,
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}, **{code: REFUSALS[code] for code in (401, 403, 429)}},
    tags=["service"],
)
async def metrics(service: Serving, _: Reader) -> Response:
    """Numbers for Prometheus."""
    return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/v1/model", **says(answers.Card), tags=["service"])
async def model(service: Serving, caller: Reader) -> Response:
    """The model card: what the model takes, how it decides, what the store holds."""
    embedder = service.model.embedder
    shape = list(embedder.architecture.shape)
    given = {"kind": "vectors", "length": shape[0]} if is_of_vectors(embedder) else {"kind": "images", "shape": shape}
    items, labels = await service.records.count()
    decider = service.model.decider
    return JSONResponse(
        {
            "name": service.model.name,
            "fingerprint": service.model.fingerprint,
            "input": given,
            "dim": embedder.architecture.dim,
            "match_model": embedder.match_model.describe(),
            "novelty": embedder.novelty_model is not None,
            "store": service.places.store,
            "items": items,
            "labels": labels,
            "pictures": service.settings.pictures is not None,
            "role": caller.role.value,
            "calibration": decider.describe() if decider else None,
        }
    )


@router.get("/v1/calibration", **says(answers.Calibration | None), tags=["service"])
async def calibration(service: Serving, _: Reader) -> Response:
    """The thresholds, and the pairs that they were found on; null if the model is not calibrated."""
    decider = service.model.decider
    if decider is None:
        return JSONResponse(None)
    described, scores = decider.describe(), decider.scores
    ends = {name: described[name] for name in ("reject_below", "accept_from")}
    return JSONResponse(
        {
            "base_rate": decider.base_rate,
            **ends,
            **{f"{name}_probability": float(decider.probability(score)) for name, score in ends.items()},
            "scores": scores,
            "calibrated": scores
            and {name: np.round(decider.probability(some), 6).tolist() for name, some in scores.items()},
        }
    )


@router.post("/v1/embed", **says(answers.Embeddings, *INPUTS_REFUSALS, inputs=1), tags=["inputs"])
async def embed(service: Serving, inputs: Inputs) -> Response:
    """The embedding of each input: means, variances, uncertainty and novelty."""
    return JSONResponse({"embeddings": await service.ask(tasks.Embed(), inputs)})


@router.post("/v1/match", **says(answers.Match, *INPUTS_REFUSALS, inputs=2), tags=["inputs"])
async def match(service: Serving, inputs: Inputs) -> Response:
    """Whether two inputs match, and why."""
    if len(inputs.inputs) != 2:
        raise HTTPException(422, f"a match is of two inputs, got {len(inputs.inputs)}: send both in one request")
    return JSONResponse((await service.ask(tasks.Match(), inputs))[0])


@router.post("/v1/search", **says(answers.Found, *INPUTS_REFUSALS, inputs=1), tags=["inputs"])
async def search(
    service: Serving,
    inputs: Inputs,
    k: Annotated[int, Query(ge=1, le=1000)] = 5,
    where: Annotated[
        list[str], Query(max_length=10, description="KEY=VALUE: only items with it. A key is one of the metadata.")
    ] = [],  # noqa: B006 - FastAPI reads it, nobody writes it
) -> Response:
    """The stored items that match each input best."""
    filters = tuple(parse_where(one) for one in where)
    return JSONResponse({"results": await service.ask(tasks.Search(k, filters), inputs)})


@router.post("/v1/identify", **says(answers.Identified, *INPUTS_REFUSALS, inputs=1), tags=["inputs"])
async def identify(
    service: Serving,
    inputs: Inputs,
    top: Annotated[int, Query(ge=1, le=100)] = 3,
    none: Annotated[float, Query(gt=0, lt=1, description="The share of inputs that show nobody in the store.")] = 0.1,
    coverage: Annotated[
        float | None, Query(gt=0, lt=1, description="Also list candidates that hold the right answer this often.")
    ] = None,
) -> Response:
    """Who each input shows, or nobody."""
    task = tasks.Identify(top, none, coverage)
    return JSONResponse({"results": await service.ask(task, inputs)})


@router.get("/v1/items", **says(answers.Items, 422), tags=["store"])
async def items(
    service: Serving,
    _: Reader,
    order: Literal["added", "uncertainty"] = "added",
    offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> Response:
    """Stored items, in the order they were added or the most uncertain first."""
    return JSONResponse(await service.records.items(order, offset, limit))


@router.post(
    "/v1/items",
    **says(answers.Enrolled, *INPUTS_REFUSALS, 409, status=201, inputs=1),
    tags=["store"],
)
async def enrol(service: Serving, items: NewItems) -> Response:
    """Store inputs with labels and ids, all or none. Once this answers, they are on disk."""
    kept = await service.ask(tasks.Keep(), items)
    return JSONResponse(await service.records.enrol(kept, items.inputs, items.columns), 201)


@router.delete("/v1/items", **says(answers.Removed, 422), tags=["store"])
async def remove(service: Serving, _: Writer, id: Annotated[list[str], Query(max_length=1000)]) -> Response:
    """Remove items; ids that no item has are passed over."""
    return JSONResponse({"removed": await service.records.remove([_text(one) for one in id])})


@router.get(
    "/v1/items/picture",
    response_model=None,
    response_class=Response,
    responses={
        200: {"content": {"image/jpeg": {}}, "description": "At most 224 pixels on a side"},
        204: {"description": "The item has no picture"},
        **{code: REFUSALS[code] for code in (401, 403, 404, 422, 429, 503)},
    },
    tags=["store"],
)
async def picture(service: Serving, _: Reader, id: str) -> Response:
    """A small picture of an item, if the service was given a folder of pictures."""
    try:
        found = await service.records.picture(_text(id))
    except LookupError as error:
        raise HTTPException(404, str(error.args[0])) from error
    return Response(status_code=204) if found is None else Response(found, media_type="image/jpeg")


@router.get("/v1/map", **says(answers.Map, 422), tags=["store"])
async def map_of_items(service: Serving, _: Reader, limit: Annotated[int, Query(ge=1, le=50_000)] = 20_000) -> Response:
    """The items in the plane that shows most of how they differ, with ellipses."""
    return JSONResponse(await service.records.map(limit))


@router.get("/v1/audit", **says(answers.Audit, 422), tags=["store"])
async def audit(service: Serving, _: Reader) -> Response:
    """What may be wrong: labels, near-duplicates, labels of two identities, poor items."""
    return JSONResponse(await service.audits.shown())


FINDING = {"schema": answers.Finding.model_json_schema(), "example": examples.FINDING}
NAMED = {"required": True, "content": {JSON: FINDING}}
ABOUT = says(answers.Done, 400, 409, 413, 415, 422) | {
    "openapi_extra": {"requestBody": {"required": True, "content": {JSON: FINDING}}}
}


@router.post("/v1/audit/accept", **ABOUT, tags=["store"])
async def accept(service: Serving, one: Finding) -> Response:
    """Do what a finding suggests: relabel, divide a label, or remove an item."""
    return JSONResponse({"done": await service.records.accept(one.kind, one.ids)})


@router.post("/v1/audit/dismiss", **ABOUT, tags=["store"])
async def dismiss(service: Serving, one: Finding) -> Response:
    """Never show a finding again."""
    return JSONResponse({"done": await service.records.dismiss(one.kind, one.ids)})


def _text(name: str) -> str:
    """An id as text that every store can look for."""
    if "\0" in name or any("\ud800" <= one <= "\udfff" for one in name):
        raise HTTPException(422, f"an id is text in UTF-8 without zeros, got {name!r}")
    return name
