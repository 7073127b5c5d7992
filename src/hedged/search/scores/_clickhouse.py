"""The score in ClickHouse: a function of arrays.

A lambda of one item gives a name to what is worked out on the way. Others take all the arrays that they need as
arguments: what a lambda takes from outside is copied for each item.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hedged.match._expression import Expression, Language
from hedged.match.score import LOG_MEAN, Score, Step

CLICKHOUSE = Language.like_sql(ln="log({})", where="if({} < {}, {}, {})")
LISTS = {"mean1": "m1", "variance1": "v1", "mean2": "m2", "variance2": "v2"}


def function(score: Score, components: int) -> str:
    """The statement that makes it.

    Args:
        score: The formula.
        components: C; the numbers of the components of a mixture are in one array, one after the other.
    """
    body = _steps(score.log_odds, "log_odds")
    if score.aside is not None:
        for i in (1, 2):
            body = _let(f"aside{i}", f"mean{i}[{score.aside + 1}]", body)
    if components == 1:
        body = _pair(score, 0, 0, body)
    else:
        body = _steps(score.mixed(components), body)
        for i, j in [(i, j) for i in range(components) for j in range(components)]:
            body = _let(f"pair_{i}_{j}", _pair(score, i, j, LOG_MEAN), body)
    return f"CREATE OR REPLACE FUNCTION hedged_log_odds AS ({', '.join(score.given)}) ->\n{body};\n"


def _pair(score: Score, i: int, j: int, body: str) -> str:
    """`body`, with `log_mean` of component i of the first embedding and j of the second."""
    dim = score.dimensions
    sums = {step.name: f"arraySum({_each(step.value)})" for step in score.sums}
    body = _steps(score.by_pair, body, sums)
    for step in reversed(score.by_dimension):
        body = _let(step.name, _each(step.value), body)
    for given in score.given:
        first = (i if given.endswith("1") else j) * dim + 1
        body = _let(LISTS[given], f"arraySlice(CAST({given}, 'Array(Float64)'), {first}, {dim})", body)
    return body


def _each(value: Expression) -> str:
    """The array of what an expression is in each dimension."""
    lists = [LISTS.get(one, one) for one in value.names()]
    items = {one: f"{LISTS.get(one, one)}_d" for one in value.names()}
    return f"arrayMap(({', '.join(items.values())}) -> {CLICKHOUSE.write(value, items)}, {', '.join(lists)})"


def _steps(steps: Sequence[Step], body: str, names: Mapping[str, str] | None = None) -> str:
    """`body`, with a name for each step."""
    for step in reversed(steps):
        body = _let(step.name, CLICKHOUSE.write(step.value, names), body)
    return body


def _let(called: str, value: str, body: str) -> str:
    return f"arrayMap({called} -> {body}, [{value}])[1]"
