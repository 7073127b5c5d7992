"""Measurements as a table, beside the paper's."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from hedged.cli._output import print_table

if TYPE_CHECKING:
    from hedged.evaluation.headline import HeadlineRow
    from hedged.evaluation.measure import Results

UNCERTAINTY = "Mean uncertainty η"


def print_scores(results: Results, part: str | None = None) -> None:
    """The headline table, and a loud word if the digits are not MNIST's."""
    data = results.evaluation.data
    header = ("", "measured", "paper", "difference")[: _width(results)]
    rows: list[tuple[str, ...]] = []
    for group, members in groupby(results.rows, key=lambda row: row.group):
        rows += [(group, "", "", ""), *map(_cells, members)]
    rows.append((UNCERTAINTY, "", "", ""))
    etas = results.evaluation.uncertainty.items()
    rows += [(f"  {condition} images", f"{eta.mean():.3f}", "", "") for condition, eta in etas]
    kind = "validation" if part == "validation" else "test"
    named = f" ({part} numbers)" if part in ("seen", "unseen", "all") else ""
    title = f"{len(data):,} {kind} images of {data.contents}{named}, of {data.source}"
    print_table(title, header, [row[: len(header)] for row in rows])
    decisions = results.decisions
    if decisions and decisions.decider:
        print(f"\npairs were decided at log-odds of {decisions.threshold:.3f}, chosen on {decisions.chosen_on}")
    if data.paper_task and not data.paper_task.comparable:
        print(f"\nNOT MNIST: the digits are {data.source}.")
        print("The paper's numbers are for MNIST: they stand here for orientation, not for comparison.")


def _width(results: Results) -> int:
    """How many columns make sense: the paper's if it has any numbers, the difference if they compare."""
    if all(row.paper is None for row in results.rows):
        return 2
    task = results.evaluation.data.paper_task
    return 4 if task and task.comparable else 3


def _cells(row: HeadlineRow) -> tuple[str, ...]:
    both = row.measured is not None and row.paper is not None
    difference = f"{row.measured - row.paper:+.{row.decimals}f}" if both else ""  # type: ignore[operator]
    return f"  {row.name}", _number(row.measured, row.decimals), _number(row.paper, row.decimals), difference


def _number(value: float | None, decimals: int) -> str:
    return "-" if value is None else f"{value:.{decimals}f}"
