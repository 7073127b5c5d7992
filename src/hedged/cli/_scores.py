"""Measurements as a table, beside the paper's."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from hedged.cli._output import print_table, say

if TYPE_CHECKING:
    from hedged.evaluation import Results

UNCERTAINTY = "Mean uncertainty η"
NOVELTY = "Mean novelty"


def print_scores(results: Results, part: str | None = None) -> None:
    """The headline table, and a loud word if the digits are not MNIST's."""
    from hedged.evaluation.headline import columns
    from hedged.models.embedder import UNKNOWN_NOVELTY

    data = results.evaluation.data
    header = ("", *columns(results.rows, data.paper_task))
    rows: list[tuple[str, ...]] = []
    for group, members in groupby(results.rows, key=lambda row: row.group):
        rows += [(group, "", "", ""), *((f"  {row.name}", *row.texts()) for row in members)]
    rows.append((UNCERTAINTY, "", "", ""))
    etas = results.evaluation.uncertainty.items()
    rows += [(f"  {condition} {data.inputs}", f"{eta.mean():.3f}", "", "") for condition, eta in etas]
    novelty = results.evaluation.novelty
    rows.append((NOVELTY if novelty else f"{NOVELTY}: {UNKNOWN_NOVELTY}", "", "", ""))
    if novelty:
        rows += [(f"  {condition} {data.inputs}", f"{new.mean():.3f}", "", "") for condition, new in novelty.items()]
    kind = "validation" if part == "validation" else "test"
    named = f" ({part})" if part and part != kind else ""
    title = f"{len(data):,} {kind} {data.inputs} of {data.contents}{named}, of {data.source}"
    print_table(title, header, [row[: len(header)] for row in rows])
    decisions = results.decisions
    if decisions:
        say(f"\npairs were decided at log-odds of {decisions.threshold:.3f}, chosen on {decisions.chosen_on}")
    if data.paper_task and not data.paper_task.comparable:
        say(f"\nNOT MNIST: the digits are {data.source}.")
        say("The paper's numbers are for MNIST: they stand here for orientation, not for comparison.")
