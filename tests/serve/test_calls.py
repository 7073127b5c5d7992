"""Every call says what the library says, to those who may ask, and no more."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import numpy as np
import pytest
from fastapi import FastAPI
from PIL import Image
from serve.running import PATIENCE, Place, Running, call, form, numbers, png, requests_logged, running

from hedged import Embedder
from hedged.client import Client, ServiceError
from hedged.decisions import load_decider
from hedged.match import match_logit
from hedged.search import Gallery
from hedged.serve import Settings, create_app

NOBODY = ("/health", "/openapi.json", "/", "/static/page.js", "/favicon.ico")
READS = (
    ("GET", "/metrics"),
    ("GET", "/v1/model"),
    ("GET", "/v1/calibration"),
    ("POST", "/v1/embed"),
    ("POST", "/v1/match"),
    ("POST", "/v1/search"),
    ("POST", "/v1/identify"),
    ("GET", "/v1/items"),
    ("GET", "/v1/items/picture"),
    ("GET", "/v1/map"),
    ("GET", "/v1/audit"),
)
WRITES = (
    ("POST", "/v1/items"),
    ("DELETE", "/v1/items"),
    ("POST", "/v1/audit/accept"),
    ("POST", "/v1/audit/dismiss"),
)
QUERIES = {("GET", "/v1/items/picture"): "?id=00-0.png", ("DELETE", "/v1/items"): "?id=nobody"}


@pytest.fixture
def client(service: Running) -> Iterator[Client]:
    with service.client() as found:
        yield found


@pytest.fixture
def photos(service: Running) -> list[Path]:
    return sorted(service.place.pictures.glob("*.png"))


def body_of(method: str, path: str) -> tuple[bytes | None, str | None]:
    """A body that the call takes."""
    if method != "POST":
        return None, None
    if "audit" in path:
        return json.dumps({"kind": "poor", "ids": ["nobody"]}).encode(), "application/json"
    images = [png(image) for image in numbers([7])[0]]
    return form(*images[: 2 if path.endswith("match") else 1])


def test_no_call_is_forgotten_here(service: Running) -> None:
    described = call(service, "GET", "/openapi.json").content["paths"]
    calls = {(method.upper(), path): one for path, methods in described.items() for method, one in methods.items()}
    assert set(calls) == {*READS, *WRITES, ("GET", "/health")}
    for name, one in calls.items():
        assert ("security" in one) == (name != ("GET", "/health")), name


def test_every_answer_in_json_has_an_example(service: Running) -> None:
    described = call(service, "GET", "/openapi.json").content["paths"]
    for path, methods in described.items():
        for method, one in methods.items():
            for status, answer in one["responses"].items():
                told = answer.get("content", {}).get("application/json")
                assert told is None or not status.startswith("2") or "example" in told, (path, method)


def test_what_is_not_described_needs_no_key_and_is_known(place: Place) -> None:
    inner = create_app(Settings(str(place.run), str(place.store))).app
    assert isinstance(inner, FastAPI)
    hidden = {route.path for route in inner.routes if hasattr(route, "path")} - {path for _, path in READS + WRITES}
    assert hidden - {"/health"} == {"/", "/static/{name}", "/favicon.ico", "/openapi.json"}
    inner.state.service.close()


@pytest.mark.parametrize("path", NOBODY)
def test_what_needs_no_key(service: Running, path: str) -> None:
    assert call(service, "GET", path).status in (200, 204)


@pytest.mark.parametrize(("method", "path"), READS + WRITES)
def test_each_call_does_what_the_role_of_a_key_allows(service: Running, method: str, path: str) -> None:
    target, (body, kind) = path + QUERIES.get((method, path), ""), body_of(method, path)
    for key in (None, "", "wrong", service.write[:-1], service.write + "x", service.write.swapcase()):
        refused = call(service, method, target, key, body, kind)
        assert refused.status == 401
        assert "key" in refused.content["error"]
        assert refused.headers["www-authenticate"] == "Bearer"
    by_reader = call(service, method, target, service.read, body, kind)
    if (method, path) in WRITES:
        assert by_reader.status == 403
        assert "may read, not write" in by_reader.content["error"]
    else:
        for _ in range(20):  # a first audit, of loops that are being compiled, may take longer than a request may
            if by_reader.status != 503:
                break
            by_reader = call(service, method, target, service.read, body, kind)
        assert by_reader.status == 200
    by_writer = call(service, method, target, service.write, body, kind)
    assert by_writer.status == (409 if "audit/" in path else 201 if (method, path) == ("POST", "/v1/items") else 200)
    if by_writer.status == 201:
        call(service, "DELETE", f"/v1/items?id={by_writer.content['ids'][0]}", service.write)


def test_a_match_is_that_of_the_library(client: Client, service: Running, photos: list[Path]) -> None:
    embedder = Embedder.load(service.place.run)
    decider = load_decider(service.place.run, embedder.fingerprint())
    assert decider
    z = embedder.embed(photos[:2])
    log_odds = match_logit(z[:1], z[1:], embedder.match_model).item()
    said = client.match(*photos[:2])
    assert said["log_odds"] == pytest.approx(log_odds, abs=1e-4)
    assert said["probability"] == pytest.approx(embedder.match(z[:1], z[1:]).item(), abs=1e-5)
    assert said["uncertainty"] == pytest.approx(embedder.uncertainty(z).tolist(), abs=1e-5)
    answer = decider.answer(log_odds)
    assert said["decision"] == answer.verdict.value
    assert said["calibrated"] == {"probability": pytest.approx(answer.probability, abs=1e-4), "base_rate": 0.5}
    assert [one["difference"] for one in said["dimensions"]] == pytest.approx(
        (z[0].mean - z[1].mean).tolist(), abs=1e-4
    )


def test_embeddings_searches_and_identities_are_those_of_the_library(
    client: Client, service: Running, photos: list[Path]
) -> None:
    embedder = Embedder.load(service.place.run)
    decider = load_decider(service.place.run, embedder.fingerprint())
    assert decider
    probes = [png(image) for image in numbers([3, 55], start=50)[0]]
    z = embedder.embed(probes)
    assert [one["mean"] for one in client.embed(probes)] == [pytest.approx(m.tolist(), abs=1e-5) for m in z.mean]
    with Gallery.open(service.place.store, embedder) as gallery:
        hits = gallery.search(z, k=4)
        who = gallery.identify(z, top=2, none_prior=0.3, calibrated=decider.calibrator.log_odds, coverage=0.8)
        by_label = gallery.search(z, k=4, where=[("label", "03")])  # type: ignore[list-item]
    assert [[hit["id"] for hit in one["hits"]] for one in client.search(probes, k=4)] == [
        [hit.id for hit in one] for one in hits
    ]
    filtered = client.search(probes, k=4, where={"label": "03"})
    assert [[hit["id"] for hit in one["hits"]] for one in filtered] == [[hit.id for hit in one] for one in by_label]
    said = client.identify(probes, top=2, none=0.3, coverage=0.8)
    for mine, theirs in zip(said, who, strict=True):
        assert mine["label"] == theirs.label
        assert mine["none_probability"] == pytest.approx(theirs.none_probability, abs=1e-5)
        assert [one["label"] for one in mine["best"]] == [one.label for one in theirs.best]
        assert all(item.startswith(one["label"]) for one in mine["best"] for item in one["items"])
        assert mine["candidates"] is not None
        assert theirs.candidates is not None
        assert mine["candidates"]["labels"] == list(theirs.candidates.labels)


def test_items_are_listed_by_age_and_by_uncertainty(client: Client, photos: list[Path]) -> None:
    assert client.model()["items"] == len(photos) == client.items(limit=1)["total"]
    assert [one["id"] for one in client.items(limit=5)["items"]] == [photo.name for photo in photos[:5]]
    etas = [one["uncertainty"] for one in client.items("uncertainty", limit=1000)["items"]]
    assert etas == sorted(etas, reverse=True)
    assert client.items("uncertainty", offset=3, limit=1)["items"][0]["uncertainty"] == etas[3]


def test_an_item_is_enrolled_found_and_removed(client: Client, service: Running) -> None:
    image = png(numbers([98])[0][0])
    said = client.enrol([image], ["Rex"], ["rex, ümlaut/../1"], [{"year": 2026}])
    assert said["ids"] == ["rex, ümlaut/../1"]
    hit = client.search([image], k=1)[0]["hits"][0]
    (told,) = client.embed([image])
    kept = {"year": 2026, "novelty": pytest.approx(told["novelty"], abs=1e-4)}
    assert (hit["id"], hit["label"], hit["metadata"]) == ("rex, ümlaut/../1", "Rex", kept)
    with pytest.raises(ServiceError, match="choose another id") as refused:
        client.enrol([image, image], ["Rex", "Rex"], ["new", "rex, ümlaut/../1"])
    assert refused.value.status == 409
    assert client.remove(["rex, ümlaut/../1", "nobody"]) == 1
    assert client.remove(["new"]) == 0
    assert client.search([image], k=1)[0]["hits"][0]["id"] != "rex, ümlaut/../1"


@pytest.mark.heavy
def test_a_wrong_label_is_told_at_enrolment_then_dismissed_and_accepted(place: Place, tmp_path: Path) -> None:
    image = (place.pictures / "00-0.png").read_bytes()
    with running(place, tmp_path / "here") as service, service.client() as client:
        said = client.enrol([image], ["11"], ["twin"])
        found = client.audit()
        kinds = [(kind, one) for kind in ("duplicates", "mislabelled", "divided", "poor") for one in found[kind]]
        assert "'twin': it is '11', and matches '00-0.png', which is '00'" in said["warnings"][0]
        assert any("twin" in json.dumps(one) for _, one in kinds)
        kind, one = kinds[0]
        names = [one["first"], one["second"]] if kind == "duplicates" else [one["label" if kind == "divided" else "id"]]
        assert "not be shown again" in client.dismiss(kind, names)  # type: ignore[arg-type]
        again = client.audit()
        assert again["dismissed"] == found["dismissed"] + 1
        assert one not in again[kind]
        with pytest.raises(ServiceError, match="look again"):
            client.dismiss(kind, names)  # type: ignore[arg-type]
        poor = again["poor"][0]["id"]
        assert client.accept("poor", [poor]) == f"{poor} was removed"
        assert poor not in [item["id"] for item in client.items(limit=1000)["items"]]
        shown = client.items(limit=1000)["items"]
        assert not [item for item in shown if "audit_dismissed" in item["metadata"]]


def test_the_map_shows_where_items_lie_and_how_sure_that_is(service: Running, photos: list[Path]) -> None:
    found = call(service, "GET", "/v1/map?limit=10", service.read).content
    assert found["total"] == len(photos)
    assert all(len(found[name]) == 10 for name in ("ids", "label", "x", "y", "major", "minor", "angle", "uncertainty"))
    assert found["explained"] == pytest.approx(1)  # of two dimensions
    z = Embedder.load(service.place.run).embed([service.place.pictures / name for name in found["ids"]])
    places = np.stack([found["x"], found["y"]], axis=1)
    apart = np.linalg.norm(places[:, None] - places[None], axis=-1)
    assert apart == pytest.approx(np.asarray((z.mean[:, None] - z.mean[None]).norm(dim=-1)), abs=1e-3)
    area = np.asarray(found["major"]) * np.asarray(found["minor"])
    assert area == pytest.approx(z.variance.prod(-1).sqrt().numpy(), rel=1e-3)


def test_pictures_are_of_items_and_from_one_folder(service: Running, tmp_path: Path) -> None:
    found = call(service, "GET", "/v1/items/picture?id=00-0.png", service.read)
    assert found.headers["content-type"] == "image/jpeg"
    assert found.content[:2] == b"\xff\xd8"
    assert call(service, "GET", "/v1/items/picture?id=nobody", service.read).status == 404
    secret = service.place.pictures.parent / "secret.png"
    Image.new("L", (56, 28)).save(secret)
    outside = service.place.pictures / "link.png"
    outside.symlink_to(secret)
    for name in ("../secret.png", str(secret), "link.png"):
        with service.client() as client:
            client.enrol([png(numbers([5])[0][0])], ids=[name])
            kept = list((service.place.pictures / ".hedged").glob("*.jpg"))
            assert kept
            for path in kept:
                path.unlink()  # what the service keeps of its own
            target = f"/v1/items/picture?id={name}"
            assert call(service, "GET", target, service.read).status == 204
            client.remove([name])
    for target in (
        "/static/../keys.json",
        "/static/%2e%2e%2fkeys.json",
        "/static//etc/passwd",
        "/..%2f..%2fetc/passwd",
    ):
        assert call(service, "GET", target, service.write).status == 404


def test_numbers_for_prometheus_and_logs_without_secrets(service: Running, photos: list[Path]) -> None:
    call(service, "POST", "/v1/embed?secret=query", service.read, *form(photos[0].read_bytes()))
    text = call(service, "GET", "/metrics", service.read).content.decode()
    assert 'hedged_requests_total{call="/v1/embed",status="200"}' in text
    assert "hedged_inputs_total" in text
    log = service.log.read_text()
    assert service.read not in log
    assert service.write not in log
    assert "secret" not in log
    assert b"PNG".decode() not in log
    for line in log.partition("serving on ")[2].splitlines()[1:]:
        assert {"time", "level", "event"} <= json.loads(line).keys()
    last = [one for one in requests_logged(service) if one["call"] == "/v1/embed"][-1]
    assert last["key"] == "read"
    assert last["status"] == 200


def test_what_the_library_says_is_a_line_of_the_log_too() -> None:
    program = (
        "from hedged._compiled import LOGGER; from hedged.serve.logs import start_log; start_log(); LOGGER.warning('a')"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stderr
    assert json.loads(told).items() >= {"level": "warning", "event": "a"}.items()


def test_what_pillow_warns_of_is_a_line_of_the_log_too(service: Running, photos: list[Path]) -> None:
    image = photos[0].read_bytes()
    chunk = b"acTL" + bytes(8)  # a film of no frames
    odd = image[:33] + struct.pack(">I", 8) + chunk + struct.pack(">I", zlib.crc32(chunk)) + image[33:]
    assert call(service, "POST", "/v1/embed", service.read, *form(odd)).status == 200
    lines = service.log.read_text().partition("serving on ")[2].splitlines()[1:]
    assert any("Invalid APNG" in json.loads(line)["event"] for line in lines)


def test_who_asks_is_who_connects(service: Running) -> None:
    assert client_logged(service, "203.0.113.9") == "127.0.0.1"


@pytest.mark.heavy
def test_a_proxy_that_is_believed_says_who_asks(place: Place, tmp_path: Path) -> None:
    with running(place, tmp_path / "here", "--proxy", "127.0.0.1") as service:
        assert client_logged(service, "198.51.100.7, 203.0.113.9") == "203.0.113.9"  # not the client's own word


def client_logged(service: Running, forwarded: str) -> str:
    """Who asks, as the log has it, where a header says who it is."""
    request = Request(f"{service.address}/favicon.ico", headers={"X-Forwarded-For": forwarded})

    def logged() -> list[dict[str, Any]]:
        return [one for one in requests_logged(service) if one["call"] == "/favicon.ico"]

    begun, before = time.monotonic(), len(logged())
    with urlopen(request, timeout=30):
        pass
    while len(found := logged()) == before:
        assert time.monotonic() - begun < PATIENCE
        time.sleep(0.05)
    return str(found[-1]["client"])


def test_headers_keep_the_page_to_itself(service: Running) -> None:
    headers = call(service, "GET", "/").headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert "server" not in headers


BAD: list[tuple[str, str, bytes, str, int, str]] = [
    ("POST", "/v1/embed", b"{}", "application/json", 415, "multipart/form-data"),
    ("POST", "/v1/embed", b"", "", 415, "no content type"),
    ("POST", "/v1/embed", b"--X--\r\n", "multipart/form-data; boundary=X", 422, "1 to 256 inputs, got 0"),
    ("POST", "/v1/embed", b"nonsense", "multipart/form-data; boundary=X", 400, "multipart"),
    ("POST", "/v1/embed", b"nonsense", "multipart/form-data", 400, "boundary"),
    ("POST", "/v1/embed", *form(b""), 422, "empty"),
    ("POST", "/v1/embed", *form(b"GIF89a"), 422, "file 1"),
    ("POST", "/v1/embed", *form(files="text"), 422, "uploaded files"),
    ("POST", "/v1/embed", *form(png(np.zeros((28, 56), np.uint8)), other="1"), 422, "unknown field 'other'"),
    ("POST", "/v1/embed", *form(png(np.zeros((9, 9), np.uint8))), 422, "28×56"),
    ("POST", "/v1/match", *form(png(np.zeros((28, 56), np.uint8))), 422, "two inputs, got 1"),
    ("POST", "/v1/embed", *form(*[png(np.zeros((28, 56), np.uint8))] * 257), 422, "Maximum number of files is 256"),
    ("POST", "/v1/search?k=0", *form(png(np.zeros((28, 56), np.uint8))), 422, "k"),
    ("POST", "/v1/search?where=breed", *form(png(np.zeros((28, 56), np.uint8))), 422, "key=value"),
    ("POST", "/v1/search?where=breed=a", *form(png(np.zeros((28, 56), np.uint8))), 422, "filter by one of"),
    ("POST", "/v1/identify?none=2", *form(png(np.zeros((28, 56), np.uint8))), 422, "none"),
    ("POST", "/v1/items", *form(png(np.zeros((28, 56), np.uint8)), labels=["a", "b"]), 422, "2 labels for 1 inputs"),
    ("POST", "/v1/items", *form(png(np.zeros((28, 56), np.uint8)), metadata="["), 422, "metadata"),
    ("POST", "/v1/items", *form(png(np.zeros((28, 56), np.uint8)), metadata="3"), 422, "metadata"),
    ("POST", "/v1/items", *form(png(np.zeros((28, 56), np.uint8)), ids="a" * 3000), 422, "bytes"),
    ("POST", "/v1/audit/accept", b"[" * 10_000, "application/json", 400, "JSON"),
    ("POST", "/v1/audit/accept", b"\xff", "application/json", 400, "JSON"),
    ("POST", "/v1/audit/accept", b"[]", "application/json", 422, "object"),
    ("POST", "/v1/audit/accept", b'{"kind": "other", "ids": ["a"]}', "application/json", 422, "kind"),
    ("GET", "/v1/items?limit=0", b"", "", 422, "limit"),
    ("GET", "/v1/items/picture?id=%00", b"", "", 422, "zeros"),
    ("GET", "/v1/nothing", b"", "", 404, "openapi"),
    ("PUT", "/v1/items", b"", "", 405, "method"),
]


@pytest.mark.parametrize(("method", "path", "body", "kind", "status", "words"), BAD)
def test_bad_requests_are_told_what_was_expected(
    service: Running, method: str, path: str, body: bytes, kind: str, status: int, words: str
) -> None:
    said = call(service, method, path, service.write, body or None, kind)
    assert said.status == status, said
    assert words in said.content["error"]
    assert status != 405 or said.headers["allow"] == "DELETE, GET, POST"
    assert service.process.poll() is None


def test_one_bad_image_among_requests_is_the_trouble_of_one(service: Running, photos: list[Path]) -> None:
    from concurrent.futures import ThreadPoolExecutor

    good, bad = form(photos[0].read_bytes()), form(photos[0].read_bytes()[:60])

    def ask(number: int) -> Any:
        return call(service, "POST", "/v1/embed", service.read, *(bad if number % 4 == 0 else good)).status

    with ThreadPoolExecutor(16) as threads:
        statuses = list(threads.map(ask, range(64)))
    assert statuses == [422 if number % 4 == 0 else 200 for number in range(64)]
