"""Writers that are killed and readers that look on: nothing acknowledged is lost, nothing is seen half."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path

import numpy as np
import pytest
from search.gallery import embeddings
from search.writing import (
    GENERATION,
    OF_A_BATCH,
    STATES,
    Looks,
    add_until_killed,
    batch,
    empty_store,
    generation,
    look_on,
)

from hedged.search import FaissIndex, SqliteStore, Where
from hedged.search.engines._index_file import file_of

KILLS = 20


@pytest.fixture(scope="module")
def context() -> ForkServerContext:
    """Processes that start in a moment: what they need is imported once, in the process that they are copies of."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["faiss", "hedged.match._closed_form.loops.gaussians", "hedged.search.engines._faiss"]
    )
    return context


def kill_while_adding(context: ForkServerContext, path: Path, first: int, after: float) -> int:
    """Let another process add batches from `first` on, kill it, and return how many it had acknowledged."""
    told, tell = context.Pipe(duplex=False)
    writer = context.Process(target=add_until_killed, args=(path, first, tell))
    writer.start()
    tell.close()
    assert told.poll(60), "the writer did not start"
    acknowledged = [told.recv()]
    time.sleep(after)
    assert writer.pid is not None
    os.kill(writer.pid, signal.SIGKILL)
    writer.join()
    acknowledged += drained(told)
    assert acknowledged == list(range(first, first + len(acknowledged)))
    return len(acknowledged)


def drained(told: Connection) -> list[int]:
    messages = []
    try:
        while told.poll():
            messages.append(told.recv())
    except (EOFError, OSError):
        pass  # the writer is dead, and this is all it said
    told.close()
    return messages


def check_batches(store: SqliteStore, acknowledged: int) -> int:
    """All batches that were acknowledged are there, and perhaps one more; each of them whole. How many there are."""
    there = store.count() // OF_A_BATCH
    assert store.count() == there * OF_A_BATCH
    assert acknowledged <= there <= acknowledged + 1
    stored = np.concatenate([b.packed for b in store.batches()])
    assert (stored == np.concatenate([batch(number).packed() for number in range(there)])).all()
    for number in (0, there - 1):
        assert store.count([Where("batch", str(number)), Where("label", f"batch {number}")]) == OF_A_BATCH
    return there


def test_a_writer_killed_twenty_times_loses_nothing(context: ForkServerContext, tmp_path: Path) -> None:
    path, probes, there = tmp_path / "a.db", embeddings("gaussian", 3, seed=1), 0
    empty_store(path)
    moments = np.random.default_rng(0).uniform(0, 0.03, KILLS)
    with SqliteStore(path) as onlooker:
        index = FaissIndex(onlooker)  # lives through all of it, and is updated
        for after in moments:
            acknowledged = there + kill_while_adding(context, path, there, after)
            with SqliteStore(path) as store:
                there = check_batches(store, acknowledged)
                file_of(path).unlink(missing_ok=True)
                assert index.search(probes, 10) == FaissIndex(store).search(probes, 10)
        onlooker.verify()
        assert len(index) == there * OF_A_BATCH >= KILLS * OF_A_BATCH


def test_two_readers_see_no_torn_state_while_it_is_written(context: ForkServerContext, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    empty_store(path)
    with SqliteStore(path) as store:
        store.add(generation(0))
        pipes = [context.Pipe(duplex=False) for _ in range(2)]
        readers = [context.Process(target=look_on, args=(path, tell)) for _, tell in pipes]
        for reader in readers:
            reader.start()
        number = 0
        while any(reader.is_alive() for reader in readers):
            number += 1
            store.upsert(generation(number))
        seen: list[Looks] = [told.recv() for told, _ in pipes]
        assert store.count() == GENERATION
    for looks in seen:
        assert looks.torn == []
        assert looks.number >= looks.states == STATES
