"""The table at the head of the page: what was measured, beside what the paper reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import final

from hedged.data import NDigit
from hedged.distributions import Distribution, Mixture, Point
from hedged.evaluation.evaluation import CONDITIONS, GRID, Condition, Evaluation
from hedged.evaluation.reference import Metric, find_cell
from hedged.evaluation.report.curves import Curves
from hedged.evaluation.report.markup import escape
from hedged.metrics import Vote

VERIFICATION = "Verification, average precision"
AP_CORRELATION = "Does η tell when verification fails? (Kendall’s τ)"
KNN_CORRELATION = "Does η tell when identification fails? (Kendall’s τ)"


@final
@dataclass(frozen=True)
class HeadlineRow:
    """A number measured and the paper's, each None where there is none; shown with `decimals`."""

    group: str
    name: str
    measured: float | None
    paper: float | None
    decimals: int = 3


def model_name(z: Distribution) -> str:
    """The model as the paper names it: "point", or "mog-C" for C Gaussians."""
    if isinstance(z, Point):
        return "point"
    return f"mog-{z.parts()[0].shape[-2] if isinstance(z, Mixture) else 1}"


def headline_rows(evaluation: Evaluation, curves: Curves | None = None) -> tuple[HeadlineRow, ...]:
    """The measurements of the paper's tables on this test set; `curves` saves measuring them again."""
    rows = _rows(evaluation, curves or Curves.measure(evaluation))
    return tuple(row for row in rows if row.measured is not None or row.paper is not None)


def _rows(evaluation: Evaluation, curves: Curves) -> Iterator[HeadlineRow]:
    z = evaluation.embeddings["clean"]
    data, model = evaluation.data, model_name(z)

    def paper(metric: Metric, gallery: Condition, probe: Condition, vote: Vote | None = None) -> float | None:
        if not isinstance(data, NDigit):
            return None
        cell = find_cell(data.n_digits, z.dim, model, metric, gallery, probe, vote)
        return cell.paper if cell else None

    for c in CONDITIONS:
        yield HeadlineRow(VERIFICATION, f"{c} images", evaluation.verification_ap(c), paper("verification_ap", c, c))
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
        yield HeadlineRow(AP_CORRELATION, f"{c} images", curves.ap_kendall(c), reported, decimals=2)
    for c in CONDITIONS:
        reported = paper("knn_correlation", c, "clean", "majority")
        yield HeadlineRow(KNN_CORRELATION, _task(c, "clean"), curves.knn_kendall(c), reported, decimals=2)


def _task(gallery: Condition, probe: Condition) -> str:
    return f"{probe} among {gallery}"


def table(rows: Sequence[HeadlineRow], comparable: bool) -> str:
    """The rows as an HTML table, grouped: the paper's column if it has any such number, differences if they compare."""
    width = 1 if all(row.paper is None for row in rows) else 3 if comparable else 2
    heads = ("Measured", "Paper", "Difference")[:width]
    parts = ['<table class="headline"><thead><tr><th scope="col"></th>']
    parts += [f'<th scope="col">{head}</th>' for head in heads]
    parts.append("</tr></thead>")
    for group, members in groupby(rows, key=lambda row: row.group):
        parts.append(f'<tbody><tr><th scope="rowgroup" colspan="{len(heads) + 1}">{escape(group)}</th></tr>')
        parts += [_table_row(row, width) for row in members]
        parts.append("</tbody>")
    return "\n".join([*parts, "</table>"])


def _table_row(row: HeadlineRow, width: int) -> str:
    difference = None
    if row.measured is not None and row.paper is not None:
        difference = round(row.measured, row.decimals) - row.paper  # of the numbers as shown
    cells = (
        f'<td class="measured">{_number(row.measured, row.decimals)}</td>',
        f"<td>{_number(row.paper, row.decimals)}</td>",
        f'<td class="difference">{_number(difference, row.decimals, sign="+")}</td>',
    )
    return f'<tr><th scope="row">{escape(row.name)}</th>{"".join(cells[:width])}</tr>'


def _number(value: float | None, decimals: int, sign: str = "-") -> str:
    if value is None:
        return "–"
    return f"{value:{sign}.{decimals}f}".replace("-", "−")
