"""`write_report`: an evaluation as one HTML file that needs nothing else, neither files nor network.

Each section is a function that returns plain data, and a file in `templates/` that shows it. Jinja2 escapes whatever
it is given: names of identities, paths and settings come from outside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from hedged._files import write_text
from hedged.evaluation.curves import CONSTANT_ETA, Curves
from hedged.evaluation.evaluation import Evaluation
from hedged.evaluation.headline import HeadlineRow, headline_rows
from hedged.evaluation.report.certainty import extremes_section, novelty_section, spread_section
from hedged.evaluation.report.clouds import space_section
from hedged.evaluation.report.curves import curves_section
from hedged.evaluation.report.decisions import decisions_section
from hedged.evaluation.report.numbers import numbers_section
from hedged.evaluation.report.pairs import pairs_section
from hedged.evaluation.report.section import Section
from hedged.evaluation.report.settings import describe_model
from hedged.evaluation.space import Space
from hedged.evaluation.verification import Decisions
from hedged.metrics import is_constant


def write_report(
    evaluation: Evaluation,
    path: Path,
    settings: Mapping[str, str],
    headline: Sequence[HeadlineRow] | None = None,
    decisions: Decisions | None = None,
) -> None:
    """Write the page of an evaluation, whole or not at all.

    Args:
        evaluation: The test set, embedded.
        path: Where the page goes.
        settings: Shown after the facts that the evaluation knows itself, a fact of the same name replaced: steps, β.
        headline: The table at the head; `headline_rows(evaluation)` if not given.
        decisions: Decisions on pairs, if there is to be a section on them.
    """
    write_text(path, render(evaluation, settings, headline, decisions))


def render(
    evaluation: Evaluation,
    settings: Mapping[str, str],
    headline: Sequence[HeadlineRow] | None = None,
    decisions: Decisions | None = None,
) -> str:
    """The page as text.

    Args:
        evaluation: The test set, embedded.
        settings: As in `write_report`.
        headline: As in `write_report`.
        decisions: As in `write_report`.
    """
    curves, task = Curves.measure(evaluation), evaluation.data.paper_task
    rows = headline_rows(evaluation) if headline is None else headline
    evaluation.progress("drawing the report")
    return (
        templates()
        .get_template("page.html")
        .render(
            warning=task.warning if task else "",
            data=evaluation.data,
            model=describe_model(evaluation.embeddings["clean"]),
            sections=[numbers_section(evaluation, rows, settings), *_sections(evaluation, curves, decisions)],
        )
    )


@cache
def templates() -> Environment:
    """Templates that escape what they are given, and refuse names they do not know."""
    loader = PackageLoader("hedged.evaluation.report")
    found = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    found.filters["percent"] = lambda share, decimals=0: f"{share:.{decimals}%}"
    found.filters["thousands"] = lambda count: f"{count:,}"
    found.filters["fixed"] = lambda value, decimals: f"{value:.{decimals}f}"
    return found


def _sections(evaluation: Evaluation, curves: Curves, decisions: Decisions | None) -> Iterator[Section]:
    if evaluation.data.paper_task:
        yield space_section(Space(evaluation))
    if decisions:
        yield decisions_section(decisions, evaluation.data.inputs)
    pictured = evaluation.data.has_pictures
    if all(is_constant(eta) for eta in evaluation.uncertainty.values()):
        if pictured:
            yield pairs_section(evaluation)
        yield Section("no_uncertainty.html", {"why": CONSTANT_ETA})
    else:
        if pictured:
            yield extremes_section(evaluation)
            yield pairs_section(evaluation)
        yield curves_section(curves, evaluation.data.inputs)
        yield spread_section(evaluation)
    if evaluation.novelty:
        yield novelty_section(evaluation, evaluation.novelty)
