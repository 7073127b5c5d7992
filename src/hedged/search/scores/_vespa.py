"""The score in Vespa: a rank profile, whose second phase the content nodes compute. It is written, and was not run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hedged.match._expression import Language
from hedged.match.score import LOG_MEAN, Score, Step

TENSORS = Language.like_sql(ln="log({})", least="min({}, {})", greatest="max({}, {})", where="if({} < {}, {}, {})")
GIVEN = {
    "mean1": "query(mean)",
    "variance1": "query(variance)",
    "mean2": "attribute(mean)",
    "variance2": "attribute(variance)",
}
PROFILE = """\
# Written by hedged, and not run. The schema has {fields}
# The first phase ranks what nearestNeighbor finds in the field mean.
rank-profile hedged {{
    inputs {{
{inputs}
    }}
{functions}
    first-phase {{
        expression: closeness(field, mean)
    }}
    second-phase {{
        expression: hedged_log_odds
        rerank-count: 1000
    }}
}}
"""


def profile(score: Score, components: int, dim: int) -> str:
    """The rank profile.

    Args:
        score: The formula.
        components: C.
        dim: D, with the dimensions that are none of z.
    """
    shape = f"tensor<float>({'' if components == 1 else f'c[{components}], '}d[{dim}])"
    given = [GIVEN[one] for one in score.given]
    fields = [f"{one} of type {shape}" for one in given if one.startswith("attribute")]
    inputs = [f"        {one} {shape}" for one in given if one.startswith("query")]
    written: list[str] = []
    pairs = [(i, j) for i in range(components) for j in range(components)]
    for i, j in pairs:
        written += _pair(score, i, j, components, dim)
    if components > 1:
        written += _functions(score.mixed(components), {})
    asides = {f"aside{i}": f"{GIVEN[f'mean{i}']}{{d:{score.aside}}}" for i in (1, 2)} if score.aside is not None else {}
    written += _functions(score.log_odds, asides)
    return PROFILE.format(fields=f"{' and '.join(fields)}.", inputs="\n".join(inputs), functions="\n".join(written))


def _pair(score: Score, i: int, j: int, components: int, dim: int) -> list[str]:
    """The functions of component i of the query and j of the document."""
    names = {}
    for one in score.given:
        place = [] if components == 1 else [f"c:{i if one.endswith('1') else j}"]
        if place or score.dimensions < dim:
            labels = ", ".join([*place, "d:(d)"])
            names[one] = f"tensor<double>(d[{score.dimensions}])({GIVEN[one]}{{{labels}}})"
        else:
            names[one] = GIVEN[one]
    for step in (*score.by_dimension, *score.sums, *score.by_pair):
        names[step.name] = f"hedged_{_of_pair(step.name, i, j, components)}"
    sums = [f"reduce({TENSORS.write(step.value, names)}, sum, d)" for step in score.sums]
    return [
        *(_function(names[step.name], TENSORS.write(step.value, names)) for step in score.by_dimension),
        *(_function(names[step.name], text) for step, text in zip(score.sums, sums, strict=True)),
        *(_function(names[step.name], TENSORS.write(step.value, names)) for step in score.by_pair),
    ]


def _of_pair(called: str, i: int, j: int, components: int) -> str:
    if components == 1:
        return called
    return f"pair_{i}_{j}" if called == LOG_MEAN else f"{called}_{i}_{j}"


def _functions(steps: Sequence[Step], names: Mapping[str, str]) -> list[str]:
    every = [one for step in steps for one in (step.name, *step.value.names())]
    called = {**{one: f"hedged_{one}" for one in every}, **names}
    return [_function(called[step.name], TENSORS.write(step.value, called)) for step in steps]


def _function(called: str, expression: str) -> str:
    return f"    function {called}() {{\n        expression: {expression}\n    }}"
