"""`hedged bench`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedged.cli._output import Json, examples, print_json, print_table

if TYPE_CHECKING:
    from hedged.bench.timing import Line

EXAMPLES = examples(
    "hedged bench --quick",
    "hedged bench matching --json",
    "hedged bench --out results/benchmarks",
    "hedged bench decisions --out results/decisions",
    "hedged bench uncertainty --vectors dogs.npz --out results/uncertainty",
)
DECISIONS, UNCERTAINTY = "decisions", "uncertainty"


def bench(
    group: Annotated[
        str,
        typer.Argument(
            metavar="[GROUP]",
            help="matching, million, search, training, images, recipe or all; or decisions, or uncertainty.",
        ),
    ] = "all",
    quick: Annotated[
        bool, typer.Option("--quick", help="Under two minutes: skip training and the million rows.")
    ] = False,
    as_json: Json = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Also write the table, numbers and growth curves to DIR."),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option("--run", metavar="RUN", help="For decisions: use the photos of this run instead of digits."),
    ] = None,
    vectors: Annotated[
        list[Path] | None,
        typer.Option("--vectors", metavar="FILE", help="For uncertainty: a set made by tools/make_vectors.py; repeat."),
    ] = None,
    processes: Annotated[
        int, typer.Option("--processes", min=1, metavar="N", help="For uncertainty: sets that are measured at a time.")
    ] = 1,
) -> None:
    """Measure speed and memory against plain implementations.

    Each line shows a ratio of two measurements taken in turns, the target, and whether it holds. Run it on an otherwise
    idle machine. `decisions` measures calibration, false-match rates and abstention instead, on identities that were
    not calibrated on; `uncertainty` compares the field's ways to be uncertain on vectors, resumes what --out has, and
    takes up to an hour. Neither is part of `all`.
    """
    from hedged.bench.run import rows, write
    from hedged.cli._output import LOGGER
    from hedged.errors import ConfigError

    if run is not None and group != DECISIONS:
        raise ConfigError(f"--run is for `hedged bench {DECISIONS}` only: leave it out")
    if vectors and group != UNCERTAINTY:
        raise ConfigError(f"--vectors is for `hedged bench {UNCERTAINTY}` only: leave it out")
    if group == UNCERTAINTY:
        _fight(vectors or [], out, processes)
        return
    groups = {group: _decided(run, out)} if group == DECISIONS else _timed(group, quick, as_json)
    measured = [line for each in groups.values() for line in each]
    if as_json:
        print_json([line.content() for line in measured])
    else:
        print_table("Benchmarks", ("benchmark", "ratio", "asked", "holds"), rows(measured))
    if out is not None and group != DECISIONS:
        for path in write(groups, out):
            LOGGER.info("%s", path)


def _timed(group: str, quick: bool, as_json: bool) -> dict[str, list[Line]]:
    from hedged.bench.run import GROUPS, lines, lines_apart
    from hedged.cli._output import LOGGER

    measured: dict[str, list[Line]] = {}
    for each in GROUPS if group == "all" else (group,):
        measured[each] = []
        for line in (lines_apart if group == "all" else lines)(each, quick):
            measured[each].append(line)
            if not as_json:
                LOGGER.info("%s: %.3g (%s)", line.name, line.ratio, "holds" if line.holds else "does not hold")
    return measured


def _decided(run: Path | None, out: Path | None) -> list[Line]:
    from hedged.bench.decisions_page import write_sets
    from hedged.bench.decisions_sets import NUMBERS, PHOTOS, lines, measure_digits, measure_photos
    from hedged.cli._output import LOGGER
    from hedged.training import Run

    sets = {name: measure_digits(name) for name in NUMBERS} if run is None else {PHOTOS: measure_photos(Run(run))}
    if out is not None:
        for path in write_sets(sets, out):
            LOGGER.info("%s", path)
    return [line for name, content in sets.items() for line in lines(name, content)]


def _fight(vectors: list[Path], out: Path | None, processes: int) -> None:
    from hedged.bench.uncertainty.fight import fight
    from hedged.bench.uncertainty.page import write_page
    from hedged.bench.uncertainty.sets import offline_digits, read_set
    from hedged.cli._output import LOGGER
    from hedged.errors import ConfigError

    if out is None:
        raise ConfigError(f"`hedged bench {UNCERTAINTY}` writes as it goes, and resumes: give --out DIR")
    sets = [read_set(path) for path in vectors]
    for path in [*fight([*sets, offline_digits()], out, processes=processes), *write_page(out)]:
        LOGGER.info("%s", path)
