"""The section of numbers: what was measured beside what the paper reports, and the settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from hedged.evaluation.evaluation import Evaluation
from hedged.evaluation.headline import HeadlineRow, columns, model_name
from hedged.evaluation.report.section import Section
from hedged.evaluation.report.settings import facts


class Line(NamedTuple):
    """A row of the table: its name, and its numbers as text, one a column."""

    name: str
    numbers: tuple[str, ...]


def numbers_section(evaluation: Evaluation, rows: Sequence[HeadlineRow], settings: Mapping[str, str]) -> Section:
    """The table and the settings.

    The paper's column is there if it has any such number, differences if the numbers compare.

    Args:
        evaluation: The test set, embedded.
        rows: What was measured.
        settings: Shown after the facts that the evaluation knows itself; a fact of the same name is replaced.
    """
    has_paper = any(row.paper is not None for row in rows)
    shown = columns(rows, evaluation.data.paper_task)
    groups = [
        (group, [Line(row.name, tuple(map(_typeset, row.texts()[: len(shown)]))) for row in members])
        for group, members in groupby(rows, key=lambda row: row.group)
    ]
    content = {
        "columns": [column.capitalize() for column in shown],
        "groups": groups,
        "case": _case(evaluation),
        "has_paper": has_paper,
        "has_gaps": any(row.paper is None or row.measured is None for row in rows),
        "settings": facts(evaluation) | dict(settings),
    }
    return Section("numbers.html", content)


def _case(evaluation: Evaluation) -> str | None:
    """Which of the paper's models this would be; None on data that the paper does not have."""
    task, z = evaluation.data.paper_task, evaluation.embeddings["clean"]
    if task is None:
        return None
    model = model_name(z).replace("mog", "MoG").replace("point", "point embeddings")
    return f"{model}, N = {task.digits}, D = {z.dim}"


def _typeset(number: str) -> str:
    """A number with a minus, and a dash where there is none."""
    return "–" if number == "-" else number.replace("-", "−")
