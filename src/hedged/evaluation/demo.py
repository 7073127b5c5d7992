"""The demo: a 2-digit, 2-D hedged embedding trained, measured and reported; and the last two for any other run."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from hedged import __version__
from hedged._files import make_folder, write_json
from hedged.data import Dataset, NDigit, NDigitSplits
from hedged.errors import RunError
from hedged.evaluation import Decisions, decide
from hedged.evaluation.evaluation import Evaluation
from hedged.evaluation.headline import HeadlineRow, headline_rows
from hedged.evaluation.report.decisions import decision_rows
from hedged.evaluation.report.page import write_report
from hedged.models import Embedder
from hedged.models.embedder import DESCRIPTION
from hedged.training import Config, build_ndigit, load_config, shipped_config, train
from hedged.training import checkpoint as checkpoints
from hedged.training.config import TrainConfig

logger = logging.getLogger("hedged")


@final
@dataclass(frozen=True, eq=False)
class Results:
    """What was measured: `metrics` as metrics.json has it, `rows` as the table beside the paper's numbers."""

    evaluation: Evaluation
    metrics: Mapping[str, Any]
    rows: tuple[HeadlineRow, ...]


def run_demo(out: Path, offline: bool = False) -> Results:
    """Train the demo in the folder `out`, evaluate it there, and write metrics.json and report.html.

    A folder that holds this demo already is gone on with: an unfinished run is finished, a finished one evaluated.
    `offline` takes scikit-learn's digits instead of MNIST, and says so in everything it writes.
    """
    config = load_config(shipped_config("demo-offline" if offline else "demo"))
    make_folder(out)
    begun = time.monotonic()
    state = _state(config, out)
    data = build_ndigit(config)
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


def _trained(config: Config, data: NDigitSplits, out: Path, state: str) -> Embedder:
    if state == "finished":
        logger.info("%s holds the trained demo already: evaluating it again (delete the folder to train anew)", out)
        return Embedder.load(out)
    if state == "unfinished":
        logger.info("%s holds an unfinished demo: going on from its last checkpoint", out)
    return train(config, data.train, out, resume=state == "unfinished")


def measure(
    config: Config,
    embedder: Embedder,
    data: Dataset,
    folder: Path,
    name: str = "",
    report: bool = False,
    seconds: Mapping[str, float] | None = None,
    validation: Dataset | None = None,
) -> Results:
    """Evaluate a run on `data`; write metrics.json and, if wanted, report.html, with `name` before the dot.

    Images of your own are decided on too, at a threshold chosen on `validation`.
    """
    begun = time.monotonic()
    evaluation = Evaluation(embedder, data, progress=logger.info)
    decisions = None if isinstance(data, NDigit) else _decided(evaluation, validation)
    rows, measured = headline_rows(evaluation), evaluation.metrics()
    if decisions:
        rows, measured = (*decision_rows(decisions), *rows), measured | {"decisions": decisions.metrics()}
    settings = {"hedged": __version__, "fingerprint": config.fingerprint(), **config.model_dump(mode="json")}
    spent = {**(seconds or {}), "evaluation": time.monotonic() - begun}
    metrics = measured | {"settings": settings, "seconds": spent}
    write_json(folder / f"metrics{name}.json", metrics)
    if report:
        write_report(evaluation, folder / f"report{name}.html", _told(config, spent), rows, decisions)
    return Results(evaluation, metrics, rows)


def _decided(evaluation: Evaluation, validation: Dataset | None) -> Decisions:
    evaluation.progress("deciding on pairs")
    return decide(evaluation, Evaluation(evaluation.embedder, validation) if validation else None)


def _optimiser(train: TrainConfig) -> str:
    decay = f"W with a decay of {train.weight_decay:g}" if train.weight_decay else ""
    return f"Adam{decay} at {train.learning_rate:g}"


def _told(config: Config, seconds: Mapping[str, float]) -> dict[str, str]:
    """The settings that a reader of the report wants to know."""
    train, loss = config.train, config.loss
    return {
        "Training": f"{train.steps:,} steps of {train.batch_size} images, {_optimiser(train)}",
        "Loss": f"{loss.kind}, β = {loss.beta:g}" if loss.kind == "hedged" else loss.kind,
        "Split": f"by {config.data.split}",
        "Seed of the training": str(train.seed),
        **{f"Time of {what}": f"{value:.0f} s" for what, value in seconds.items()},
        "hedged": __version__,
    }
