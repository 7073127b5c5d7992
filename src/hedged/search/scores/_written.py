"""Which engines there are, and the score of a store or a model in the language of one."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import TYPE_CHECKING

from hedged.errors import ConfigError
from hedged.search.rows import Header
from hedged.search.scores import _clickhouse, _sql, _usearch, _vespa

if TYPE_CHECKING:
    from usearch.index import CompiledMetric

ENGINES = MappingProxyType[str, Callable[[Header], str]](
    {
        "postgresql": lambda header: _sql.postgres_function(header.score, header.components),
        "clickhouse": lambda header: _clickhouse.function(header.score, header.components),
        "duckdb": lambda header: _sql.duckdb_macro(header.score, header.components),
        "vespa": lambda header: _vespa.profile(header.score, header.components, header.dim),
    }
)


def engine_score(header: Header, engine: str) -> str:
    """The log-odds of a match, as an engine computes them: a statement that makes the function `hedged_log_odds`.

    Its arguments are the numbers of two embeddings as lists: mean, variance, mean, variance; of points, two means.
    Those of the components of a mixture follow each other in one list. Vespa gets a rank profile instead.

    Args:
        header: What the embeddings have in common, such as `Header.of(embedder)` or `store.header`.
        engine: `postgresql`, `clickhouse`, `duckdb` or `vespa`.

    >>> import torch
    >>> from hedged import Evidence, Gaussian
    >>> header = Header.for_embeddings(Gaussian(torch.zeros(1, 3), torch.ones(1, 3)), "0123456789abcdef", Evidence())
    >>> print(engine_score(header, "duckdb").splitlines()[0])
    CREATE OR REPLACE MACRO hedged_log_odds(mean1, variance1, mean2, variance2) AS
    """
    if engine not in ENGINES:
        raise ConfigError(f"there is no engine {engine!r}: choose one of {', '.join(ENGINES)}")
    return ENGINES[engine](header)


def usearch_metric(header: Header) -> CompiledMetric:
    """Minus the log-odds of a match as a metric of usearch: its graph is walked by match probability, in one stage.

    Vectors are packed embeddings in single precision, `z.pack()`: `Index(ndim=header.width, dtype="f32", metric=…)`.

    Args:
        header: What the embeddings have in common, such as `Header.of(embedder)` or `store.header`.
    """
    return _usearch.metric(header.score, header.components, header.dim, header.width)
