"""The index of an SQLite store: a first stage in memory, derived from the store and never ahead of it.

`FaissIndex` follows the store, a `Stage` finds candidates, and the index file saves the time to build it.

Measured on a million Gaussians (docs/search.md), the plain means find more of the best matches than means with √tr Σ
beside them, so the means are what FAISS searches; the match model's own `nearness` finds more in a tenth of the rows.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Literal, final

import numpy as np

from hedged.errors import RunError, StoreError
from hedged.search.engines._index_file import IndexFile, file_of, read_index_file, write_index_file
from hedged.search.engines._sqlite_file import TIMEOUT_SECONDS
from hedged.search.engines._stages import stage_for
from hedged.search.engines.sqlite import SqliteStore, State
from hedged.search.index import CANDIDATES, Candidates, Index, Plan, checked_ef_search
from hedged.search.rows import Filter, Keys, Packed

if TYPE_CHECKING:
    from hedged.distributions import Distribution

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
        plan: How candidates are found; None: as in the file, else by looking at all rows.
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
            self._living = int(np.count_nonzero(kept.alive))
            self._stage = stage_for(kept.plan, store.header, kept.packed, kept.stage)
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

    @property
    def enough(self) -> int:
        return self._stage.enough if len(self) > CANDIDATES else CANDIDATES  # of few rows, all are ranked

    def __len__(self) -> int:
        return self._living

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
            if len(self) < len(self._keys):
                self._rebuild()
            with self._store.unchanging(patience):
                self.sync()
                if len(self) == len(self._keys):
                    stage = None if self._plan.kind == "exact" else self._stage.saved()
                    content = IndexFile(self._plan, self._state, self._keys, self._packed, self._alive, stage)
                    write_index_file(file_of(self._store.path), content)
                    self._is_kept, self._changed = True, 0
                    return

    def keep(self) -> None:
        """Write the file if there is none of this plan or much has changed; do without where it cannot be written."""
        if not self._is_kept or self._changed > REWRITE_SHARE * max(len(self._keys), 1):
            with suppress(RunError, StoreError):
                self.save(KEEP_SECONDS)

    def _candidates(self, probes: Distribution, count: int, where: Filter) -> Candidates:
        self.sync()
        allowed = self._alive & np.isin(self._keys, self._store.keys(where)) if where else self._alive
        passing = int(np.count_nonzero(allowed)) if where else len(self)
        if passing <= count:
            used = np.flatnonzero(allowed)
            chosen = np.broadcast_to(np.arange(passing), (len(probes), passing))
        else:
            which = None if passing == len(allowed) else allowed
            found = self._stage.nearest(probes, self._packed, count, which, self._ef_search)
            used = np.unique(found[found >= 0])
            chosen = np.where(found >= 0, np.searchsorted(used, found), -1)
        return Candidates(self._keys[used], self._packed[used], chosen)

    def _reset(self) -> None:
        header = self._store.header
        self._state = State(self._store.state().uuid, 0, "")
        self._keys, self._alive, self._living = np.empty(0, np.int64), np.empty(0, np.bool_), 0
        self._packed = np.empty((0, header.width), np.float32)
        self._stage, self._built = stage_for(self._plan, header, self._packed), 0

    def _apply(self, outdated: Keys, keys: Keys, packed: Packed) -> Synced:
        """Rows that were removed or replaced are marked where they are; new ones come after all others."""
        self._alive[np.isin(self._keys, outdated)] = False
        self._keys, self._packed = np.concatenate([self._keys, keys]), np.concatenate([self._packed, packed])
        self._alive = np.concatenate([self._alive, np.ones(len(keys), np.bool_)])
        self._living = int(np.count_nonzero(self._alive))
        self._changed += len(outdated)
        removed = len(self._keys) - len(self)
        is_outgrown = self._plan.kind == "ivf" and len(self._keys) > MAX_GROWTH * self._built
        if removed > self._stage.max_removed * len(self._keys) or is_outgrown:
            self._rebuild()
            return "rebuilt"
        self._stage.add(packed)
        return "updated"

    def _rebuild(self) -> None:
        self._keys, self._packed = self._keys[self._alive], self._packed[self._alive]
        self._alive = np.ones(len(self._keys), np.bool_)
        self._stage = stage_for(self._plan, self._store.header, self._packed)
        self._built = len(self._keys)
