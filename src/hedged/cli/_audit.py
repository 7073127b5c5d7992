"""`hedged index audit`, and the warnings of `hedged index add`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from hedged.cli._output import LOGGER, Force, Json, examples, owning_output, print_json, print_table, say
from hedged.cli._stores import StoreName, Wheres, filters
from hedged.errors import ConfigError, DataError, RunError

if TYPE_CHECKING:
    from hedged.evaluation.report.findings import Shown
    from hedged.evaluation.report.section import Picture
    from hedged.search import Audit, Store

AUDIT_EXAMPLES = examples(
    "hedged index audit dogs.db",
    "hedged index audit dogs.db --page audit.html",
    "hedged index audit dogs.db --wrong-share 0.05 --where year=2021 --json",
)
MOST_PICTURED = 50  # findings of a kind that the page shows
MOST_WARNED = 10  # findings that `index add` names
SIDE = 112  # pixels of a picture
BESIDE = 3  # items of each of two labels beside a label that is likely wrong
ITEMS = 8  # pictures of a finding


class Kind(NamedTuple):
    """A kind of finding, for people."""

    title: str
    explanation: str


KINDS = {
    "mislabelled": Kind(
        "Labels that are likely wrong",
        "The item matches the others of its label less than it matches somebody else, or nobody. On a page the item is "
        "first, then come others of its label, then of the likelier one.",
    ),
    "duplicates": Kind(
        "Near-duplicates under two names",
        "Two items are as alike as one is to itself, and have two labels. One of the labels is likely wrong.",
    ),
    "divided": Kind(
        "Labels that stand for two identities",
        "The items of the label fall into two groups that match within, not between them. Give one a name of its own.",
    ),
    "poor": Kind(
        "Items that match everybody",
        "The item says so little that anybody may be on it. Its probability is that of matching somebody else. Enrol a "
        "better one.",
    ),
}


class Line(NamedTuple):
    """A finding in words, its probability and the items it is about; on a page, beside items of some labels."""

    words: str
    probability: float
    ids: list[str]
    labels: list[str]
    beside: tuple[str, ...] = ()


def audit(
    location: StoreName,
    wrong_share: Annotated[
        float, typer.Option("--wrong-share", metavar="SHARE", help="Expected share of wrong labels, before looking.")
    ] = 0.01,
    where: Wheres = [],  # noqa: B006 - typer reads it, nobody writes it
    calibration: Annotated[
        Path | None,
        typer.Option("--calibration", metavar="RUN", help="The store's model, if `hedged calibrate` calibrated it."),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option("--page", metavar="FILE", help="Write a page with pictures: ids that are paths of images."),
    ] = None,
    top: Annotated[int, typer.Option("--top", min=0, metavar="N", help="Findings of each kind to print.")] = 20,
    force: Force = False,
    json: Json = False,
) -> None:
    """Find rows that are likely mislabelled, duplicated or useless.

    Labels that are likely two identities are found, too. Each finding has a probability, and is reported from one half
    on; that an item matches everybody, from a quarter. The store is not changed.
    """
    from hedged.decisions import load_decider
    from hedged.search import open_store, read_audit

    if not 0 < wrong_share < 1:
        raise ConfigError(f"--wrong-share is a share of labels, between 0 and 1, got {wrong_share:g}")
    with owning_output(page, force), open_store(location) as store:
        decider = load_decider(calibration, store.header.fingerprint) if calibration else None
        if calibration and decider is None:
            raise RunError(f"{calibration} has no calibration: write one with `hedged calibrate {calibration}`")
        found = read_audit(store, filters(where), wrong_share, decider.calibrator.log_odds if decider else None)
        name = store.name
        if found.tells_little:
            LOGGER.warning(
                "%s of %s items match everybody: it is likely the model that cannot tell them apart; train it longer, "
                "or calibrate it and give --calibration, before you remove any",
                f"{len(found.poor):,}",
                f"{found.items:,}",
            )
        if page is not None:
            _write_page(page, name, found, _ids_by_label(store))
    if json:
        print_json({"store": name, **found.content()})
        return
    for kind, lines in lines_of(found).items():
        title = f"{KINDS[kind].title}: {len(lines) or 'none'}"
        if rows := [(line.words, f"{line.probability:.4f}") for line in lines[:top]]:
            print_table(title, ("", "probability"), rows)
        else:
            say(title)
        say()
    more = "" if page is None else f"; the page is {page}"
    say(f"looked at {found.items:,} items of {found.identities:,} labels{more}")


def lines_of(found: Audit) -> dict[str, list[Line]]:
    """The findings by kind, in words.

    Args:
        found: The audit.
    """
    return {
        "mislabelled": [
            Line(
                one.words,
                one.probability,
                [one.id],
                [one.label],
                (one.label, one.likelier),
            )
            for one in found.mislabelled
        ],
        "duplicates": [
            Line(
                one.words,
                one.probability,
                [one.first, one.second],
                [one.first_label, one.second_label],
            )
            for one in found.duplicates
        ],
        "divided": [
            Line(
                one.words,
                one.probability,
                [*one.first[: ITEMS // 2], *one.second[: ITEMS // 2]],
                [f"{one.label}, first"] * len(one.first[: ITEMS // 2])
                + [f"{one.label}, second"] * len(one.second[: ITEMS // 2]),
            )
            for one in found.divided
        ],
        "poor": [Line(one.words, one.probability, [one.id], [one.label]) for one in found.poor],
    }


def warn_of_enrolments(store: Store, added: Sequence[str]) -> None:
    """Warn of what was just added, if it looks wrong.

    Args:
        store: The store.
        added: The ids that were added.
    """
    from hedged.search import audit_of_added

    found = audit_of_added(store, added)
    for one in found[:MOST_WARNED]:
        LOGGER.warning("check the label: %s (probability %.3f)", one.words, one.probability)
    if found[MOST_WARNED:]:
        LOGGER.warning("and %s more: `hedged index audit %s` lists them", f"{len(found) - MOST_WARNED:,}", store.name)


def _ids_by_label(store: Store) -> dict[str, list[str]]:
    """Some rows of each label."""
    found: dict[str, list[str]] = {}
    for row in store.describe(store.keys().tolist()).values():
        if row.label is not None and len(found.setdefault(row.label, [])) <= BESIDE:
            found[row.label].append(row.id)
    return found


def _write_page(path: Path, name: str, found: Audit, by_label: dict[str, list[str]]) -> None:
    from hedged.evaluation.report.findings import Finding, Findings, write_findings

    show = _pictures()

    def shown(line: Line) -> list[Shown]:
        others = [(one, label) for label in line.beside for one in _but(by_label[label], line.ids)]
        return [show(one, label) for one, label in (*zip(line.ids, line.labels, strict=True), *others)]

    kinds = [
        Findings(
            KINDS[kind].title,
            KINDS[kind].explanation,
            [Finding(line.words, line.probability, shown(line)) for line in lines[:MOST_PICTURED]],
            len(lines),
        )
        for kind, lines in lines_of(found).items()
    ]
    lead = (
        f"{found.items:,} items of {found.identities:,} labels were looked at, and {len(found):,} things found that "
        "are likely wrong."
    )
    write_findings(path, name, lead, kinds)


def _but(ids: list[str], left_out: list[str]) -> list[str]:
    return [one for one in ids if one not in left_out][:BESIDE]


def _pictures() -> Callable[[str, str], Shown]:
    """What shows an item: its picture, if its id is the path of an image that can be read."""
    from hedged._decode import read_middle
    from hedged.evaluation.report.findings import Shown
    from hedged.evaluation.report.section import picture

    def show(name: str, label: str) -> Shown:
        found: Picture | None = None
        if "\x00" not in name and Path(name).is_file():
            try:
                found = picture(read_middle(Path(name), SIDE), f"{name}, {label}")
            except DataError:
                found = None
        return Shown(name, label, found)

    return show
