"""Lists of pairs: the options that name them, and `hedged evaluate --pairs`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedged.cli._output import print_json, print_table, say

if TYPE_CHECKING:
    from hedged.evaluation import Evaluation
    from hedged.training import Run

PairsFile = Annotated[
    Path | None,
    typer.Option(
        "--pairs",
        metavar="FILE",
        help="Use these labelled pairs: LFW's pairs.txt, or a .csv or .parquet with columns pathA, pathB and same.",
    ),
]
PairsImages = Annotated[
    Path | None,
    typer.Option("--images", metavar="DIR", help="Folder that the paths in FILE are relative to. [the folder of FILE]"),
]
PART = "pairs"  # in the name of the file of metrics


def evaluate_pairs(run: Run, file: Path, images: Path | None, as_json: bool) -> None:
    """Decide on the pairs that a file lists, print how many were right, and keep the numbers."""
    from hedged._files import write_json
    from hedged.data import read_pairs
    from hedged.decisions import load_decider
    from hedged.evaluation import decide_listed
    from hedged.evaluation.headline import decision_rows

    listed, decider = read_pairs(file, images), load_decider(run.folder, run.embedder.fingerprint())
    calibrated_on = run.config.calibrated_on
    validation = None if decider or calibrated_on else _validation(run)
    decisions = decide_listed(run.embedder, listed, validation, run.config.data.on_broken_file, decider)
    if calibrated_on and not decider:
        decisions = replace(decisions, chosen_on=calibrated_on)
    metrics = {"decisions": decisions.metrics(), "file": str(file)}
    path = run.metrics_file(PART)
    write_json(path, metrics)
    if as_json:
        print_json(metrics)
        return
    rows = [(row.name, f"{row.measured:.{row.decimals}f}") for row in decision_rows(decisions)]
    rows.append(("threshold, in log-odds", f"{decisions.threshold:.3f}"))
    print_table(f"{len(decisions.pairs):,} pairs of {file}", ("", "measured"), rows)
    say(f"\nthe threshold was chosen on {decisions.chosen_on}")
    say(f"numbers: {path}")


def _validation(run: Run) -> Evaluation | None:
    """What a threshold can be chosen on: the validation part of the run's own data, if they are still there."""
    from hedged.evaluation import Evaluation
    from hedged.training import build_data

    if not run.config.data.can_validate():
        return None
    validation = build_data(run.config).validation
    return Evaluation(run.embedder, validation) if validation else None
