"""Arguments that name a run, and opening what they name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hedged.models import Embedder

RunFolder = Annotated[
    Path, typer.Argument(metavar="RUN", help="A run folder, written by `hedged train`, `retrofit` or `demo`.")
]
Model = Annotated[
    Path,
    typer.Argument(metavar="RUN", help="A folder with a trained model, or a built-in model such as hedged:ndigit-2d."),
]


def load_embedder(folder: Path) -> Embedder:
    """The model of a finished run; of an unfinished one, how to finish it."""
    from hedged._progress import said_if_slow
    from hedged._startup import start_quickly
    from hedged.cli._interrupts import InterruptedEarly

    with said_if_slow("loading torch and the model; the first time takes longest"):
        with InterruptedEarly():
            start_quickly()
            from hedged.training import Run

        return Run(folder).embedder
