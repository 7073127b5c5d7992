"""What `hedged evaluate` measures of a run: the rows of its table, the content of metrics.json, and the report."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

from hedged import __version__
from hedged._files import write_json
from hedged.data import Dataset
from hedged.evaluation.evaluation import Evaluation
from hedged.evaluation.headline import HeadlineRow, decision_rows, headline_rows
from hedged.evaluation.verification import Decisions, decide
from hedged.models import Embedder
from hedged.training import Run

if TYPE_CHECKING:
    from hedged.decisions import Decider

logger = logging.getLogger("hedged")


@final
@dataclass(frozen=True, eq=False)
class Results:
    """What was measured of a run.

    Args:
        evaluation: The measurements themselves.
        metrics: All numbers, as metrics.json has them.
        rows: The headline table, beside the paper's numbers.
        decisions: Pairs decided at one threshold, if they were.
    """

    evaluation: Evaluation
    metrics: Mapping[str, Any]
    rows: tuple[HeadlineRow, ...]
    decisions: Decisions | None = None


def measure(
    run: Run,
    embedder: Embedder,
    data: Dataset,
    part: str = "",
    report: bool = False,
    seconds: Mapping[str, float] | None = None,
    validation: Dataset | None = None,
) -> Results:
    """Evaluate a finished run and write metrics.json and, if wanted, report.html.

    Pairs are decided on by the saved calibration of the run if it has one. Without one, pairs of your own data are
    decided on at the threshold that is best on `validation`, or at p = 0.5 if the model came calibrated.

    Args:
        run: The run.
        embedder: Its model.
        data: The test set.
        part: What they are called in the names of the files, such as "unseen"; empty for the main test set.
        report: Whether to write the report.
        seconds: How long earlier work took, shown beside the time of the evaluation.
        validation: Inputs of other identities to choose a threshold on.
    """
    from hedged.decisions import load_decider  # late: slow to import

    begun = time.monotonic()
    config = run.config
    evaluation = Evaluation(embedder, data, progress=logger.info)
    decider = load_decider(run.folder, embedder.fingerprint())
    decisions = None
    if decider or not data.paper_task:
        decisions = _decided(evaluation, validation, decider, config.calibrated_on)
    rows, measured = headline_rows(evaluation), evaluation.metrics()
    if decisions:
        rows, measured = (*decision_rows(decisions), *rows), measured | {"decisions": decisions.metrics()}
    settings = {"hedged": __version__, "digest": config.digest(), **config.model_dump(mode="json")}
    spent = {**(seconds or {}), "evaluation": time.monotonic() - begun}
    metrics = measured | {"settings": settings, "seconds": spent}
    write_json(run.metrics_file(part), metrics)
    if report:
        from hedged.evaluation.report.page import write_report  # late: what draws is slow to import

        times = {f"Time of {what}": f"{value:.0f} s" for what, value in spent.items()}
        shown = {**config.shown(data.inputs), **times, "hedged": __version__}
        write_report(evaluation, run.report_file(part), shown, rows, decisions)
    return Results(evaluation, metrics, rows, decisions)


def _decided(
    evaluation: Evaluation, validation: Dataset | None, decider: Decider | None, calibrated_on: str
) -> Decisions:
    evaluation.progress("deciding on pairs")
    if calibrated_on and not decider:
        return replace(decide(evaluation), chosen_on=calibrated_on)
    chosen_on = Evaluation(evaluation.embedder, validation) if validation and not decider else None
    return decide(evaluation, chosen_on, decider=decider)
