"""A model of vectors behind HTTP: every call takes JSON, and says what the library says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from serve.running import Place, Running, call, running, vectors_of

from hedged import Embedder
from hedged.search import Gallery

RANDOM = np.random.default_rng(3)


@pytest.fixture(scope="module")
def service(vectors: Place, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(vectors, tmp_path_factory.mktemp("here")) as found:
        yield found


def test_each_call_says_what_the_library_says(service: Running) -> None:
    embedder = Embedder.load(service.place.run)
    x = vectors_of(np.array([3, 3, 90]), RANDOM)
    z = embedder.embed(x)
    with service.client() as client, Gallery.open(service.place.store, embedder) as gallery:
        assert client.model()["input"] == {"kind": "vectors", "length": 12}
        assert client.calibration() is None
        said = client.embed(x)
        assert [one["mean"] for one in said] == [pytest.approx(mean.tolist(), abs=1e-5) for mean in z.mean]
        assert all(one["novelty"] is not None for one in said)
        match = client.match(x[0], x[1])
        assert match["probability"] == pytest.approx(embedder.match(z[:1], z[1:2]).item(), abs=1e-5)
        assert match["decision"] == "same"
        who = gallery.identify(x)
        assert [one["label"] for one in client.identify(x)] == [one.label for one in who] == ["p3", "p3", None]
        hits = client.search(x, k=2)
        assert [hit["id"] for hit in hits[0]["hits"]] == [hit.id for hit in gallery.search(x, k=2)[0]]
        said_of = client.enrol(x[2:], ["p90"], metadata=[{"year": 2026}])
        assert said_of["warnings"] == []
        assert client.identify(x[2:])[0]["best"][0]["label"] == "p90"
        assert client.search(x[2:], 1, {"year": "2026"})[0]["hits"][0]["id"] == said_of["ids"][0]
        assert client.remove(said_of["ids"]) == 1


BAD: list[tuple[object, int, str]] = [
    ({"vectors": []}, 422, "1 to 256 inputs, got 0"),
    ({"vectors": [[1.0] * 11]}, 422, "12"),
    ({"vectors": [[1.0] * 12, [1.0]]}, 422, "one length"),
    ({"vectors": [1.0]}, 422, "lists of numbers"),
    ({"vectors": [["1"] * 12]}, 422, "numbers only"),
    ({"vectors": [[True] * 12]}, 422, "numbers only"),
    ({"vectors": [[10**400] * 12]}, 400, "digits"),
    ({"vectors": [[1e300] * 12]}, 422, "not finite"),
    ({"vectors": [[1.0] * 12] * 257}, 422, "1 to 256 inputs, got 257"),
    ({"vectors": [[1.0] * 12], "labels": ["a"]}, 422, "unknown key 'labels'"),
    ({"images": []}, 422, "unknown key 'images'"),
    ([[1.0] * 12], 422, "JSON object"),
]


@pytest.mark.parametrize(("content", "status", "words"), BAD)
def test_bad_vectors_are_told(service: Running, content: object, status: int, words: str) -> None:
    body = json.dumps(content).encode()
    said = call(service, "POST", "/v1/embed", service.read, body, "application/json")
    assert (said.status, words in said.content["error"]) == (status, True), said


@pytest.mark.parametrize("name", ["NaN", "Infinity"])
def test_what_json_does_not_know_is_no_number(service: Running, name: str) -> None:
    body = f'{{"vectors": [[{", ".join([name] * 12)}]]}}'.encode()
    assert call(service, "POST", "/v1/embed", service.read, body, "application/json").status in (400, 422)


def test_columns_fit_the_vectors(service: Running) -> None:
    for columns, words in (
        ({"labels": ["a", "b"]}, "2 labels for 1 inputs"),
        ({"ids": "a"}, "ids are a list"),
        ({"labels": [3]}, "label"),
        ({"metadata": [{"audit_dismissed": []}]}, "service's own"),
        ({"metadata": [3]}, "metadata"),
    ):
        body = json.dumps({"vectors": [[1.0] * 12], **columns}).encode()
        said = call(service, "POST", "/v1/items", service.write, body, "application/json")
        assert said.status == 422
        assert words in said.content["error"]


def test_what_is_stored_stays_as_it_is_beside_what_is_refused(service: Running, tmp_path: Path) -> None:
    before = call(service, "GET", "/v1/items?limit=1000", service.read).content
    body = json.dumps({"vectors": [[1.0] * 12] * 2, "ids": ["new", "first-0"]}).encode()
    assert call(service, "POST", "/v1/items", service.write, body, "application/json").status == 409
    assert call(service, "GET", "/v1/items?limit=1000", service.read).content == before
