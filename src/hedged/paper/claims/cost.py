"""Claims about time and storage."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import torch

from hedged.paper.claims.claim import Claim
from hedged.paper.recipe import recipe
from hedged.paper.shelf import Shelf

IMAGES, TURNS = 2_000, 21


def a_gaussian_costs_little(shelf: Shelf) -> Claim:
    point, gaussian = (shelf.evaluation(recipe(2, 2, model)) for model in ("point", "mog-1"))
    images = point.data.clean(torch.arange(min(IMAGES, len(point.data))))
    fast, slow = side_by_side(lambda: point.embedder.embed(images), lambda: gaussian.embedder.embed(images))
    ratio = slow / fast
    size = gaussian.embeddings["clean"].pack().nbytes / point.embeddings["clean"].pack().nbytes
    return Claim(
        "A Gaussian costs about the time of a point and twice its storage",
        ratio < 1.1 and abs(size - 2) < 0.1,
        f"{ratio:.2f} times the time to embed {len(images):,} images (a ratio of medians: each model {TURNS} times, by "
        f"turns in one process), {size:.1f} times the bytes",
    )


def side_by_side(one: Callable[[], object], other: Callable[[], object], turns: int = TURNS) -> tuple[float, float]:
    """The median seconds of two calls. They take turns, so that whatever slows the machine slows both alike.

    Every second turn the other one goes first. A first turn, which may have to compile something, is not counted.
    """
    seconds: dict[Callable[[], object], list[float]] = {one: [], other: []}
    for turn in range(turns + 1):
        for call in (one, other) if turn % 2 else (other, one):
            begun = time.perf_counter()
            call()
            seconds[call].append(time.perf_counter() - begun)
    return median(seconds[one][1:]), median(seconds[other][1:])
