"""The demo: a 2-digit, 2-D hedged embedding trained, measured and reported."""

from __future__ import annotations

import logging
import time
from pathlib import Path

from hedged.errors import RunError
from hedged.evaluation.results import Results, measure
from hedged.training import Run, build_data, load_config, shipped_config, train

logger = logging.getLogger("hedged")


def run_demo(out: str | Path, offline: bool = False) -> Results:
    """Train the demo, evaluate it, and write metrics.json and report.html.

    If the folder already holds this demo, it is resumed where it is unfinished, and evaluated again where it is
    finished.

    Args:
        out: The folder of the run.
        offline: Take scikit-learn's digits instead of MNIST, and say so in everything that is written.
    """
    run, config = Run(out), load_config(shipped_config("demo-offline" if offline else "demo"))
    begun = time.monotonic()
    state = run.state
    if state == "finished" and run.digest != config.digest():
        raise RunError(f"{out} holds a run with other settings than this demo's: choose another folder with --out")
    if state != "finished":
        run.prepare(config, resume=state == "unfinished")  # a folder that will not do is refused before any download
    data = build_data(config)
    if offline:
        logger.warning("NOT MNIST: this demo uses %s", data.train.source)
    if state == "finished":
        logger.info("%s holds the trained demo already: evaluating it again (delete the folder to train anew)", out)
        return measure(run, run.embedder, data.test["instance"], report=True)
    if state == "unfinished":
        logger.info("%s holds an unfinished demo: resuming from its last checkpoint", out)
    embedder = train(config, data.train, out, resume=state == "unfinished")
    seconds = {"training": time.monotonic() - begun}
    return measure(run, embedder, data.test["instance"], report=True, seconds=seconds)
