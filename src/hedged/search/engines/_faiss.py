"""The index of an SQLite store: FAISS over the means in memory, derived from the store and never ahead of it.

`FaissIndex` follows the store, `FirstStage` is FAISS, and the index file saves the time to build it.

Measured on a million Gaussians (docs/search.md), the plain means find more of the best matches than means with √tr Σ
beside them, so the means are what FAISS searches.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from hedged.errors import RunError, StoreError
from hedged.search.engines._first_stage import FirstStage
from hedged.search.engines._index_file import IndexFile, file_of, read_index_file, write_index_file
from hedged.search.engines._sqlite_file import TIMEOUT_SECONDS
from hedged.search.engines.sqlite import SqliteStore, State
from hedged.search.index import Candidates, Index, Means, Places, Plan, checked_ef_search
from hedged.search.rows import Filter, Keys, Packed

MAX_REMOVED = {"exact": 0.0, "hnsw": 0.2, "ivf": 0.2}  # share of removed rows before a first stage is rebuilt
MAX_GROWTH = 2.0  # rows over those at building before lists are rebuilt: they are too long then
KEEP_SECONDS = 2.0  # to wait for a writer before the file stays as it is
REWRITE_SHARE = 0.1  # of the rows that changed, from which on the file is written again

Synced = Literal["current", "updated", "rebuilt"]


@final
class FaissIndex(Index):
    """Search in an SQLite store. Every search begins with `sync`, which takes in what was written since the last.

    The file beside the store, its name with .index added, only saves time: without it, or if it does not descend from
    this store's history, the index is built from the store.

    Args:
        store: The store.
        plan: How candidates are found; None: as in the file, else by comparing all means.
        ef_search: How far a search in a graph looks around; None: the default.
    """

    def __init__(self, store: SqliteStore, plan: Plan | None = None, ef_search: int | None = None) -> None:
        self._store, self._ef_search = store, checked_ef_search(ef_search)
        kept = read_index_file(file_of(store.path), store.header)
        self._is_kept = kept is not None and plan in (None, kept.plan) and store.has_been(kept.state)
        self._changed = 0
        if kept is not None and self._is_kept:
            self._plan, self._state, self._keys = kept.plan, kept.state, kept.keys
            self._packed, self._alive = kept.packed, kept.alive
            self._stage = kept.stage or FirstStage(kept.plan, store.header.means(kept.packed))
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
        """How candidates are found."""
        return self._plan

    def __len__(self) -> int:
        return int(self._alive.sum())

    def sync(self) -> Synced:
        """Take in what was written to the store since the last time; returns what that took."""
        with self._store.reading():
            now = self._store.state()
            if now == self._state:
                return "current"
            if not self._store.has_been(self._state):
                self._reset()
            outdated = self._store.removed_since(self._state.change)
            parts = list(self._store.changed_since(self._state.change))
        keys = np.concatenate([np.empty(0, np.int64), *(part for part, _ in parts)])
        packed = np.concatenate([np.empty((0, self._store.header.width), np.float32), *(part for _, part in parts)])
        try:
            taken = self._apply(np.concatenate([outdated, keys]), keys, packed)
        except BaseException:  # interrupted, or short of memory, with a part of it taken in: the next begins anew
            self._reset()
            raise
        self._state = now
        return taken

    def save(self, patience: float = TIMEOUT_SECONDS) -> None:
        """Write the file beside the store, with nothing in it of rows that were removed.

        Who writes to the store waits meanwhile: a row that was removed while its embedding is being written, by a
        process that is then killed, would stay in the file.

        Args:
            patience: Seconds to wait for a writer.
        """
        while True:
            self.sync()
            if not self._alive.all():
                self._rebuild()
            with self._store.unchanging(patience):
                self.sync()
                if self._alive.all():
                    stage = None if self._plan.kind == "exact" else self._stage
                    content = IndexFile(self._plan, self._state, self._keys, self._packed, self._alive, stage)
                    write_index_file(file_of(self._store.path), content)
                    self._is_kept, self._changed = True, 0
                    return

    def keep(self) -> None:
        """Write the file if there is none of this plan or much has changed; do without where it cannot be written."""
        if not self._is_kept or self._changed > REWRITE_SHARE * max(len(self._keys), 1):
            with suppress(RunError, StoreError):
                self.save(KEEP_SECONDS)

    def _candidates(self, means: Means, count: int, where: Filter) -> Candidates:
        self.sync()
        allowed = self._alive & np.isin(self._keys, self._store.keys(where)) if where else self._alive
        passing = int(np.count_nonzero(allowed))
        if passing <= count:
            chosen = np.broadcast_to(np.flatnonzero(allowed), (len(means), passing))
        else:
            chosen = self._nearest(means, count, None if passing == len(allowed) else allowed)
        return Candidates(self._keys, self._packed, chosen)

    def _nearest(self, means: Means, count: int, allowed: NDArray[np.bool_] | None) -> Places:
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
        self._stage, self._built = FirstStage(self._plan, header.means(self._packed)), 0

    def _apply(self, outdated: Keys, keys: Keys, packed: Packed) -> Synced:
        """Rows that were removed or replaced are marked where they are; new ones come after all others."""
        self._alive[np.isin(self._keys, outdated)] = False
        self._keys, self._packed = np.concatenate([self._keys, keys]), np.concatenate([self._packed, packed])
        self._alive = np.concatenate([self._alive, np.ones(len(keys), np.bool_)])
        self._changed += len(outdated)
        removed = len(self._keys) - len(self)
        is_outgrown = self._plan.kind == "ivf" and len(self._keys) > MAX_GROWTH * self._built
        if removed > MAX_REMOVED[self._plan.kind] * len(self._keys) or is_outgrown:
            self._rebuild()
            return "rebuilt"
        self._stage.add(self._store.header.means(packed))
        return "updated"

    def _rebuild(self) -> None:
        self._keys, self._packed = self._keys[self._alive], self._packed[self._alive]
        self._alive = np.ones(len(self._keys), np.bool_)
        self._stage = FirstStage(self._plan, self._store.header.means(self._packed))
        self._built = len(self._keys)
