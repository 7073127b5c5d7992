"""SIGKILL of a worker, or of the whole service, while clients enrol: what was acknowledged is there, once and whole.

HEDGED_KILLS says how many of each; 20 are for a quiet machine.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from serve.running import Place, Running, children, kill, requests_logged, running, vectors_of, wait_until_it_answers

from hedged import Embedder
from hedged.client import ServiceError
from hedged.search import open_store

KILLS = int(os.environ.get("HEDGED_KILLS", "2"))
CLIENTS = 4
LIMIT = 300.0  # seconds that a busy machine may take for anything
OF_ONE_REQUEST = 3


class Enrolling:
    """Clients that enrol without a pause, some items a request, and what they were promised."""

    def __init__(self, service: Running, name: str) -> None:
        self.service, self.asked, self.kept = service, list[list[str]](), list[str]()
        self._name, self._stop = name, threading.Event()
        self._threads = [threading.Thread(target=self._enrol, args=(number,)) for number in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    def _enrol(self, number: int) -> None:
        random, turn = np.random.default_rng(number), 0
        while not self._stop.is_set():
            ids = [f"{self._name}-{number}-{turn}-{i}" for i in range(OF_ONE_REQUEST)]
            turn += 1
            self.asked.append(ids)
            x = vectors_of(np.full(OF_ONE_REQUEST, number), random)
            with suppress(ServiceError), self.service.client() as client:
                assert client.enrol(x, [f"p{number}"] * OF_ONE_REQUEST, ids)["ids"] == ids
                self.kept += ids
            if self.service.process.poll() is not None:
                return

    def go_on(self, more: int) -> None:
        """Wait until so many more requests were answered."""
        until, begun = len(self.kept) + more * OF_ONE_REQUEST, time.monotonic()
        while len(self.kept) < until:
            assert time.monotonic() - begun < LIMIT, self.service.log.read_text()
            time.sleep(0.01)

    def end(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def check(self, place: Place) -> None:
        with open_store(place.store) as store:
            store.verify()
            assert store.header.fingerprint == Embedder.load(place.run).fingerprint()
            there = {row.id for batch in store.batches() for row in batch.described}
        assert set(self.kept) <= there
        for ids in self.asked:
            assert len(there.intersection(ids)) in (0, OF_ONE_REQUEST)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def place(request: pytest.FixtureRequest, vectors: Place, tmp_path: Path) -> Place:
    """A store of each kind with a few items."""
    from hedged.search import Gallery

    if request.param == "sqlite":
        location = str(tmp_path / "crash.db")
    else:
        location = f"{request.getfixturevalue('server')}#crash_{tmp_path.name.lower().replace('-', '_')[-20:]}"
    with Gallery.create(location, Embedder.load(vectors.run)) as gallery:
        y = np.repeat(np.arange(4), 3)
        gallery.add(
            vectors_of(y, np.random.default_rng(1)), [f"p{one}" for one in y], [f"first-{i}" for i in range(12)]
        )
    return Place(vectors.run, location, tmp_path / "pictures")


@pytest.mark.heavy
def test_a_killed_worker_loses_nothing_and_is_started_again(place: Place, tmp_path: Path) -> None:
    with running(place, tmp_path / "here", "--workers", "2") as service:
        random, enrolling = np.random.default_rng(0), Enrolling(service, "worker")
        try:
            for _ in range(KILLS):
                enrolling.go_on(int(random.integers(1, 20)))
                before = children(service.process)
                victim = before[int(random.integers(len(before)))]
                os.kill(victim, signal.SIGKILL)
                enrolling.go_on(5)  # the others go on
                begun = time.monotonic()
                while len(children(service.process)) < 2 or victim in children(service.process):
                    assert time.monotonic() - begun < LIMIT
                    time.sleep(0.1)
        finally:
            enrolling.end()
        with service.client() as client:  # whoever answers sees what all have written
            total = {client.items(limit=1)["total"] for _ in range(10)}
        assert len(total) == 1
        assert service.process.poll() is None
    enrolling.check(place)


@pytest.mark.heavy
def test_a_killed_service_loses_nothing_and_starts_again(place: Place, tmp_path: Path) -> None:
    if not place.store.startswith("/"):  # type: ignore[union-attr]
        pytest.skip("the server's own logs are tested with the killed worker")
    random = np.random.default_rng(0)
    for turn in range(KILLS):
        with running(place, tmp_path / f"{turn}", "--workers", str(1 + turn % 2)) as service:
            enrolling = Enrolling(service, f"service{turn}")
            try:
                enrolling.go_on(int(random.integers(1, 20)))
                left = children(service.process)
                kill(service.process)
            finally:
                enrolling.end()
            begun = time.monotonic()
            while any(Path(f"/proc/{pid}/cmdline").exists() and is_running(pid) for pid in left):
                assert time.monotonic() - begun < LIMIT, "a worker outlives the service"
                time.sleep(0.1)
        enrolling.check(place)


def is_running(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.mark.heavy
def test_a_stop_answers_what_runs(place: Place, tmp_path: Path) -> None:
    with running(place, tmp_path / "here", "--workers", "2") as service:
        enrolling = Enrolling(service, "stop")
        enrolling.go_on(10)
        answers, refused = list[int](), list[int]()
        x = vectors_of(np.arange(100).repeat(2), np.random.default_rng(2))

        def ask() -> None:
            try:
                with service.client() as client:
                    while True:
                        answers.append(len(client.search(x, 20)))
            except ServiceError as error:
                refused.append(error.status)

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        while len(answers) < 8:
            time.sleep(0.01)
        service.process.send_signal(signal.SIGTERM)
        for thread in threads:
            thread.join()
        enrolling.end()
        assert service.process.wait(LIMIT) == 0
        assert set(answers) == {200}
        assert refused == [0] * 8  # no connection: of what was begun, all is answered
        assert {one["status"] for one in requests_logged(service)} == {200, 201}
    enrolling.check(place)


@pytest.mark.heavy
def test_keys_and_model_are_read_again_without_a_pause(vectors: Place, tmp_path: Path) -> None:
    from hedged.serve.keys import remove_key

    with running(vectors, tmp_path / "here", "--workers", "2") as service:
        wait_until_it_answers(service)
        remove_key(tmp_path / "here" / "keys.json", "read")
        with service.client(service.read) as client:
            assert client.model()["role"] == "read"
        before = children(service.process)
        service.process.send_signal(signal.SIGHUP)
        begun = time.monotonic()
        while set(before) & set(children(service.process)) or len(children(service.process)) > 2:
            assert time.monotonic() - begun < LIMIT
            with service.client() as client:
                assert client.model()["role"] == "write"
            time.sleep(0.2)
        with service.client(service.read) as client, pytest.raises(ServiceError, match="unknown"):
            client.model()
