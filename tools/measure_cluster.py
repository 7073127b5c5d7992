"""Measure clustering of the vectors of a real network, beside what one would do instead: results/real/cluster.json.

    python -m tools.measure_cluster VECTORS.npz --set dogs-efficientnet --keep heads --out results/real

VECTORS.npz is that of tools/measure_real.py. Settings of every baseline are chosen on validation identities, a quarter
of the training ones, for each condition anew; then the test identities are clustered once, all inputs clean and half of
them degraded. `hedged` estimates the base rate of pairs from the items. --validation stops before
the test identities are read. --keep names a folder for fitted heads, which take minutes.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from sklearn.cluster import HDBSCAN  # type: ignore[import-untyped]

from hedged.metrics import adjusted_rand_index, bcubed_f1, pairwise_f1, reliability
from hedged.retrofit import Retrofit
from hedged.search import find_clusters
from tools.measure_real import QUALITIES, Set, chosen_baselines, cosine, read

Floats = NDArray[Any]
Labels = NDArray[Any]
CONDITIONS = {"clean": 1, "half-degraded": 3}  # draws of which half it is
METRICS: dict[str, Callable[[Labels, Labels], float]] = {
    "adjusted_rand_index": adjusted_rand_index,
    "pairwise_f1": pairwise_f1,
    "bcubed_f1": bcubed_f1,
}
HEIGHTS = 150  # thresholds that are tried
Partitions = Callable[[Floats], Iterator[tuple[Any, Labels]]]  # of vectors: settings, and the clusters they give


def inputs(data: Set, condition: str, draw: int) -> Floats:
    """The test vectors of a condition."""
    if condition == "clean":
        return data.test["clean"]
    half = np.random.default_rng(draw).random(len(data.test_y)) < 0.5
    return np.where(half[:, None], data.test["degraded"], data.test["clean"])


def agglomerative(score: Callable[[Floats, Floats], Floats], heights: Floats | None = None) -> Partitions:
    """Average linkage of negative scores, cut at each of many heights."""

    def partitions(x: Floats) -> Iterator[tuple[Any, Labels]]:
        scores = score(x, x).astype(np.float64)
        distances = -(scores + scores.T) / 2
        least = distances.min()
        np.fill_diagonal(distances, least)
        tree = linkage(squareform(distances - least, checks=False), "average")
        tried = np.quantile(tree[:, 2] + least, np.linspace(0.02, 0.999, HEIGHTS)) if heights is None else heights
        for height in tried:
            yield float(height), fcluster(tree, height - least, "distance")

    return partitions


def density(project: Callable[[Floats], Floats], chosen: dict[str, Any] | None = None) -> Partitions:
    """HDBSCAN of vectors of one length; items it takes for noise are clusters of their own."""
    grid = [
        {"min_cluster_size": size, "min_samples": samples, "cluster_selection_method": method}
        for size in (2, 3, 5, 10)
        for samples in (1, 2, 3, 5)
        for method in ("eom", "leaf")
    ]

    def partitions(x: Floats) -> Iterator[tuple[Any, Labels]]:
        v = project(x)
        v = v / (np.linalg.norm(v, axis=1, keepdims=True) + 1e-12)
        for setting in [chosen] if chosen else grid:
            found = HDBSCAN(**setting, copy=True).fit_predict(v)
            yield setting, np.where(found < 0, -1 - np.arange(len(found)), found)

    return partitions


def merit(y: Labels, found: Labels) -> float:
    """What settings are chosen by: the mean of the three metrics."""
    return float(np.mean([metric(y, found) for metric in METRICS.values()]))


def best_setting(data: Set, condition: str, partitions: Partitions) -> tuple[float, Any]:
    tried = ((merit(data.test_y, found), setting) for setting, found in partitions(inputs(data, condition, 0)))
    return max(tried, key=lambda pair: pair[0])


def measured(y: Labels, found: Labels) -> dict[str, float]:
    return {name: metric(y, found) for name, metric in METRICS.items()}


def scores_of(data: Set) -> dict[str, Callable[[Floats, Floats], Floats]]:
    """Cosine, LDA and PLDA, fitted to clean and degraded training vectors of one length."""
    ways = chosen_baselines(data, QUALITIES, unit=True)
    return {"cosine": cosine} | {f"{way}-unit": ways[way][0] for way in ("lda-100", "plda")}


def kept_head(data: Set, path: Path) -> Retrofit:
    """The head fitted to the training vectors, from a folder if it was fitted before."""
    if path.exists():
        return Retrofit.load(path)
    head = Retrofit(seed=0).fit(data.train["clean"], data.train_y, poor=data.train["degraded"])
    head.save(path)
    return head


def show(name: str, condition: str, runs: list[dict[str, float]]) -> None:
    told = " ".join(f"{metric}={np.mean([run[metric] for run in runs]):.3f}" for metric in runs[0])
    print(f"{name:22s} {condition:14s} {told}", flush=True)


def is_right(y: Labels, numbers: Labels) -> tuple[Labels, Labels]:
    """Items that are not alone in their cluster, and whether most others of it show whom they show."""
    together = (numbers[:, None] == numbers) & ~np.eye(len(y), dtype=bool)
    several = together.any(1)
    same = (together & (y[:, None] == y)).sum(1)
    return several, 2 * same > together.sum(1)


def hedged_runs(data: Set, head: Retrofit, condition: str) -> list[dict[str, float]]:
    """`find_clusters` of the embeddings, as it comes."""
    runs = []
    for draw in range(CONDITIONS[condition]):
        z = head.embed(inputs(data, condition, draw))
        began = time.monotonic()
        found = find_clusters(z, head.match_model)
        seconds = time.monotonic() - began
        several, right = is_right(data.test_y, found.numbers)
        run = measured(data.test_y, found.numbers)
        run["membership_ece"] = reliability(found.probability[several], right[several]).ece
        run["clusters"] = float(len(found))
        run["base_rate"] = found.base_rate
        run["seconds"] = seconds
        runs.append(run)
    return runs


def baseline_runs(validation: Set, data: Set) -> Iterator[tuple[str, str, list[dict[str, float]]]]:
    """Every baseline at the setting that is best on validation identities: its name, the condition, what it reaches."""
    found = scores_of(validation)
    final = found if data is validation else scores_of(data)
    for condition in CONDITIONS:
        for name, score in found.items():
            _, height = best_setting(validation, condition, agglomerative(score))
            at_height = agglomerative(final[name], np.array([height]))
            yield f"average-linkage-{name}", condition, _runs(data, condition, at_height)
        _, setting = best_setting(validation, condition, density(lambda x: x))
        yield "hdbscan-cosine", condition, _runs(data, condition, density(lambda x: x, setting))


def _runs(data: Set, condition: str, partitions: Partitions) -> list[dict[str, float]]:
    runs = []
    for draw in range(CONDITIONS[condition]):
        ((_, found),) = partitions(inputs(data, condition, draw))
        runs.append(measured(data.test_y, found) | {"clusters": float(len(np.unique(found)))})
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vectors", type=Path)
    parser.add_argument("--set", required=True, help="the name of the set")
    parser.add_argument("--keep", type=Path, required=True, help="a folder of fitted heads, made if need be")
    parser.add_argument("--out", type=Path, help="a folder; without it, the table is only printed")
    parser.add_argument("--validation", action="store_true", help="measure on validation identities, to choose by")
    parser.add_argument("--only", choices=["hedged", "baselines"], help="measure one part")
    arguments = parser.parse_args()
    validation = read(arguments.vectors, validation=True)
    test = None if arguments.validation else read(arguments.vectors, validation=False)
    data = test or validation
    cells: list[dict[str, Any]] = []

    def keep(name: str, condition: str, runs: list[dict[str, float]]) -> None:
        show(name, condition, runs)
        cells.extend(cell(arguments, name, condition, metric, runs) for metric in runs[0])

    if arguments.only != "baselines":
        split = "validation" if arguments.validation else "test"
        head = kept_head(data, arguments.keep / f"{arguments.set}-{split}")
        for condition in CONDITIONS:
            keep("hedged", condition, hedged_runs(data, head, condition))
    if arguments.only != "hedged":
        for name, condition, runs in baseline_runs(validation, data):
            keep(name, condition, runs)
    if arguments.out:
        write(arguments, cells)


def cell(
    arguments: argparse.Namespace, method: str, condition: str, metric: str, runs: list[dict[str, float]]
) -> dict[str, Any]:
    values = [run[metric] for run in runs]
    vectors = str(arguments.vectors)
    words = [Path(a).name if a in (vectors, str(arguments.keep)) else a for a in sys.argv[1:]]
    return {
        "set": arguments.set,
        "method": method,
        "quality": condition,
        "metric": metric,
        "measured": round(float(np.mean(values)), 4),
        "std": round(float(np.std(values)), 4),
        "seeds": len(runs),
        "command": "python -m tools.measure_cluster " + " ".join(words),
    }


def write(arguments: argparse.Namespace, cells: list[dict[str, Any]]) -> None:
    """The cells measured now, beside those of other sets and methods that the file has already."""
    path = arguments.out / "cluster.json"
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    fresh = {(c["set"], c["method"]) for c in cells}
    arguments.out.mkdir(parents=True, exist_ok=True)
    kept = [c for c in before if (c["set"], c["method"]) not in fresh]
    path.write_text(json.dumps(kept + cells, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
