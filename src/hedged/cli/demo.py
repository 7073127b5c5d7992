"""`hedged demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hedged.cli._output import Json, examples, print_json, say

EXAMPLES = examples("hedged demo", "hedged demo --offline --out runs/no-network")


def demo(
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Folder for the run. [runs/demo, or runs/demo-offline]"),
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Use scikit-learn's small digits instead of MNIST; needs no network.")
    ] = False,
    json: Json = False,
) -> None:
    """Train and evaluate a small model, and write a report.

    Trains a hedged embedding of 2-digit MNIST, a Gaussian in two dimensions, from scratch in a few minutes; evaluates
    it on clean and corrupt images beside the paper's numbers; writes DIR/metrics.json and DIR/report.html. An
    interrupted demo resumes from its last checkpoint; a finished one is evaluated again.
    """
    from hedged.cli._scores import print_scores
    from hedged.evaluation.demo import run_demo
    from hedged.training import Run

    folder = out or Path("runs/demo-offline" if offline else "runs/demo")
    results = run_demo(folder, offline)
    if json:
        print_json(results.metrics)
        return
    print_scores(results)
    say(f"\nreport: {Run(folder).report_file()}\nnumbers: {Run(folder).metrics_file()}")
