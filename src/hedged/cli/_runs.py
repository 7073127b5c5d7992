"""Opening what training left behind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedged.errors import RunError

if TYPE_CHECKING:
    from hedged.models import Embedder
    from hedged.training import Config

Run = Annotated[Path, typer.Argument(metavar="RUN", help="A folder that `hedged train` or `hedged demo` has filled.")]
Model = Annotated[
    Path,
    typer.Argument(metavar="RUN", help="A folder with a trained model, or one that ships, such as hedged:ndigit-2d."),
]


def load_embedder(run: Path) -> Embedder:
    """The model of a finished run; of an unfinished one, how to finish it."""
    from hedged.models import Embedder
    from hedged.models.saved import DESCRIPTION
    from hedged.training import checkpoint

    if (run / checkpoint.FILE).exists() and not (run / DESCRIPTION).exists():
        raise RunError(
            f"the run in {run} is not finished, so there is no model yet: finish it with `hedged train "
            f"{run / 'config.toml'} --out {run} --resume`"
        )
    return Embedder.load(run)


def load_run(run: Path) -> tuple[Config, Embedder]:
    """The model of a run and the config it was trained with."""
    from hedged.training import load_config

    embedder = load_embedder(run)
    if not (run / "config.toml").exists():
        raise RunError(
            f"{run} holds a model without its config.toml, which says what to evaluate it on: give a folder that "
            "`hedged train` has filled"
        )
    config = load_config(run / "config.toml")
    if embedder.architecture != config.architecture:
        raise RunError(
            f"{run} holds the model of another config: it takes images of {embedder.architecture.shape} and is "
            f"{embedder.architecture.head} in {embedder.architecture.dim} dimensions, {run / 'config.toml'} says "
            f"{config.architecture.shape}, {config.architecture.head} and {config.architecture.dim}; restore the files "
            "of one run"
        )
    return config, embedder
