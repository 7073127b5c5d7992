"""`hedged bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hedged.cli._output import Json, examples, print_json, print_table

EXAMPLES = examples("hedged bench --quick", "hedged bench matching --json", "hedged bench --out results/benchmarks")


def bench(
    group: Annotated[
        str,
        typer.Argument(metavar="[GROUP]", help="matching, million, search, training, images, recipe, or all of them."),
    ] = "all",
    quick: Annotated[bool, typer.Option("--quick", help="Under two minutes: no training and no million rows.")] = False,
    as_json: Json = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Also write table, numbers and growth curves to DIR.")
    ] = None,
) -> None:
    """Measure how fast this is, as ratios to the straightforward ways of computing, side by side.

    Each line says what was measured, what was asked of it, and whether that holds here. Measure on a machine that
    does nothing else.
    """
    from hedged.bench.run import GROUPS, lines, lines_apart, rows, write
    from hedged.cli._output import LOGGER

    measured = []
    for each in GROUPS if group == "all" else (group,):
        for line in (lines_apart if group == "all" else lines)(each, quick):
            measured.append(line)
            if not as_json:
                LOGGER.info("%s: %.3g (%s)", line.name, line.ratio, "holds" if line.holds else "does not hold")
    if as_json:
        print_json([line.content() for line in measured])
    else:
        print_table("Benchmarks", ("benchmark", "ratio", "asked", "holds"), rows(measured))
    if out is not None:
        for path in write(measured, out):
            LOGGER.info("%s", path)
