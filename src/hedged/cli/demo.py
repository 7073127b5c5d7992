"""`hedged demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hedged.cli._output import Json, examples, print_json

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
    """Train, measure and report a small model.

    A hedged embedding, a Gaussian in two dimensions, is learnt from scratch on 2-digit MNIST in a few minutes, measured
    on clean and corrupt images beside the paper's numbers, and shown in DIR/report.html; the numbers are in
    DIR/metrics.json. Run again, it resumes where it was stopped, or measures the finished run once more.
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
    print(f"\nreport: {Run(folder).report_file()}\nnumbers: {Run(folder).metrics_file()}")
