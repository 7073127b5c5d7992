"""FAISS: which of many vectors are nearest to a probe."""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from hedged._parallel import share
from hedged.errors import MissingDependencyError, StoreError
from hedged.search.index import Means, Places, Plan

VECTORS_PER_THREAD = 2**16  # at least, for threads to be worth it
VECTORS_PER_LIST = 39  # that FAISS needs to place the centre of a list


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
        """The first stage that `content` was taken from; a StoreError if FAISS does not know it again.

        Args:
            plan: How it is searched.
            content: What `content` returned.
        """
        if content.dtype != np.uint8 or content.ndim != 1:
            raise StoreError("its first stage is no row of bytes")
        stage, faiss = cls.__new__(cls), import_faiss()
        try:
            stage._plan, stage._index = plan, faiss.deserialize_index(content)
        except RuntimeError as error:
            raise StoreError(f"FAISS cannot read its first stage: {str(error).splitlines()[0]}") from error
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
