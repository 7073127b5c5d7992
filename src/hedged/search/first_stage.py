"""The first stage of a search: which rows may be among the best, by the distance of means alone.

Measured on a million Gaussians (docs/search.md), the plain means find more of the best matches than means with √tr Σ
beside them, so that is what is searched, by FAISS. The second stage ranks what was found by the match probability.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
import torch
from numpy.typing import NDArray

from hedged._parallel import share
from hedged.errors import ConfigError, MissingDependencyError
from hedged.search.rows import Keys

Means = NDArray[np.float32]
Kind = Literal["exact", "hnsw", "ivf"]
VECTORS_EACH = 2**16  # that are worth a thread of their own
LEAST_LISTS = 39  # vectors that FAISS wants for each list, to place its centre


@dataclass(frozen=True)
class Plan:
    """How candidates are found: by looking at all means (`exact`), or by a graph (`hnsw`) or lists (`ivf`) at some."""

    kind: Kind = "exact"
    links: int = 32  # of a graph, for each vector
    ef_construction: int = 80  # how far a graph looks around for them
    lists_searched: int = 16  # of the lists, for each probe

    def __post_init__(self) -> None:
        if self.kind not in ("exact", "hnsw", "ivf"):
            raise ConfigError(f"there is no first stage {self.kind!r}: choose exact, hnsw or ivf")
        for name in ("links", "ef_construction", "lists_searched"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is at least 1, got {getattr(self, name)}")


@final
class FirstStage:
    """Vectors in FAISS, at positions that count from 0."""

    def __init__(self, plan: Plan, vectors: Means) -> None:
        self._plan = plan
        self._index = _built(plan, vectors)

    @classmethod
    def read(cls, plan: Plan, content: NDArray[np.uint8]) -> FirstStage:
        """What `content` has written."""
        stage = cls.__new__(cls)
        stage._plan, stage._index = plan, import_faiss().deserialize_index(content)
        return stage

    def content(self) -> NDArray[np.uint8]:
        """All of it as bytes."""
        content: NDArray[np.uint8] = import_faiss().serialize_index(self._index)
        return content

    def add(self, vectors: Means) -> None:
        self._index.add(np.ascontiguousarray(vectors))

    def nearest(self, probes: Means, count: int, allowed: NDArray[np.bool_] | None, ef_search: int) -> Keys:
        """Positions of the vectors nearest to each probe `(N, D)`, of those allowed `(M,)`: `(N, count)`, or −1.

        In a graph, `ef_search` is how far to look around, at least `count`; elsewhere it means nothing.
        """
        probes, count = np.ascontiguousarray(probes), min(count, self._index.ntotal)
        if self._plan.kind == "exact" and allowed is None and len(probes) < torch.get_num_threads():
            return self._by_ranges(probes, count)
        found: Keys = self._index.search(probes, count, params=self._parameters(max(ef_search, count), allowed))[1]
        return found

    def _by_ranges(self, probes: Means, count: int) -> Keys:
        """The same of a few probes, by ranges of the vectors that threads share: FAISS shares out probes alone."""
        faiss, parts = import_faiss(), []

        def search(first: int, last: int) -> None:
            within = faiss.SearchParameters(sel=faiss.IDSelectorRange(first, last))
            threads = faiss.omp_get_max_threads()
            faiss.omp_set_num_threads(1)
            try:
                parts.append(self._index.search(probes, count, params=within))
            finally:
                faiss.omp_set_num_threads(threads)

        share(search, self._index.ntotal, VECTORS_EACH)
        distances, found = (np.concatenate(each, axis=1) for each in zip(*parts, strict=True))
        nearest: Keys = np.argpartition(distances, count - 1, axis=1)[:, :count]
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
    elif plan.kind == "ivf" and len(vectors) >= LEAST_LISTS:
        lists = max(min(int(4 * math.sqrt(len(vectors))), len(vectors) // LEAST_LISTS), 1)
        index = faiss.IndexIVFFlat(faiss.IndexFlatL2(dim), dim, lists)
        index.train(vectors)
    index.add(vectors)
    return index


def import_faiss() -> Any:
    try:
        import faiss
    except ImportError as error:
        raise MissingDependencyError(
            "search needs FAISS, which is not installed: pip install 'hedged[search]'"
        ) from error
    return faiss
