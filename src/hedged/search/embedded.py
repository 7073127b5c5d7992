"""The index of an SQLite store: FAISS over the means in memory, derived from the store and never ahead of it."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from hedged.errors import RunError
from hedged.search.first_stage import FirstStage, Means, Plan
from hedged.search.index import EF_SEARCH, Index
from hedged.search.index_file import IndexFile, file_of, read_index_file, write_index_file
from hedged.search.rerank import Candidates
from hedged.search.rows import Header, Keys, Packed
from hedged.search.sqlite import SqliteStore, State
from hedged.search.where import Filter

LOGGER = logging.getLogger(__name__)
DEAD = {"exact": 0.0, "hnsw": 0.2, "ivf": 0.2}  # share of removed rows that a first stage may hold: rebuilding costs
GROWN = 2.0  # times as many rows as when it was built: lists then are too long
WORTH = 0.1  # share of rows that changed for which the file is written anew

Synced = Literal["current", "updated", "rebuilt"]


@final
class EmbeddedIndex(Index):
    """Search in an SQLite store. What was written since is taken in by `sync`, which every search begins with.

    The file beside the store, its name with .index added, only saves time: without it, or if it is not of this store's
    past, the index is built from the store.
    """

    def __init__(self, store: SqliteStore, plan: Plan | None = None, ef_search: int = EF_SEARCH) -> None:
        self._store, self._ef_search = store, ef_search
        kept = read_index_file(file_of(store.path), store.header)
        self._is_kept = kept is not None and plan in (None, kept.plan) and store.has_been(kept.state)
        self._changed = 0
        if kept is not None and self._is_kept:
            self._plan, self._state, self._keys = kept.plan, kept.state, kept.keys
            self._packed, self._alive = kept.packed, kept.alive
            self._stage = kept.stage or FirstStage(kept.plan, means_of(kept.packed, store.header))
            self._built = len(kept.keys)
        else:
            self._plan = plan or Plan()
            self._reset()
        self.sync()

    @property
    def store(self) -> SqliteStore:
        return self._store

    @property
    def plan(self) -> Plan:
        return self._plan

    def __len__(self) -> int:
        return int(self._alive.sum())

    def sync(self) -> Synced:
        """Take in what was written to the store since the last time."""
        with self._store.reading():
            now = self._store.state()
            if now == self._state:
                return "current"
            if not self._store.has_been(self._state):
                self._reset()
            gone = self._store.removed_since(self._state.change)
            parts = list(self._store.changed_since(self._state.change))
        self._state = now
        keys = np.concatenate([np.empty(0, np.int64), *(part for part, _ in parts)])
        packed = np.concatenate([np.empty((0, self._store.header.width), np.float32), *(part for _, part in parts)])
        return self._apply(np.concatenate([gone, keys]), keys, packed)

    def save(self) -> None:
        """Write the file beside the store."""
        stage = None if self._plan.kind == "exact" else self._stage
        content = IndexFile(self._plan, self._state, self._keys, self._packed, self._alive, stage)
        write_index_file(file_of(self._store.path), content)
        self._is_kept, self._changed = True, 0

    def keep(self) -> None:
        """Write the file if there is none of this plan or much has changed; where none can be written, do without."""
        if not self._is_kept or self._changed > WORTH * max(len(self._keys), 1):
            with suppress(RunError):
                self.save()

    def _candidates(self, means: Means, count: int, where: Filter) -> Candidates:
        self.sync()
        allowed = self._alive & np.isin(self._keys, self._store.keys(where)) if where else self._alive
        passing = int(np.count_nonzero(allowed))
        if passing <= count:
            chosen = np.broadcast_to(np.flatnonzero(allowed), (len(means), passing))
        else:
            chosen = self._nearest(means, count, None if passing == len(allowed) else allowed)
        return Candidates(self._keys, self._packed, chosen)

    def _nearest(self, means: Means, count: int, allowed: NDArray[np.bool_] | None) -> Keys:
        """Places of the rows nearest to any component of each probe, by any component of theirs."""
        components = self._store.header.components
        passing = None if allowed is None else np.repeat(allowed, components)
        found = self._stage.nearest(means.reshape(-1, means.shape[-1]), count * components, passing, self._ef_search)
        return np.where(found >= 0, found // components, -1).reshape(len(means), -1)

    def _reset(self) -> None:
        header = self._store.header
        self._state = State(self._store.state().uuid, 0, "")
        self._keys, self._alive = np.empty(0, np.int64), np.empty(0, np.bool_)
        self._packed = np.empty((0, header.width), np.float32)
        self._stage, self._built = FirstStage(self._plan, means_of(self._packed, header)), 0

    def _apply(self, gone: Keys, keys: Keys, packed: Packed) -> Synced:
        """Rows that are gone or replaced die where they are; what is new comes after all others."""
        self._alive[np.isin(self._keys, gone)] = False
        self._keys, self._packed = np.concatenate([self._keys, keys]), np.concatenate([self._packed, packed])
        self._alive = np.concatenate([self._alive, np.ones(len(keys), np.bool_)])
        self._changed += len(gone)
        dead = len(self._keys) - len(self)
        is_outgrown = self._plan.kind == "ivf" and len(self._keys) > GROWN * self._built
        if dead > DEAD[self._plan.kind] * len(self._keys) or is_outgrown:
            self._rebuild()
            return "rebuilt"
        self._stage.add(means_of(packed, self._store.header))
        return "updated"

    def _rebuild(self) -> None:
        self._keys, self._packed = self._keys[self._alive], self._packed[self._alive]
        self._alive = np.ones(len(self._keys), np.bool_)
        self._stage = FirstStage(self._plan, means_of(self._packed, self._store.header))
        self._built = len(self._keys)


def means_of(packed: Packed, header: Header) -> Means:
    """The means of all components, one after the other, `(n · C, D)`."""
    return packed[:, : header.components * header.dim].reshape(-1, header.dim)
