"""Pairs of embeddings, extreme and ordinary, and engines that compute their log-odds themselves."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from laws import seeded
from numpy.typing import NDArray

from hedged import Evidence, MatchCurve, MatchModel
from hedged.distributions import Distribution, Gaussian, Mixture, Point
from hedged.search import Header, engine_score, usearch_metric

Logits = NDArray[np.float64]
Compute = Callable[[Header, Distribution, Distribution], Logits]


def embeddings(kind: str, count: int, seed: int, extreme: bool, dim: int) -> Distribution:
    """Means and variances over a few decades, or over more than twenty; every fourth near one place."""
    generator, shape = seeded(seed), (count, 2 if kind == "mixture" else 1, dim)
    low, high = (-12, 12) if extreme else (-4, 0)
    variance = 10 ** (low + (high - low) * torch.rand(shape, generator=generator))
    low, high = (-6, 6) if extreme else (-2, 1)
    size = 10 ** (low + (high - low) * torch.rand(count, 1, 1, generator=generator))
    mean = size * torch.randn(shape, generator=generator)
    mean[::4] = 0.3 + variance[::4].sqrt() * torch.randn(mean[::4].shape, generator=generator)
    return _made(kind, mean, variance)


def posteriors(kind: str, count: int, seed: int, dim: int) -> Distribution:
    """Variances from a millionth to 1, of which nothing is known."""
    generator, shape = seeded(seed), (count, 2 if kind == "mixture" else 1, dim)
    variance = 10 ** (-6 * torch.rand(shape, generator=generator))
    variance[torch.rand(shape, generator=generator) < 0.05] = 1
    mean = torch.randn(shape, generator=generator)
    mean[::4] = 0.5 + variance[::4].sqrt() * torch.randn(mean[::4].shape, generator=generator)
    return _made(kind, mean, variance)


def _made(kind: str, mean: torch.Tensor, variance: torch.Tensor) -> Distribution:
    if kind == "mixture":
        return Mixture(mean, variance)
    return Point(mean[:, 0]) if kind == "point" else Gaussian(mean[:, 0], variance[:, 0])


@dataclass(frozen=True)
class Case:
    """A match model, and embeddings for it.

    Args:
        model: The match model.
        kind: Of the embeddings.
        extreme: Whether they are.
        dim: D.
    """

    model: MatchModel
    kind: str
    extreme: bool = False
    dim: int = 20

    def given(self, count: int, seed: int) -> Distribution:
        """As many embeddings."""
        if isinstance(self.model, Evidence):
            return posteriors(self.kind, count, seed, self.dim)
        return embeddings(self.kind, count, seed, self.extreme, self.dim)


CURVE = MatchCurve(10.0, 3.0)
CASES = {
    "gaussians": Case(CURVE, "gaussian"),
    "extreme gaussians": Case(CURVE, "gaussian", extreme=True),
    "no chord": Case(MatchCurve(1.0, -2.0), "gaussian"),
    "a sharp knee": Case(MatchCurve(2.0, 6.0), "gaussian"),
    "points": Case(CURVE, "point", extreme=True),
    "mixtures": Case(CURVE, "mixture", dim=4),
    "extreme mixtures": Case(CURVE, "mixture", extreme=True, dim=4),
    "evidence": Case(Evidence(0.3, 0.7), "gaussian"),
    "evidence of mixtures": Case(Evidence(-1.0, 0.5), "mixture", dim=4),
    "evidence of rare inputs": Case(Evidence(0.3, 0.7, 1.0, 1.0, rarity=0.5, clarity=0.5), "gaussian"),
}


def header_for(z: Distribution, model: MatchModel) -> Header:
    return Header.for_embeddings(z[:1], "0123456789abcdef", model.requires_grad_(False))


def python(header: Header, z1: Distribution, z2: Distribution) -> Logits:
    """The reference: log-odds pair by pair, in double precision, by which stores rank."""
    logits: Logits = header.match_model.chosen_logits(z1, z2, torch.arange(len(z1)).unsqueeze(1))[:, 0].numpy()
    return logits


def numbers(z: Distribution) -> tuple[list[Any], list[Any]]:
    """Means and variances of embeddings, those of the components of a mixture one after the other."""
    mean, variance = (part.flatten(1).numpy() for part in z.parts())
    return list(mean), list(variance)


def arguments(header: Header) -> str:
    """What the function is called with."""
    return ", ".join(header.score.given)


def table(z1: Distribution, z2: Distribution) -> Any:
    """A row for each pair, as Arrow has it."""
    arrow = pytest.importorskip("pyarrow")
    columns = zip(("mean1", "variance1", "mean2", "variance2"), (*numbers(z1), *numbers(z2)), strict=True)
    lists = {name: arrow.array(column, arrow.list_(arrow.float32())) for name, column in columns}
    return arrow.table({"key": np.arange(len(z1)), **lists})


def needed(module: str) -> Any:
    """An engine; HEDGED_REQUIRE_ENGINES=1 makes its absence a failure."""
    if os.environ.get("HEDGED_REQUIRE_ENGINES") == "1":
        return __import__(module)
    return pytest.importorskip(module)


class DuckDB:
    """In process."""

    def __init__(self, folder: Path) -> None:
        self.engine = needed("duckdb")

    def ranked(self, header: Header, z1: Distribution, z2: Distribution) -> list[tuple[int, float]]:
        with self.engine.connect() as connection:
            connection.register("pairs", table(z1, z2))
            connection.execute(engine_score(header, "duckdb"))
            query = f"SELECT key, hedged_log_odds({arguments(header)}) AS x FROM pairs ORDER BY x DESC, key"
            found: list[tuple[int, float]] = connection.execute(query).fetchall()
        return found


class ClickHouse:
    """In process."""

    def __init__(self, folder: Path) -> None:
        needed("chdb")
        self.folder = folder

    def ranked(self, header: Header, z1: Distribution, z2: Distribution) -> list[tuple[int, float]]:
        from chdb.session import Session

        parquet = pytest.importorskip("pyarrow.parquet")
        path = self.folder / "pairs.parquet"
        parquet.write_table(table(z1, z2), path)
        with Session() as session:  # type: ignore[no-untyped-call]
            session.query(engine_score(header, "clickhouse"))
            score = f"hedged_log_odds({arguments(header)})"
            rows = str(session.query(f"SELECT key, {score} AS x FROM file('{path}') ORDER BY x DESC, key", "CSV"))
        return [(int(key), float(x)) for key, x in (row.split(",") for row in rows.split())]


class PostgreSQL:
    """On a server that the tests start."""

    def __init__(self, server: str) -> None:
        self.server = server

    def ranked(self, header: Header, z1: Distribution, z2: Distribution) -> list[tuple[int, float]]:
        import psycopg

        with psycopg.connect(self.server, autocommit=True) as connection:
            columns = "mean1 float4[], variance1 float4[], mean2 float4[], variance2 float4[]"
            connection.execute(f"CREATE TEMPORARY TABLE pairs (key int, {columns})")
            with connection.cursor() as cursor, cursor.copy("COPY pairs FROM STDIN") as copy:
                for key, row in enumerate(zip(*numbers(z1), *numbers(z2), strict=True)):
                    copy.write_row([key, *("{" + ",".join(map(repr, one.tolist())) + "}" for one in row)])
            connection.execute(engine_score(header, "postgresql"))
            given = ", ".join(f"{one}::float8[]" for one in header.score.given)
            query = f"SELECT key, hedged_log_odds({given}) AS x FROM pairs ORDER BY x DESC, key"
            return [(int(key), float(x)) for key, x in connection.execute(query).fetchall()]


class USearch:
    """In process; distances are in single precision."""

    def __init__(self, folder: Path) -> None:
        needed("usearch")

    def ranked(self, header: Header, z1: Distribution, z2: Distribution) -> list[tuple[int, float]]:
        prototype = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_void_p, ctypes.c_void_p)
        distance = prototype(usearch_metric(header).pointer)
        first, second = (np.ascontiguousarray(z.pack().numpy()) for z in (z1, z2))
        each = [
            (n, -distance(a.ctypes.data, b.ctypes.data)) for n, (a, b) in enumerate(zip(first, second, strict=True))
        ]
        return sorted(each, key=lambda row: (-row[1], row[0]))

    def scanned(self, header: Header, probe: Distribution, items: Distribution) -> list[tuple[int, float]]:
        """All items by an exact search of an index, whose graph is of no account; those of one distance by key."""
        from usearch.index import Index

        metric = usearch_metric(header)
        index = Index(ndim=header.width, dtype="f32", metric=metric, connectivity=2, expansion_add=1)
        index.add(np.arange(len(items)), items.pack().numpy())
        found = index.search(probe.pack().numpy()[0], len(items), exact=True)
        assert len(found) == len(items)
        order = np.lexsort((found.keys, found.distances))
        return [(int(found.keys[i]), -float(found.distances[i])) for i in order]
