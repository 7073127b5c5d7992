"""What `hedged evaluate` measures of a run: the rows of its table, the content of metrics.json, and the report."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from hedged import __version__
from hedged._files import write_json
from hedged.data import Dataset
from hedged.evaluation.evaluation import Evaluation
from hedged.evaluation.headline import HeadlineRow, decision_rows, headline_rows
from hedged.evaluation.verification import Decisions, decide
from hedged.models import Embedder
from hedged.training import Config
from hedged.training.config import TrainConfig

logger = logging.getLogger("hedged")


@final
@dataclass(frozen=True, eq=False)
class Results:
    """What was measured: `metrics` as metrics.json has it, `rows` as the table beside the paper's numbers."""

    evaluation: Evaluation
    metrics: Mapping[str, Any]
    rows: tuple[HeadlineRow, ...]


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
    decisions = None if data.paper_task else _decided(evaluation, validation)
    rows, measured = headline_rows(evaluation), evaluation.metrics()
    if decisions:
        rows, measured = (*decision_rows(decisions), *rows), measured | {"decisions": decisions.metrics()}
    settings = {"hedged": __version__, "fingerprint": config.fingerprint(), **config.model_dump(mode="json")}
    spent = {**(seconds or {}), "evaluation": time.monotonic() - begun}
    metrics = measured | {"settings": settings, "seconds": spent}
    write_json(folder / f"metrics{name}.json", metrics)
    if report:
        from hedged.evaluation.report.page import write_report  # late: it draws, and drawing is slow to import

        write_report(evaluation, folder / f"report{name}.html", _settings_shown(config, spent), rows, decisions)
    return Results(evaluation, metrics, rows)


def _decided(evaluation: Evaluation, validation: Dataset | None) -> Decisions:
    evaluation.progress("deciding on pairs")
    return decide(evaluation, Evaluation(evaluation.embedder, validation) if validation else None)


def _optimiser(train: TrainConfig) -> str:
    decay = f"W with a decay of {train.weight_decay:g}" if train.weight_decay else ""
    return f"Adam{decay} at {train.learning_rate:g}"


def _settings_shown(config: Config, seconds: Mapping[str, float]) -> dict[str, str]:
    """The settings that a reader of the report wants to know."""
    train, loss = config.train, config.loss
    return {
        "Training": f"{train.steps:,} steps of {train.batch_size} images, {_optimiser(train)}",
        "Loss": f"{loss.kind}, β = {loss.beta:g}" if loss.kind == "hedged" else loss.kind,
        **({"Split": f"by {config.data.split_by}"} if config.data.split_by else {}),
        "Seed of the training": str(train.seed),
        **{f"Time of {what}": f"{value:.0f} s" for what, value in seconds.items()},
        "hedged": __version__,
    }
