"""The index of an SQLite store: FAISS over the means in memory, derived from the store and never ahead of it.

`FaissIndex` follows the store, `FirstStage` is FAISS, and the index file saves the time to build it.

Measured on a million Gaussians (docs/search.md), the plain means find more of the best matches than means with √tr Σ
beside them, so the means are what FAISS searches.
"""

from __future__ import annotations

import json
import logging
import math
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from hedged._files import remove_parts, write_atomically
from hedged._parallel import share
from hedged._reading import named_in_utf8, parse_json
from hedged.errors import HedgedError, MissingDependencyError, RunError, StoreError
from hedged.search.engines.sqlite import SqliteStore, State
from hedged.search.index import Candidates, Index, Means, Places, Plan, checked_ef_search
from hedged.search.rows import Filter, Header, Keys, Packed

MAX_REMOVED = {"exact": 0.0, "hnsw": 0.2, "ivf": 0.2}  # share of removed rows before a first stage is rebuilt
MAX_GROWTH = 2.0  # rows over those at building before lists are rebuilt: they are too long then
REWRITE_SHARE = 0.1  # of the rows that changed, from which on the file is written again
VECTORS_PER_THREAD = 2**16  # at least, for threads to be worth it
VECTORS_PER_LIST = 39  # that FAISS needs to place the centre of a list
FORMAT = "2"  # of the index file; the first had no checksum, and is made again

logger = logging.getLogger("hedged")

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

    def save(self) -> None:
        """Write the file beside the store, with nothing in it of rows that were removed."""
        self.sync()
        while True:
            if not self._alive.all():
                self._rebuild()
            stage = None if self._plan.kind == "exact" else self._stage
            content = IndexFile(self._plan, self._state, self._keys, self._packed, self._alive, stage)
            write_index_file(file_of(self._store.path), content)
            self._is_kept, self._changed = True, 0
            if not len(self._store.removed_since(self._state.change)):
                return  # who removes rows from now on finds this file, and empties it
            self.sync()

    def keep(self) -> None:
        """Write the file if there is none of this plan or much has changed; do without where it cannot be written."""
        if not self._is_kept or self._changed > REWRITE_SHARE * max(len(self._keys), 1):
            with suppress(RunError, StoreError):
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


@final
class FirstStage:
    """Vectors in FAISS, at positions that count from 0.

    Args:
        plan: How they are searched.
        vectors: `(M, D)`.
    """

    def __init__(self, plan: Plan, vectors: Means) -> None:
        self._plan = plan
        self._index = _built(plan, vectors)

    @classmethod
    def read(cls, plan: Plan, content: NDArray[np.uint8]) -> FirstStage:
        """The first stage that `content` was taken from.

        Args:
            plan: How it is searched.
            content: What `content` returned.
        """
        stage = cls.__new__(cls)
        stage._plan, stage._index = plan, import_faiss().deserialize_index(content)
        return stage

    def content(self) -> NDArray[np.uint8]:
        """All of it, as bytes."""
        content: NDArray[np.uint8] = import_faiss().serialize_index(self._index)
        return content

    def fits(self, count: int, dim: int) -> bool:
        """Whether so many vectors of so many dimensions are in it, in an index of the plan's kind.

        Args:
            count: M.
            dim: D.
        """
        faiss = import_faiss()
        kinds = {"exact": (faiss.IndexFlatL2,), "hnsw": (faiss.IndexHNSWFlat,)}
        of_plan = isinstance(self._index, kinds.get(self._plan.kind, (faiss.IndexIVFFlat, faiss.IndexFlatL2)))
        is_ours = of_plan and self._index.metric_type == faiss.METRIC_L2 and self._index.is_trained
        return bool(is_ours and self._index.ntotal == count and self._index.d == dim)

    def add(self, vectors: Means) -> None:
        """Add vectors after all others.

        Args:
            vectors: `(n, D)`.
        """
        self._index.add(np.ascontiguousarray(vectors))

    def nearest(self, probes: Means, count: int, allowed: NDArray[np.bool_] | None, ef_search: int) -> Places:
        """Positions of the vectors nearest to each probe, `(N, count)`; −1 where there are no more.

        Args:
            probes: `(N, D)`.
            count: How many to find.
            allowed: Which vectors may be found, `(M,)`; None: all.
            ef_search: How far a graph looks around, at least `count`; otherwise it means nothing.
        """
        import torch

        probes, count = np.ascontiguousarray(probes), min(count, self._index.ntotal)
        if self._plan.kind == "exact" and allowed is None and len(probes) < torch.get_num_threads():
            return self._by_ranges(probes, count)
        found: Places = self._index.search(probes, count, params=self._parameters(max(ef_search, count), allowed))[1]
        return found

    def _by_ranges(self, probes: Means, count: int) -> Places:
        """The same for a few probes, with the vectors divided among threads: FAISS divides only the probes."""
        faiss, parts = import_faiss(), []

        def search(first: int, last: int) -> None:
            within = faiss.SearchParameters(sel=faiss.IDSelectorRange(first, last))
            threads = faiss.omp_get_max_threads()
            faiss.omp_set_num_threads(1)
            try:
                parts.append(self._index.search(probes, count, params=within))
            finally:
                faiss.omp_set_num_threads(threads)

        share(search, self._index.ntotal, VECTORS_PER_THREAD)
        distances, found = (np.concatenate(each, axis=1) for each in zip(*parts, strict=True))
        nearest: Places = np.argpartition(distances, count - 1, axis=1)[:, :count]
        return np.take_along_axis(found, nearest, axis=1)

    def _parameters(self, ef_search: int, allowed: NDArray[np.bool_] | None) -> Any:
        faiss = import_faiss()
        chosen = {} if allowed is None else {"sel": faiss.IDSelectorBitmap(np.packbits(allowed, bitorder="little"))}
        if self._plan.kind == "hnsw":
            return faiss.SearchParametersHNSW(efSearch=ef_search, **chosen)
        if self._plan.kind == "ivf":
            return faiss.SearchParametersIVF(nprobe=self._plan.lists_searched, **chosen)
        return faiss.SearchParameters(**chosen) if chosen else None


def _built(plan: Plan, vectors: Means) -> Any:
    faiss = import_faiss()
    vectors, dim = np.ascontiguousarray(vectors), vectors.shape[1]
    index: Any = faiss.IndexFlatL2(dim)
    if plan.kind == "hnsw":
        index = faiss.IndexHNSWFlat(dim, plan.links)
        index.hnsw.efConstruction = plan.ef_construction
    elif plan.kind == "ivf" and len(vectors) >= VECTORS_PER_LIST:
        lists = max(min(int(4 * math.sqrt(len(vectors))), len(vectors) // VECTORS_PER_LIST), 1)
        index = faiss.IndexIVFFlat(faiss.IndexFlatL2(dim), dim, lists)
        index.train(vectors)
    index.add(vectors)
    return index


def import_faiss() -> Any:
    """FAISS, or how to install it."""
    try:
        import faiss
    except ImportError as error:
        raise MissingDependencyError(
            "search needs FAISS, which is not installed: pip install 'hedged[search]'"
        ) from error
    return faiss


class IndexFile(NamedTuple):
    """An index as it is saved: `alive` marks rows that are still in the store; an exact first stage is not saved."""

    plan: Plan
    state: State
    keys: Keys
    packed: Packed
    alive: NDArray[np.bool_]
    stage: FirstStage | None


def file_of(store: Path) -> Path:
    """The index file of a store.

    Args:
        store: The file of the store.
    """
    return store.with_name(f"{store.name}.index")


def write_index_file(path: Path, index: IndexFile) -> None:
    """Write an index file, which appears whole or not at all.

    Args:
        path: The file.
        index: Its content.
    """
    tensors: dict[str, NDArray[Any]] = {"keys": index.keys, "packed": index.packed, "alive": index.alive}
    if index.stage is not None:
        tensors["stage"] = index.stage.content()
    metadata = {"format": FORMAT, "plan": json.dumps(asdict(index.plan)), "state": json.dumps(index.state)}
    content = save(tensors, {**metadata, "checksum": str(_checksum(tensors, metadata))})
    write_atomically(path, lambda part: part.write_bytes(content))


def read_index_file(path: Path, header: Header) -> IndexFile | None:
    """The index in a file; None if there is none, or, with a warning, if it is damaged or of another version.

    Args:
        path: The file.
        header: Of the store.
    """
    if not path.exists():
        return None
    try:
        return _read(path, header)
    except (OSError, SafetensorError, ValueError, TypeError, KeyError, RuntimeError, HedgedError) as error:
        logger.warning("%s cannot be used (%s): the index is made again from the store", path, error)
        return None


def _read(path: Path, header: Header) -> IndexFile:
    with named_in_utf8(path) as name, safe_open(name, framework="numpy") as file:
        metadata = dict(file.metadata() or {})
        if metadata.get("format") != FORMAT:
            raise ValueError(f"it is of format {metadata.get('format')}")
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    stated = metadata.pop("checksum", None)
    if stated != str(_checksum(tensors, metadata)):
        raise ValueError("it is not what was written")
    plan, state = Plan(**parse_json(metadata["plan"])), State(*parse_json(metadata["state"]))
    if tuple(map(type, state)) != (str, int, str):
        raise ValueError("it does not say of which moment of the store it is")
    keys, packed, alive = (tensors[name] for name in ("keys", "packed", "alive"))
    dtypes = tuple(part.dtype for part in (keys, packed, alive))
    is_whole = keys.ndim == 1 and packed.shape == (len(keys), header.width) and alive.shape == keys.shape
    if not is_whole or dtypes != (np.int64, np.float32, np.bool_) or len(np.unique(keys)) < len(keys):
        raise ValueError("its parts do not fit together")
    stage = FirstStage.read(plan, tensors["stage"]) if "stage" in tensors else None
    if stage is not None and not stage.fits(len(keys) * header.components, header.dim):
        raise ValueError("its first stage is of other vectors")
    return IndexFile(plan, state, keys, packed, alive, stage)


def forget_rows(store: SqliteStore) -> None:
    """Empty the index file of a store, of which rows were removed: the next search fills it by the same plan.

    Args:
        store: The store.
    """
    path, width = file_of(store.path), store.header.width
    try:
        remove_parts(path.parent, path.name)
        if not path.exists():
            return
        try:
            with named_in_utf8(path) as name, safe_open(name, framework="numpy") as file:
                plan = Plan(**parse_json((file.metadata() or {})["plan"]))
        except (OSError, SafetensorError, ValueError, TypeError, KeyError, HedgedError):
            path.unlink()
            return
        nothing = np.empty(0, np.int64), np.empty((0, width), np.float32), np.empty(0, np.bool_)
        write_index_file(path, IndexFile(plan, store.state()._replace(change=0, token=""), *nothing, None))
    except OSError as error:
        logger.warning("%s still holds rows that were removed (%s): delete it", path, error)


def _checksum(tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> int:
    """CRC-32 of all that an index file holds."""
    found = zlib.crc32(json.dumps(metadata, sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = np.ascontiguousarray(tensors[name])
        found = zlib.crc32(f"{name} {tensor.dtype} {tensor.shape}".encode(), found)
        found = zlib.crc32(tensor.reshape(-1).view(np.uint8).data, found)
    return found


def index_file_faults(store: SqliteStore) -> list[str]:
    """How the index file of a store disagrees with it; a file that is of another past is not used, and passes.

    Args:
        store: The store.
    """
    path, header = file_of(store.path), store.header
    if not path.exists():
        return []
    kept = read_index_file(path, header)
    if kept is None:
        return [f"{path} is damaged: delete it, and it is made again"]
    if not store.has_been(kept.state):
        return []
    since = [part for part, _ in store.changed_since(kept.state.change)]
    outdated = np.concatenate([store.removed_since(kept.state.change), *since])
    places = np.flatnonzero(kept.alive & ~np.isin(kept.keys, outdated))
    rows = dict(zip(kept.keys[places].tolist(), places.tolist(), strict=True))
    new = set(np.concatenate([np.empty(0, np.int64), *since]).tolist())
    agrees = len(rows) == len(places)
    for keys, packed in store.changed_since(0):
        for key, numbers in zip(keys.tolist(), packed, strict=True):
            place = rows.pop(key, None)
            agrees &= key in new if place is None else bool((kept.packed[place] == numbers).all())
    return [] if agrees and not rows else [f"{path} disagrees with the store: delete it, and it is made again"]
