"""The first stage of a search by itself: whose means are nearest."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hedged.search import Plan
from hedged.search.engines import _first_stage
from hedged.search.engines._first_stage import FirstStage
from hedged.search.index import Means


def vectors(count: int, seed: int = 0) -> Means:
    return np.random.default_rng(seed).standard_normal((count, 5)).astype(np.float32)


def by_sorting(probes: Means, among: Means, count: int) -> list[set[int]]:
    distances = np.square(probes[:, None] - among).sum(-1)
    return [set(row.tolist()) for row in np.argsort(distances, axis=1)[:, :count]]


@pytest.mark.parametrize("count", [1, 30, 700, 1000])
@pytest.mark.parametrize("probes", [1, 3, 40])
def test_threads_that_share_the_vectors_find_the_same(probes: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_first_stage, "VECTORS_PER_THREAD", 100)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    faiss, among, asked = _first_stage.import_faiss(), vectors(1000), vectors(probes, seed=1)
    threads = faiss.omp_get_max_threads()
    found = FirstStage(Plan(), among).nearest(asked, count, None, 0)
    assert found.shape == (probes, count)
    assert [set(row.tolist()) for row in found] == by_sorting(asked, among, count)
    assert faiss.omp_get_max_threads() == threads
