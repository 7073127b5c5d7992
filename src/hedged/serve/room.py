"""What a thread of the service works with: the model, its calibration, and a store that it has opened for itself."""

from __future__ import annotations

import asyncio
import threading
from bisect import bisect_left
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar, final

import torch

from hedged.decisions import Decider, load_decider
from hedged.distributions import Distribution
from hedged.errors import DataError, StoreError
from hedged.models import Embedder
from hedged.search import Identifier, Identities, Index, Store, open_store
from hedged.serve.refusals import busy
from hedged.serve.settings import Settings
from hedged.training import Run

PATIENCE = 5.0  # seconds that a write waits for another writer: the client is told before its own time is over
MOST_WAITING = 64  # tasks of a thread: more requests than that come back later
T = TypeVar("T")


@final
class Model:
    """A model and its calibration, as they were when the service started.

    Args:
        settings: What is served.
    """

    def __init__(self, settings: Settings) -> None:
        run = Run(settings.run)
        self.folder, self.name = run.folder, run.folder.name
        self.embedder: Embedder = run.embedder.requires_grad_(False)
        self.fingerprint = self.embedder.fingerprint()
        self.threshold = run.evaluated_threshold
        self.decider: Decider | None = load_decider(run.folder, self.fingerprint)
        self._files = (run.model_file, run.model_file.with_suffix(".safetensors"), run.calibration_file)
        self._seen = self._times()

    def is_replaced(self) -> bool:
        """Whether the files of the model are others now than those that were read."""
        return self._times() != self._seen

    def _times(self) -> list[int]:
        return [_modified(path) for path in self._files]


def _modified(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


@final
class Room:
    """A model and a store, for one thread.

    Args:
        model: The model.
        location: The path or address of the store.
    """

    def __init__(self, model: Model, location: str) -> None:
        self.model, self._location = model, location
        self._store: Store | None = None
        self._index: Index | None = None
        self._moment: Hashable = None
        self._identities: Identities | None = None
        self._ids: list[str] = []
        self._identifier: Identifier | None = None

    @property
    def store(self) -> Store:
        """The store, opened on first use; it is of the model that is served, or refused."""
        if self._store is None:
            store = open_store(self._location)
            try:
                store.header.check_model(self.model.fingerprint)
                store.wait_at_most(PATIENCE)
            except DataError as error:  # it was one of this model when the service started
                store.close()
                raise StoreError(str(error)) from error
            self._store = store
        return self._store

    def asked(self, work: Callable[[], T]) -> T:
        """What `work` returns. After trouble with the store it is opened anew the next time.

        Args:
            work: What is asked of the store.
        """
        try:
            return work()
        except StoreError:
            self.close()
            raise

    @property
    def index(self) -> Index:
        """The way to search in the store."""
        if self._index is None:
            self._index = self.store.index()
        return self._index

    def identifier(self, none_prior: float, coverage: float | None) -> Identifier:
        """Who knows the identities of the store as they are now.

        Args:
            none_prior: The share of probes that show nobody in the store.
            coverage: The share of candidate sets that shall hold the right answer; None: no sets.
        """
        identities = self._known()
        if self._identifier is None:  # what takes long is learned once, whatever is asked for
            calibrated = self.model.decider.calibrator.log_odds if self.model.decider else None
            self._identifier = Identifier(identities, calibrated=calibrated)
        return self._identifier.asked_for(none_prior, coverage)

    @torch.no_grad()
    def items_of(self, label: str, z: Distribution, most: int) -> list[str]:
        """Ids of the items of an identity that match an input best, as the last `identifier` knew them.

        Args:
            label: The identity.
            z: One embedding.
            most: How many.
        """
        if self._identities is None:
            return []
        known = self._identities
        rows = torch.nonzero(known.owner == bisect_left(known.labels, label)).flatten()
        logits = known.match_model.matrix(z, known.images[rows])[0]
        return [self._ids[int(rows[i])] for i in logits.topk(min(most, len(rows))).indices]

    def _known(self) -> Identities:
        """The identities of the store and the ids of their items, read again if anything was written."""
        moment = self.store.moment()
        if self._identities is None or moment != self._moment:
            with self.store.reading():  # both of one moment
                self._moment, self._identities = self.store.moment(), Identities.read(self.store)
                rows = (row for batch in self.store.batches() for row in batch.described)
                self._ids = [row.id for row in rows if row.label is not None]
            self._identifier = None
        return self._identities

    def close(self) -> None:
        """Let go of the store."""
        store, self._store, self._index, self._identities = self._store, None, None, None
        self._identifier = None
        if store is not None:
            store.close()


@final
class Worker:
    """A thread with a room of its own.

    Args:
        model: The model.
        location: The path or address of the store.
        name: Of the thread.
    """

    def __init__(self, model: Model, location: str, name: str) -> None:
        self._room = Room(model, location)
        self._thread = ThreadPoolExecutor(1, name)
        self._waiting, self._counting = 0, threading.Lock()

    async def read(self, work: Callable[[Room], T]) -> T:
        """What `work` returns, done in the thread; if nobody waits for it any more before it has begun, it is not done.

        Args:
            work: What is to be looked up in the room.
        """
        return await asyncio.wrap_future(self._submit(work))

    async def write(self, work: Callable[[Room], T]) -> T:
        """What `work` returns, done in the thread. It is done to the end even if nobody waits for it any more.

        Args:
            work: What is to be changed in the room.
        """
        return await asyncio.shield(asyncio.wrap_future(self._submit(work)))

    def _submit(self, work: Callable[[Room], T]) -> Future[T]:
        """Let `work` be done after all that waits, unless that is too much."""

        @torch.no_grad()
        def task() -> T:
            return self._room.asked(lambda: work(self._room))

        with self._counting:
            if self._waiting >= MOST_WAITING:
                raise busy(f"{self._waiting} requests wait for the store: try again in a second")
            self._waiting += 1
        found = self._thread.submit(task)
        found.add_done_callback(lambda _: self._leave())
        return found

    def _leave(self) -> None:
        with self._counting:
            self._waiting -= 1

    def close(self) -> None:
        """Finish what waits, and let go of the store."""
        self._thread.submit(self._room.close)
        self._thread.shutdown()
