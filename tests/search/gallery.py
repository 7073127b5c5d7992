"""Embeddings to store and search in the tests, and stores of them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from laws import seeded

from hedged import MatchCurve
from hedged.distributions import Distribution, Gaussian, Mixture, Point
from hedged.search import Header, Rows, Store

MODEL = "0123456789abcdef"
DIM = 4
KINDS = ("point", "gaussian", "mixture")

Make = Callable[[str], Store]  # an empty store for embeddings of a kind


def header_of(kind: str, dim: int = DIM) -> Header:
    return Header.for_embeddings(embeddings(kind, 1, dim=dim), MODEL, MatchCurve(10.0, 3.0))


def embeddings(kind: str, count: int, seed: int = 0, dim: int = DIM) -> Distribution:
    """Clusters of ten, variances over four decades."""
    generator = seeded(seed)
    centres = torch.randn(max(count // 10, 1), 1, dim, generator=seeded(7))
    shape = (count, 2 if kind == "mixture" else 1, dim)
    variances = 10 ** (-4 * torch.rand(shape, generator=generator))
    means = centres[torch.randint(len(centres), (count,), generator=generator)]
    means = means + variances.sqrt() * torch.randn(shape, generator=generator)
    if kind == "mixture":
        return Mixture(means, variances)
    return Point(means[:, 0]) if kind == "point" else Gaussian(means[:, 0], variances[:, 0])


def rows(kind: str, count: int, seed: int = 0, first: int = 0) -> Rows:
    """Rows i, i + 1, … with labels of ten and metadata that tell parity and the row's own number."""
    numbers = range(first, first + count)
    labels = [None if i % 10 == 9 else f"label {i // 10}" for i in numbers]
    metadata = [{"parity": i % 2, "number": i, "even": i % 2 == 0} for i in numbers]
    return Rows([f"row {i}" for i in numbers], embeddings(kind, count, seed), MODEL, labels, metadata)
