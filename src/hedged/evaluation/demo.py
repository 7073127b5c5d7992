"""The demo: a 2-digit, 2-D hedged embedding trained, measured and reported."""

from __future__ import annotations

import logging
import time
from pathlib import Path

from hedged._files import make_folder
from hedged.data import Dataset, Splits
from hedged.errors import RunError
from hedged.evaluation.measure import Results, measure
from hedged.models import Embedder
from hedged.models.saved import DESCRIPTION
from hedged.training import Config, build_data, load_config, shipped_config, train
from hedged.training import checkpoint as checkpoints

logger = logging.getLogger("hedged")


def run_demo(out: Path, offline: bool = False) -> Results:
    """Train the demo in the folder `out`, evaluate it there, and write metrics.json and report.html.

    A folder that holds this demo already is gone on with: an unfinished run is finished, a finished one evaluated.
    `offline` takes scikit-learn's digits instead of MNIST, and says so in everything it writes.
    """
    config = load_config(shipped_config("demo-offline" if offline else "demo"))
    make_folder(out)
    begun = time.monotonic()
    state = _state(config, out)
    data = build_data(config)
    if offline:
        logger.warning("NOT MNIST: this demo uses %s", data.train.source)
    embedder = _trained(config, data, out, state)
    seconds = {"training": time.monotonic() - begun} if state != "finished" else {}
    return measure(config, embedder, data.test["instance"], out, report=True, seconds=seconds)


def _state(config: Config, out: Path) -> str:
    """What `out` holds: nothing ("new"), this demo "unfinished" or "finished"; another run is refused."""
    mine = config.fingerprint()
    if (out / DESCRIPTION).exists():
        if Embedder.load(out).notes.get("fingerprint") == mine:
            return "finished"
    elif not (out / checkpoints.FILE).exists():
        return "new"
    elif checkpoints.load_checkpoint(out, mine):
        return "unfinished"
    raise RunError(f"{out} holds a run with other settings than this demo's: choose another folder with --out")


def _trained(config: Config, data: Splits[Dataset], out: Path, state: str) -> Embedder:
    if state == "finished":
        logger.info("%s holds the trained demo already: evaluating it again (delete the folder to train anew)", out)
        return Embedder.load(out)
    if state == "unfinished":
        logger.info("%s holds an unfinished demo: going on from its last checkpoint", out)
    return train(config, data.train, out, resume=state == "unfinished")
