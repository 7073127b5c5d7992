"""`hedged train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hedged.cli._output import examples, say

EXAMPLES = examples(
    "hedged train demo --out runs/first",
    "hedged train my.toml --out runs/wide --set model.dim=3",
    "hedged train runs/wide/config.toml --out runs/wide --resume",
    "torchrun --nproc-per-node 2 --no-python hedged train demo --out runs/two",
)


def train(
    config: Annotated[
        str,
        typer.Argument(metavar="CONFIG", help="A TOML file, or a built-in config: demo, paper, pets, …"),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="RUN", help="Folder for the run: config, log, weights.")],
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume from the last checkpoint in RUN; gives the same weights.")
    ] = False,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Change one setting of the config; repeatable."),
    ] = None,
) -> None:
    """Train a model.

    Writes config.toml (every setting), log.jsonl, a checkpoint every few hundred steps and finally the model to RUN.
    Ctrl-C saves a checkpoint before it stops; `--resume` continues from there. An existing run is never overwritten.
    Started by torchrun, several processes train one model.
    """
    from hedged.training import load_config
    from hedged.training import train as train_run

    embedder = train_run(load_config(_find(config), overrides or ()), None, out, resume)
    if not embedder.notes:  # another process says it
        return
    say(f"trained {embedder.notes['steps']:,} steps on {embedder.notes['data']}; the model is in {out}")
    say(f"next: hedged evaluate {out}")


def _find(config: str) -> Path:
    """The file of that path, else the config that ships under that name."""
    from hedged.training import shipped_config

    return Path(config) if Path(config).exists() else shipped_config(config)
