"""`write_findings`: what was found wrong with a gallery as one HTML file, with pictures; it needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

from hedged._files import write_text
from hedged.evaluation.report.page import templates
from hedged.evaluation.report.section import Picture


@final
@dataclass(frozen=True)
class Shown:
    """An item as the page shows it.

    Args:
        name: Its id.
        label: Its label.
        picture: What it looks like, if there is a picture of it.
    """

    name: str
    label: str
    picture: Picture | None


@final
@dataclass(frozen=True)
class Finding:
    """One thing that was found.

    Args:
        words: What it is.
        probability: Of it.
        items: What it is about.
    """

    words: str
    probability: float
    items: Sequence[Shown]


@final
@dataclass(frozen=True)
class Findings:
    """Things of one kind.

    Args:
        title: The kind.
        explanation: What it means, and what to do about it.
        found: The likeliest first.
        total: How many there are; the page may not show all.
    """

    title: str
    explanation: str
    found: Sequence[Finding]
    total: int


def write_findings(path: Path, name: str, lead: str, kinds: Sequence[Findings]) -> None:
    """Write the page of an audit, whole or not at all.

    Args:
        path: Where the page goes.
        name: What was audited.
        lead: A sentence about it.
        kinds: What was found, a section each.
    """
    write_text(path, templates().get_template("findings.html").render(name=name, lead=lead, kinds=kinds))
