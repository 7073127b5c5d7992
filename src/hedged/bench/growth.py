"""How the cost of a match grows with the number of pairs, dimensions, components, samples and the batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hedged.bench import references
from hedged.bench.embeddings import clustered
from hedged.bench.timing import side_by_side
from hedged.distributions import Distribution, Gaussian
from hedged.losses import HedgedLoss
from hedged.match import MatchCurve, match_matrix

Way = Callable[[Distribution, Distribution, MatchCurve], Tensor]
WAYS: dict[str, Way] = {
    "closed form": match_matrix,
    "Monte Carlo, cdist": references.cdist,
    "Monte Carlo, all differences": references.eager,
    "Monte Carlo, matrix product": references.matmul,
    "Monte Carlo, gathered": references.gather,
}
BASE = 400  # embeddings on each side, unless their number is what grows


class Cost(NamedTuple):
    """Microseconds a pair, of one way to compute, where `axis` has the value `at`."""

    axis: str
    at: int
    way: str
    microseconds: float


@torch.no_grad()
def _matching(axis: str, at: int) -> Iterator[Cost]:
    size, dim, components, samples = (at if axis == name else usual for name, usual in USUAL.items())
    curve, z = MatchCurve(), clustered(size, dim, components)
    ways = dict(WAYS)
    if axis == "samples":
        ways = {name: _with(way, samples) if way is not match_matrix else way for name, way in WAYS.items()}
    times = side_by_side(*(lambda way=way: way(z, z, curve) for way in ways.values()))
    for name, time in zip(ways, times, strict=True):
        yield Cost(axis, at, name, 1e6 * time / size**2)


USUAL = {"embeddings": BASE, "dimensions": 2, "components": 1, "samples": references.SAMPLES}
AXES = {
    "embeddings": (100, 200, 400, 800),
    "dimensions": (2, 4, 8, 16, 32),
    "components": (1, 2, 4),
    "samples": (2, 4, 8, 16),
}
BATCHES = (32, 64, 128, 256, 512)


def _with(way: Any, samples: int) -> Way:
    return lambda z1, z2, curve: way(z1, z2, curve, samples)


def _loss(batch: int) -> Iterator[Cost]:
    """Of a loss, forward and backward, over all pairs of a batch."""
    labels, curve = torch.arange(batch) // 4, MatchCurve()
    z = clustered(batch, 2)
    leaves = [x.requires_grad_() for x in z.tensors]
    loss = HedgedLoss(curve)

    def ours() -> None:
        loss(Gaussian(*leaves), labels).backward()

    def eager() -> None:
        references.eager_costs(Gaussian(*leaves), labels, curve, 0.05).backward()  # type: ignore[no-untyped-call]

    for name, time in zip(("closed form", "closed form, eager"), side_by_side(ours, eager), strict=True):
        yield Cost("batch", batch, name, 2e6 * time / batch / (batch - 1))


def costs() -> Iterator[Cost]:
    """The cost of a match along each axis, as it is measured."""
    for axis, values in AXES.items():
        for at in values:
            yield from _matching(axis, at)
    for batch in BATCHES:
        yield from _loss(batch)
