"""The score in PostgreSQL and DuckDB: a scalar subquery over `unnest`, with a column more for each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from hedged.match._expression import Language
from hedged.match.score import LOG_MEAN, Score, Step

SQL = Language.like_sql()
COLUMNS = {"mean1": "m1", "variance1": "v1", "mean2": "m2", "variance2": "v2"}


@final
@dataclass(frozen=True)
class Dialect:
    """One of the two.

    Args:
        end: What ends a subquery.
    """

    end: str

    def log_odds(self, score: Score, components: int, lists: Sequence[str]) -> str:
        """The log-odds as an expression.

        Args:
            score: The formula.
            components: C.
            lists: Expressions for the numbers of the first embedding, then of the second: means, and variances if they
                count; those of the components of a mixture one after the other.
        """
        dim, half = score.dimensions, len(lists) // 2
        if components == 1:
            cut = f"[1:{dim}]" if score.aside is not None else ""
            source = self._pair(score, [f"({one}){cut}" for one in lists])
        else:
            columns = []
            for i, j in [(i, j) for i in range(components) for j in range(components)]:
                places = [i] * half + [j] * half
                parts = [f"({one})[{k * dim + 1}:{(k + 1) * dim}]" for one, k in zip(lists, places, strict=True)]
                columns.append(f"(SELECT {LOG_MEAN} FROM ({self._pair(score, parts)}) AS pair) AS pair_{i}_{j}")
            source = self._steps(score.mixed(components), f"SELECT {', '.join(columns)}{self.end}")
        if score.aside is not None:
            asides = [f"({lists[i * half]})[{score.aside + 1}]::float8 AS aside{i + 1}" for i in (0, 1)]
            source = f"SELECT *, {', '.join(asides)} FROM ({source}) AS latent{self.end}"
        return f"(SELECT log_odds FROM ({self._steps(score.log_odds, source)}) AS result)"

    def _pair(self, score: Score, lists: Sequence[str]) -> str:
        """A query for `log_mean` of two Gaussians or points."""
        numbers = [f"unnest({x})::float8 AS {COLUMNS[one]}" for one, x in zip(score.given, lists, strict=True)]
        source = f"SELECT {', '.join(numbers)}{self.end}"
        sums = ", ".join(f"sum({SQL.write(step.value, COLUMNS)}) AS {step.name}" for step in score.sums)
        source = f"SELECT {sums} FROM ({self._steps(score.by_dimension, source)}) AS dimensions"
        return self._steps(score.by_pair, source)

    def _steps(self, steps: Sequence[Step], source: str) -> str:
        for step in steps:
            value = SQL.write(step.value, COLUMNS)
            source = f"SELECT *, {value} AS {step.name} FROM ({source}) AS before{self.end}"
        return source


POSTGRESQL = Dialect(" OFFSET 0")  # which keeps the planner from working the same out twice
DUCKDB = Dialect("")


def postgres_function(score: Score, components: int) -> str:
    """The statement that makes a function of arrays.

    Args:
        score: The formula.
        components: C.
    """
    return (
        f"CREATE OR REPLACE FUNCTION hedged_log_odds({', '.join(f'{one} float8[]' for one in score.given)})\n"
        "RETURNS float8 LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$\n"
        f"SELECT {POSTGRESQL.log_odds(score, components, score.given)}\n$$;\n"
    )


def duckdb_macro(score: Score, components: int) -> str:
    """The statement that makes a macro of lists.

    Args:
        score: The formula.
        components: C.
    """
    return (
        f"CREATE OR REPLACE MACRO hedged_log_odds({', '.join(score.given)}) AS\n"
        f"{DUCKDB.log_odds(score, components, score.given)};\n"
    )
