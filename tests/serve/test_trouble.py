"""A store that is locked, full, gone or another's, a model that was replaced: told, not crashed, then over."""

from __future__ import annotations

import resource
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from serve.running import Place, Running, call, running, vectors_of

from hedged import Embedder, Retrofit
from hedged.client import Client, ServiceError
from hedged.search import Gallery

RANDOM = np.random.default_rng(5)
X = vectors_of(np.array([70]), RANDOM)


@pytest.fixture(scope="module")
def service(vectors: Place, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(vectors, tmp_path_factory.mktemp("here")) as found:
        yield found


@pytest.fixture
def client(service: Running) -> Iterator[Client]:
    with service.client() as found:
        yield found


def test_a_store_that_another_writes_is_told_and_read_meanwhile(service: Running, client: Client) -> None:
    with closing(sqlite3.connect(service.place.store, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        begun = time.monotonic()
        with pytest.raises(ServiceError, match="is being written by another process") as refused:
            client.enrol(X, ids=["locked"])
        assert refused.value.status == 503
        assert time.monotonic() - begun < 15
        assert len(client.search(X, 3)[0]["hits"]) == 3
        other.execute("ROLLBACK")
    assert client.enrol(X, ids=["locked"])["ids"] == ["locked"]
    assert client.remove(["locked"]) == 1


def test_a_full_disk_is_told_and_what_was_stored_is_read(service: Running, client: Client) -> None:
    before = client.items(limit=1000)
    pid = service.process.pid
    free = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, free[1]))  # no file may grow: as if no block were left
    try:
        with pytest.raises(ServiceError, match=r"check the disk|free space") as refused:
            client.enrol(X, ids=["full"])
        assert refused.value.status == 503
        assert client.search(X, 1)[0]["hits"]
        assert client.items(limit=1000) == before
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, free)
    assert client.enrol(X, ids=["full"])["ids"] == ["full"]
    assert client.remove(["full"]) == 1
    assert service.process.poll() is None


@pytest.mark.heavy
def test_pictures_that_cannot_be_kept_are_told_and_the_item_is_stored(place: Place, tmp_path: Path) -> None:
    shutil.rmtree(place.pictures / ".hedged", ignore_errors=True)
    image = (place.pictures / "00-0.png").read_bytes()
    with running(place, tmp_path / "here") as service, service.client() as client:
        shutil.rmtree(place.pictures / ".hedged")
        (place.pictures / ".hedged").write_text("no folder")
        said = client.enrol([image], ["00"], ["new"])
        assert said["ids"] == ["new"]
        assert any("pictures could be kept" in one for one in said["warnings"])
        assert client.items(limit=1000)["items"][-1]["id"] == "new"


@pytest.mark.heavy
def test_a_model_that_was_replaced_is_told_and_the_old_one_serves(vectors: Place, tmp_path: Path) -> None:
    place = Place(tmp_path / "run", tmp_path / "vectors.db", tmp_path / "pictures")
    shutil.copytree(vectors.run, place.run)
    shutil.copy(vectors.store, place.store)
    with running(place, tmp_path / "here") as service, service.client() as client:
        assert call(service, "GET", "/health").content == {"status": "ok", "model": "current"}
        before = client.embed(X)
        y = np.repeat(np.arange(30), 5)
        Retrofit(seed=1).fit(vectors_of(y, np.random.default_rng(9)), y).save(place.run)
        assert call(service, "GET", "/health").content == {"status": "ok", "model": "replaced"}
        assert client.embed(X) == before
        assert client.search(X, 1)[0]["hits"]


@pytest.mark.heavy
def test_a_store_that_is_gone_or_of_another_model_is_told_until_it_is_back(vectors: Place, tmp_path: Path) -> None:
    place = Place(vectors.run, tmp_path / "vectors.db", tmp_path / "pictures")
    shutil.copy(vectors.store, place.store)
    with running(place, tmp_path / "here") as service, service.client() as client:
        assert client.search(X, 1)[0]["hits"]
        Path(place.store).unlink()
        for ask in (lambda: client.search(X), lambda: client.items(), lambda: client.enrol(X), lambda: client.audit()):
            for _ in range(2):
                with pytest.raises(ServiceError, match=r"was deleted|there is no store") as refused:
                    ask()
                assert refused.value.status == 503
        assert client.embed(X)
        Gallery.create(place.store, Embedder.load("hedged:ndigit-2d")).close()
        with pytest.raises(ServiceError, match="was built with the model"):
            client.search(X)
        Path(place.store).unlink()
        shutil.copy(vectors.store, place.store)
        assert client.search(X, 1)[0]["hits"]
        assert client.enrol(X, ids=["back"])["ids"] == ["back"]


@pytest.mark.heavy
def test_an_empty_store_is_served(tmp_path: Path, vectors: Place) -> None:
    place = Place(vectors.run, tmp_path / "empty.db", tmp_path / "pictures")
    Gallery.create(place.store, Embedder.load(place.run)).close()
    with running(place, tmp_path / "here") as service, service.client() as client:
        assert client.search(X)[0]["hits"] == []
        with pytest.raises(ServiceError, match="nobody to identify"):
            client.identify(X)
        assert client.audit()["items"] == client.items()["total"] == 0
        assert call(service, "GET", "/v1/map", service.read).content["ids"] == []
        client.enrol(X, ["first"])
        assert client.identify(X)[0]["best"][0]["label"] == "first"
