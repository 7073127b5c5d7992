"""The ten best matches in a store of a million, by two stages: how many of them are found, and how soon."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch

from hedged.bench.timing import Line, side_by_side
from hedged.distributions import Gaussian
from hedged.match import MatchCurve, best_matches
from hedged.search import FaissIndex, Header, Rows, SqliteStore
from hedged.search.engines._first_stage import import_faiss

ITEMS, QUERIES, OF_ONE, DIM, K = 1_000_000, 100, 10, 20, 10
CANDIDATES = 100
DECADES = 4  # of the variances, below one
ONE_BY_ONE = 20  # queries that are timed singly
BATCH = 50_000
MODEL = "benchmark"


@torch.no_grad()
def lines(quick: bool, items: int = ITEMS) -> Iterator[Line]:
    """Recall and latency of the two stages; none if it is to be quick.

    Args:
        quick: Whether to leave out whatever takes minutes.
        items: In the store.
    """
    if quick:
        return
    gallery, probes = embeddings(items, items, seed=0), embeddings(items, QUERIES, seed=1)
    means, faiss = probes.mean.numpy(), import_faiss()
    flat = faiss.IndexFlatL2(DIM)
    flat.add(gallery.mean.numpy())
    what = f"top {K} in {items:,}, D = {DIM}, by match probability"
    with tempfile.TemporaryDirectory() as folder, _filled(Path(folder), gallery) as store:
        index = FaissIndex(store)
        found = [[hit.key - 1 for hit in hits] for hits in index.search(probes, K, candidates=CANDIDATES)]
        truth = best_matches(probes, gallery, MatchCurve(), K).items.tolist()
        share = sum(len(set(a) & set(b)) for a, b in zip(found, truth, strict=True)) / (K * QUERIES)
        yield Line(f"{what}: recall of the two stages, {CANDIDATES} candidates", share, 0.99)
        ours, theirs = side_by_side(
            lambda: [index.search(probes[i : i + 1], K) for i in range(ONE_BY_ONE)],
            lambda: [flat.search(means[i : i + 1], K) for i in range(ONE_BY_ONE)],
        )
        yield Line(f"{what}: latency / that of FAISS, exact, on the means", ours / theirs, 1.0, at_most=True)
        ours, theirs = side_by_side(lambda: index.search(probes, K), lambda: flat.search(means, K))
        yield Line(f"{what}: time of {QUERIES} at once / that of FAISS", ours / theirs, 1.5, at_most=True)


def embeddings(items: int, count: int, seed: int, widths: int = DIM) -> Gaussian:
    """Ten items an identity, variances log-uniform over four decades: one a coordinate, or one an item (`widths` 1).

    Fewer than all the items are queries, each of one of the same identities.

    Args:
        items: In the store.
        count: How many embeddings to make.
        seed: Of the random numbers.
        widths: 1 for one variance an item, else one a coordinate.
    """
    generator = torch.Generator().manual_seed(seed)
    centres = torch.randn(items // OF_ONE, DIM, generator=torch.Generator().manual_seed(7))
    who = torch.arange(items) if count == items else torch.randint(items, (count,), generator=generator)
    variance = 10 ** (-DECADES * torch.rand(count, widths, generator=generator).expand(count, DIM))
    noise = torch.randn(count, DIM, generator=generator)
    return Gaussian(centres[who % len(centres)] + variance.sqrt() * noise, variance)


def _filled(folder: Path, gallery: Gaussian) -> SqliteStore:
    """A store of all the items, in their order."""
    header = Header.for_embeddings(gallery[:1], MODEL, MatchCurve())
    store = SqliteStore.create(folder / "items.db", header)
    for start in range(0, len(gallery), BATCH):
        some = gallery[start : start + BATCH]
        store.add(Rows([str(start + i) for i in range(len(some))], some, MODEL))
    return store
