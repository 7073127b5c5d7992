"""`write_report`: an evaluation as one HTML file that needs nothing else, neither files nor network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from string import Template

from hedged._files import write_text
from hedged.distributions import Point
from hedged.evaluation import Decisions
from hedged.evaluation.curves import ONE_ETA, Curves
from hedged.evaluation.evaluation import Evaluation
from hedged.evaluation.headline import HeadlineRow, headline_rows, model_name
from hedged.evaluation.report.certainty import extremes_section, spread_section
from hedged.evaluation.report.clouds import space_section
from hedged.evaluation.report.curves import curves_section
from hedged.evaluation.report.decisions import decisions_section
from hedged.evaluation.report.markup import Section, escape
from hedged.evaluation.report.pairs import pairs_section
from hedged.evaluation.report.settings import describe_model, facts, settings_list, warning
from hedged.evaluation.report.table import table

NO_UNCERTAINTY = (
    " So there is no most and no least certain image, nothing to sort by and nothing to spread: the pictures of "
    "uncertainty are left out. Train a Gaussian or a mixture to see them."
)


def write_report(
    evaluation: Evaluation,
    path: Path,
    settings: Mapping[str, str],
    headline: Sequence[HeadlineRow] | None = None,
    decisions: Decisions | None = None,
) -> None:
    """Write the page of `evaluation` to `path`, whole or not at all.

    `settings` are shown after the facts that the evaluation knows itself, a fact of the same name replaced: steps,
    β, minutes. `headline` is the table at the head, `headline_rows(evaluation)` unless given. With `decisions` there
    is a section on them.
    """
    write_text(path, render(evaluation, settings, headline, decisions))


def render(
    evaluation: Evaluation,
    settings: Mapping[str, str],
    headline: Sequence[HeadlineRow] | None = None,
    decisions: Decisions | None = None,
) -> str:
    """The page as text."""
    curves = Curves.measure(evaluation)
    rows = headline_rows(evaluation, curves) if headline is None else headline
    task = evaluation.data.paper_task
    evaluation.progress("drawing the report")
    return Template(_asset("page.html")).substitute(
        style=_asset("style.css"),
        warning=warning(task),
        damage=escape(evaluation.data.damage),
        model=escape(describe_model(evaluation.embeddings["clean"])),
        table=table(rows, comparable=bool(task and task.comparable)),
        comparison=_comparison(evaluation, rows),
        settings=settings_list(facts(evaluation) | dict(settings)),
        sections="\n\n".join(section.html() for section in _sections(evaluation, curves, decisions)),
    )


def _sections(evaluation: Evaluation, curves: Curves, decisions: Decisions | None) -> Iterator[Section]:
    if evaluation.data.paper_task:
        yield space_section(evaluation)
    if decisions:
        yield decisions_section(decisions)
    pictured = evaluation.data.has_pictures
    if isinstance(evaluation.embeddings["clean"], Point):
        if pictured:
            yield pairs_section(evaluation)
        yield Section("uncertainty", "Uncertainty", escape(ONE_ETA + NO_UNCERTAINTY), "")
        return
    if pictured:
        yield extremes_section(evaluation)
        yield pairs_section(evaluation)
    yield curves_section(curves)
    yield spread_section(evaluation)


def _comparison(evaluation: Evaluation, rows: Sequence[HeadlineRow]) -> str:
    """What stands in the columns, for those who read the small print."""
    words = ["“Clean among corrupt”: a clean image is to be identified among corrupt ones."]
    task = evaluation.data.paper_task
    if task is None:
        return words[0]
    z = evaluation.embeddings["clean"]
    model = model_name(z).replace("mog", "MoG").replace("point", "point embeddings")
    case = f"{model}, N = {task.digits}, D = {z.dim}"
    if all(row.paper is None for row in rows):
        words.append(f"The paper has no numbers for {escape(case)}.")
    else:
        words.append(f"The paper’s numbers are for {escape(case)}.")
    if _has_gaps(rows):
        words.append("A dash: not reported, or not to be measured here.")
    return " ".join(words)


def _has_gaps(rows: Sequence[HeadlineRow]) -> bool:
    return any(row.paper is None or row.measured is None for row in rows)


def _asset(name: str) -> str:
    return resources.files("hedged.evaluation.report").joinpath(name).read_text(encoding="utf-8")
