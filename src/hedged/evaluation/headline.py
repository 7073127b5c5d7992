"""The rows of the headline table: what was measured, beside what the paper reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

from hedged.data import PaperTask
from hedged.distributions import Distribution
from hedged.evaluation.curves import Curves
from hedged.evaluation.evaluation import CONDITIONS, GRID, Condition, Evaluation
from hedged.evaluation.reference import Measure, Metric, find_cell
from hedged.evaluation.verification import Decisions
from hedged.metrics import Vote, is_constant, uncertainty_auroc

DECISIONS = "Same or not, at one threshold"
CALIBRATED = "Accept, reject or abstain, by the saved calibration"
COLUMNS = ("measured", "paper", "difference")
VERIFICATION = "Verification, average precision"
AP_CORRELATION = "Does η tell when verification fails? (Kendall’s τ)"
TOLD = "Told apart, area under the ROC curve"
KNN_CORRELATION = "Does η tell when identification fails? (Kendall’s τ)"


@final
@dataclass(frozen=True)
class HeadlineRow:
    """A row of the headline table.

    Args:
        group: What it is listed under.
        name: What was measured.
        measured: The number, or None where there is none.
        paper: The paper's number, or None where it has none.
        decimals: How many are shown.
    """

    group: str
    name: str
    measured: float | None
    paper: float | None
    decimals: int = 3

    def texts(self) -> tuple[str, str, str]:
        """The numbers of the `COLUMNS` as text, "-" where there is none; the difference is of the numbers as shown."""
        difference = None
        if self.measured is not None and self.paper is not None:
            difference = round(self.measured, self.decimals) - self.paper
        return self._text(self.measured), self._text(self.paper), self._text(difference, "+")

    def _text(self, value: float | None, sign: str = "-") -> str:
        return "-" if value is None else f"{value:{sign}.{self.decimals}f}"


def model_name(z: Distribution) -> str:
    """The model as the paper names it: "point", or "mog-C" for C Gaussians.

    Args:
        z: An embedding of it.
    """
    return "point" if z.is_point else f"mog-{z.n_components}"


def columns(rows: Sequence[HeadlineRow], task: PaperTask | None) -> tuple[str, ...]:
    """The columns that make sense: the paper's if it has any of these numbers, the difference if they compare.

    Args:
        rows: The table.
        task: The task of the paper that was measured, if it was one.
    """
    if all(row.paper is None for row in rows):
        return COLUMNS[:1]
    return COLUMNS if task and task.comparable else COLUMNS[:2]


def headline_rows(evaluation: Evaluation) -> tuple[HeadlineRow, ...]:
    """The measurements of the paper's tables on this test set.

    Args:
        evaluation: The measurements.
    """
    rows = _rows(evaluation, Curves.measure(evaluation))
    return tuple(row for row in rows if row.measured is not None or row.paper is not None)


def _rows(evaluation: Evaluation, curves: Curves) -> Iterator[HeadlineRow]:
    z = evaluation.embeddings["clean"]
    task, model = evaluation.data.paper_task, model_name(z)

    def paper(metric: Metric, gallery: Condition, probe: Condition, vote: Vote | None = None) -> float | None:
        if task is None:
            return None
        cell = find_cell(task.digits, z.dim, model, Measure(metric, gallery, probe, vote))
        return cell.paper if cell else None

    for c in CONDITIONS:
        yield HeadlineRow(
            VERIFICATION, f"{c} {evaluation.data.inputs}", evaluation.verification_ap(c), paper("verification_ap", c, c)
        )
    neighbours = f"Identification by {evaluation.neighbours_each} neighbours"
    for c in CONDITIONS:
        reported = paper("knn_accuracy", c, "clean", "majority")
        yield HeadlineRow(f"{neighbours}, majority", _task(c, "clean"), evaluation.knn_accuracy(c), reported)
    for gallery, probe in GRID:
        measured = evaluation.knn_accuracy(gallery, probe, "plurality")
        reported = paper("knn_accuracy", gallery, probe, "plurality")
        yield HeadlineRow(f"{neighbours}, plurality", _task(gallery, probe), measured, reported)
    for c in CONDITIONS:
        reported = paper("ap_correlation", c, c)
        yield HeadlineRow(AP_CORRELATION, f"{c} {evaluation.data.inputs}", curves.ap_kendall(c), reported, decimals=2)
    for c in CONDITIONS:
        reported = paper("knn_correlation", c, "clean", "majority")
        yield HeadlineRow(KNN_CORRELATION, _task(c, "clean"), curves.knn_kendall(c), reported, decimals=2)
    eta, novelty = evaluation.uncertainty, evaluation.novelty
    if not all(is_constant(values) for values in eta.values()):
        yield HeadlineRow(TOLD, "corrupt from clean, by η", uncertainty_auroc(eta["clean"], eta["corrupt"]), None)
    if novelty:
        told = uncertainty_auroc(novelty["clean"], novelty["corrupt"])
        yield HeadlineRow(TOLD, "corrupt from clean, by novelty", told, None)
    yield HeadlineRow(TOLD, "strangers from the enrolled, by P(nobody)", evaluation.strangers_told, None)


def _task(gallery: Condition, probe: Condition) -> str:
    return f"{probe} among {gallery}"


def decision_rows(decisions: Decisions) -> tuple[HeadlineRow, ...]:
    """The decisions as rows of the headline table.

    Args:
        decisions: Pairs decided at one threshold.
    """
    kept, curve, calibrated = decisions.without_a_fifth, decisions.curve, decisions.outcome
    rows: tuple[HeadlineRow, ...] = (
        HeadlineRow(DECISIONS, "balanced accuracy", decisions.balanced_accuracy, None),
        HeadlineRow(DECISIONS, "balanced accuracy without the fifth of highest η", kept, None),
        HeadlineRow(DECISIONS, "area under the ROC curve", decisions.roc_auc, None),
        HeadlineRow(DECISIONS, "τ of balanced accuracy over 20 bins of η", curve.kendall if curve else None, None, 2),
    )
    if calibrated:
        rows += (
            HeadlineRow(CALIBRATED, "pairs left undecided", calibrated.abstained, None),
            HeadlineRow(CALIBRATED, "errors among the decided", calibrated.error, None),
            HeadlineRow(CALIBRATED, "non-matches accepted", calibrated.false_match_rate, None),
            HeadlineRow(CALIBRATED, "matches rejected", calibrated.false_non_match_rate, None),
        )
    return tuple(row for row in rows if row.measured is not None)
