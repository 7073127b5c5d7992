"""No answer says where the model and the store are; the log does."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from serve.running import Place, Running, call, running, vectors_of
from serve.test_calls import READS, WRITES

from hedged.errors import DataError, StoreError
from hedged.serve.places import Places

X = vectors_of(np.array([70, 70]), np.random.default_rng(5)).tolist()
QUERIES = {("GET", "/v1/items/picture"): "?id=first-0", ("DELETE", "/v1/items"): "?id=nobody"}
DEAD = "postgresql://me:secret@db.local:5433/animals#dogs"


def answers(service: Running) -> dict[tuple[str, str], tuple[int, str]]:
    """What each call answers: status, and all words with their headers."""
    found = {}
    for method, path in (("GET", "/health"), ("GET", "/openapi.json"), *READS, *WRITES):
        content = {"kind": "poor", "ids": ["nobody"]} if "audit" in path else {"vectors": X}
        body = (json.dumps(content).encode(), "application/json") if method == "POST" else (None, None)
        said = call(service, method, path + QUERIES.get((method, path), ""), service.write, *body)
        found[method, path] = said.status, str(said)
    return found


def test_no_answer_says_where_the_store_is(vectors: Place, tmp_path: Path) -> None:
    secret = tmp_path / "a-secret-folder"
    place = Place(secret / "run", secret / "vectors.db", secret / "pictures")
    shutil.copytree(vectors.run, place.run)
    shutil.copy(vectors.store, place.store)
    with running(place, tmp_path / "here") as service:
        present = answers(service)
        assert '"vectors.db"' in json.dumps(call(service, "GET", "/v1/model", service.read).content)
        Path(place.store).unlink()
        gone = answers(service)
        log = service.log.read_text()
    for told in (present, gone):
        assert [call for call, (_, words) in told.items() if secret.name in words or str(tmp_path) in words] == []
    asks = {call for call in (*READS, *WRITES) if call[1].startswith("/v1/")}
    asks -= {("GET", "/v1/calibration"), ("POST", "/v1/embed"), ("POST", "/v1/match")}
    assert {call for call, (status, _) in gone.items() if status == 503} == asks
    assert all("vectors.db" in words for status, words in gone.values() if status == 503)
    assert f"{place.store} was deleted" in log


def test_names_take_the_place_of_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    for location in ("data/dogs.db", "link/dogs.db", str(tmp_path / "data" / "dogs.db")):
        places = Places(Path("runs/dogs"), location, location)
        assert places.store == "dogs.db"
        for path in (location, tmp_path / "data" / "dogs.db"):
            said = places.told(StoreError(f"{path} cannot be read ({path}-wal): see {tmp_path / 'data'}"))
            assert said == "dogs.db cannot be read (dogs.db-wal): see …"
        assert places.told(DataError(f"{tmp_path}/runs/dogs/model.json is damaged")) == "dogs/model.json is damaged"


def test_what_a_server_says_is_for_the_log() -> None:
    places = Places(Path("runs/dogs"), DEAD, "postgresql://db.local/animals#dogs")
    said = places.told(StoreError('the server of … cannot be reached (connection to "10.0.0.7" failed for user "me")'))
    assert said.startswith("the store dogs cannot be used now")
    assert not [word for word in ("10.0.0.7", 'me"', "db.local", "secret") if word in said]
    said = places.told(DataError("no row of postgresql://db.local/animals#dogs has a label"))
    assert said == "no row of dogs has a label"
