"""The score in usearch: a metric that is compiled, so that its graph is walked by match probability itself.

The formula becomes machine code without a detour by text: numba compiles the loops over components and dimensions, and
`_instructions` puts the arithmetic between them, on numbers that are kept in one array, each in a place of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from hedged.errors import MissingDependencyError
from hedged.match._expression import Expression
from hedged.match.score import LOG_MEAN, LOWEST, Score, Step
from hedged.search._versions import USEARCH, refuse_older

if TYPE_CHECKING:
    from usearch.index import CompiledMetric

INFIX = {"add": "fadd", "subtract": "fsub", "multiply": "fmul", "divide": "fdiv"}
INTRINSICS = {"exp": "llvm.exp", "ln": "llvm.log", "sqrt": "llvm.sqrt", "size": "llvm.fabs"}
COMPARISONS = {"least": "<", "greatest": ">"}


def metric(score: Score, components: int, dim: int, width: int) -> CompiledMetric:
    """Minus the log-odds of two packed embeddings, for `usearch.index.Index(ndim=width, dtype="f32", metric=…)`.

    Args:
        score: The formula.
        components: C.
        dim: D, with the dimensions that are none of z.
        width: How many numbers a packed embedding has.
    """
    try:
        import usearch
        import usearch.index
    except ImportError as error:
        raise MissingDependencyError(
            "a metric for usearch needs usearch, which is not installed: pip install 'hedged[usearch]'"
        ) from error
    refuse_older(usearch, USEARCH, "usearch")
    from usearch.index import CompiledMetric, MetricKind, MetricSignature  # type: ignore[attr-defined]

    compiled = _compile(score, components, dim, width)
    return CompiledMetric(compiled.address, MetricKind.IP, MetricSignature.ArrayArray)


@cache  # usearch keeps an address only: what was compiled stays
def _compile(score: Score, components: int, dim: int, width: int) -> Any:
    """A C function of two packed embeddings in single precision, which gives minus their log-odds."""
    from numba import carray, cfunc, njit, types  # type: ignore[attr-defined]

    steps = (*score.by_dimension, *score.sums, *score.by_pair, *score.log_odds)
    asides = () if score.aside is None else ("aside1", "aside2")
    names = list(dict.fromkeys([*score.given, *(step.name for step in steps), *asides]))
    places = {one: i for i, one in enumerate(names)}
    in_a_dimension = _instructions(score.by_dimension, places, score.sums)
    in_a_pair, at_last = _instructions(score.by_pair, places), _instructions(score.log_odds, places)
    has_variance, aside, latent = score.has_variance, score.aside, score.dimensions
    count, parts, all_means = len(places), len(score.given) // 2, components * dim
    first_sum, last_sum = places[score.sums[0].name], places[score.sums[-1].name] + 1
    log_mean, result = places[LOG_MEAN], places["log_odds"]
    at_aside = places.get("aside1", 0)

    @njit
    def log_odds(first: Any, second: Any) -> Any:
        values = np.zeros(count)
        most, total = -np.inf, 0.0
        for one in range(0, all_means, dim):
            for other in range(0, all_means, dim):
                values[first_sum:last_sum] = 0.0
                for d in range(latent):
                    values[0], values[parts] = first[one + d], second[other + d]
                    if has_variance:
                        values[1], values[parts + 1] = first[all_means + one + d], second[all_means + other + d]
                    in_a_dimension(values)
                in_a_pair(values)
                log_p = values[log_mean]
                if log_p > most:
                    total = total * np.exp(max(most - log_p, LOWEST)) + 1.0
                    most = log_p
                else:
                    total += np.exp(max(log_p - most, LOWEST))
        values[log_mean] = most + np.log(total / components**2)
        if aside is not None:
            values[at_aside], values[at_aside + 1] = first[aside], second[aside]
        at_last(values)
        return values[result]

    numbers = types.CPointer(types.float32)  # type: ignore[no-untyped-call]

    @cfunc(types.float32(numbers, numbers))
    def distance(first: Any, second: Any) -> Any:
        return np.float32(-log_odds(carray(first, width), carray(second, width)))

    return distance


def _instructions(steps: Sequence[Step], places: Mapping[str, int], sums: Sequence[Step] = ()) -> Callable[[Any], None]:
    """A function for compiled code, which works steps out, and adds to sums, on an array of all numbers."""
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba.core import types
    from numba.extending import intrinsic

    @intrinsic
    def work_out(context: Any, values: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, given[0]).data
            known: dict[str, Any] = {}

            def place(name: str) -> Any:
                return builder.gep(data, [ir.Constant(ir.IntType(64), places[name])])

            def work(x: Expression) -> Any:
                if x.operator == "name":
                    if x.text not in known:
                        known[x.text] = builder.load(place(x.text))
                    return known[x.text]
                if x.operator == "number":
                    return ir.Constant(ir.DoubleType(), float(x.text.strip("()")))
                return _emit(builder, x.operator, [work(one) for one in x.operands])

            for step in steps:
                known[step.name] = work(step.value)
                builder.store(known[step.name], place(step.name))
            for step in sums:
                added = builder.fadd(builder.load(place(step.name)), work(step.value))
                builder.store(added, place(step.name))
            return context.get_dummy_value()

        return types.void(values), generate

    return cast(Callable[[Any], None], work_out)


def _emit(builder: Any, operator: str, x: Sequence[Any]) -> Any:
    """One operation in double precision."""
    from llvmlite import ir
    from numba.core import cgutils

    double = ir.DoubleType()
    if operator in INFIX:
        return getattr(builder, INFIX[operator])(*x)
    if operator in INTRINSICS:
        return builder.call(builder.module.declare_intrinsic(INTRINSICS[operator], [double]), x)
    if operator in COMPARISONS:
        return builder.select(builder.fcmp_ordered(COMPARISONS[operator], *x), *x)
    if operator == "where":
        return builder.select(builder.fcmp_ordered("<", *x[:2]), *x[2:])
    if operator == "total":
        added = x[0]
        for one in x[1:]:
            added = builder.fadd(added, one)
        return added
    sinh = ir.FunctionType(double, [double])
    function = cgutils.get_or_insert_function(builder.module, sinh, operator)  # type: ignore[no-untyped-call]
    return builder.call(function, x)
