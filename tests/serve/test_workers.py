"""What several workers do beside each other, and what a thread does for those who wait no longer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import numpy as np
import pytest
from serve.flawed import made_up, make_vectors
from serve.running import Place

from hedged.search import Gallery
from hedged.serve import room
from hedged.serve.audits import Audits
from hedged.serve.refusals import Refused
from hedged.serve.room import Model, Room, Worker
from hedged.serve.settings import Settings


def test_a_finding_that_another_worker_has_shown_is_found(tmp_path_factory: pytest.TempPathFactory) -> None:
    place = make_vectors(tmp_path_factory.mktemp("people"))
    model = Model(Settings(str(place.run), str(place.store)))
    first, second = (Audits(model, str(place.store), 60.0) for _ in range(2))

    async def ask() -> None:
        names = ["twin-1", "later"]
        assert names not in pairs(await first.shown())
        with Gallery.open(place.store, model.embedder) as gallery:
            gallery.add(made_up(np.arange(3), 3)[:1], labels=["Ann"], ids=[names[1]])
        found = await second.shown()
        shown = found["duplicates"][pairs(found).index(names)]
        assert await first.finding("duplicates", names) == shown
        with pytest.raises(Refused, match="no such finding"):
            await first.finding("duplicates", ["later", "nobody"])

    try:
        asyncio.run(ask())
    finally:
        first.close()
        second.close()


def test_a_reader_who_asks_for_many_settings_makes_nobody_learn_again(
    vectors: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Room(Model(Settings(str(vectors.run), str(vectors.store))), str(vectors.store))
    first = desk.identifier(0.1, 0.8)
    for name in ("learn", "hold_out"):
        monkeypatch.setattr(f"hedged.search.identify.{name}", None)
    rules = [desk.identifier(none, coverage).rule for none in (0.2, 0.3) for coverage in (0.5, 0.6, 0.8)]
    assert first.rule
    assert [rule and rule.coverage for rule in rules] == [0.5, 0.6, 0.8] * 2
    desk.close()


def pairs(audit: dict[str, Any]) -> list[list[str]]:
    """What names the duplicates that an audit found."""
    return [[one["first"], one["second"]] for one in audit["duplicates"]]


@pytest.fixture
def worker() -> Iterator[Worker]:
    found = Worker(cast(Any, None), "nowhere", "test")
    yield found
    found.close()


def test_who_waits_no_longer_is_not_read_for_but_written_for(worker: Worker) -> None:
    free, done = threading.Event(), list[str]()

    def block(_: Room) -> None:
        assert free.wait(60)

    def note(name: str, _: Room) -> None:
        done.append(name)

    async def ask() -> None:
        blocking = asyncio.ensure_future(worker.read(block))
        for name, job in (("read", worker.read), ("write", worker.write)):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(job(partial(note, name)), 0.05)
        free.set()
        await blocking
        assert await worker.read(lambda _: list(done)) == ["write"]

    asyncio.run(ask())


def test_more_than_may_wait_is_told(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MOST_WAITING", 3)
    free = threading.Event()

    async def ask() -> None:
        waiting = [asyncio.ensure_future(worker.read(lambda _: free.wait(60))) for _ in range(3)]
        await asyncio.sleep(0)
        for job in (worker.read, worker.write):
            with pytest.raises(Refused, match="3 requests wait for the store") as refused:
                await job(lambda _: None)
            assert refused.value.status == 503
        waiting[2].cancel()
        await asyncio.sleep(0)
        last = asyncio.ensure_future(worker.write(lambda _: "there is room again"))
        await asyncio.sleep(0)
        free.set()
        assert await last == "there is room again"
        assert await asyncio.gather(*waiting[:2]) == [True, True]

    asyncio.run(ask())
