"""All results on one page: every table beside the paper's numbers, the claims of the text, and how they were made."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from hedged._files import write_text
from hedged._reading import read_json
from hedged.errors import RunError
from hedged.evaluation.reference import STEPS
from hedged.paper.catalogue import CLAIMS, FIGURES, NAMES, TABLES, exhibit
from hedged.paper.measurements import Cell
from hedged.paper.shelf import PETS, Need, Shelf
from hedged.paper.workers import together

TITLE, SUMMARY = "# The paper: all tables and figures", "## In short"
ACCURACIES = ("verification_ap", "knn_accuracy")
CORRELATIONS = ("ap_correlation", "knn_correlation")
ALLOWED = {**dict.fromkeys(ACCURACIES, 0.005), **dict.fromkeys(CORRELATIONS, 0.10)}  # below the paper's
SPLITS = {
    "seen": "Test numbers that were trained on, of new digits (`number` split, seen): the main comparison",
    "unseen": "Numbers that were never trained on (`number` split, unseen)",
    "all": "Both together (`number` split, all)",
    "instance": "All numbers trained on and tested (`instance` split)",
}
NOTE_UNDER = "main-task"
NOTES = {  # of this table, what is to be said below the numbers of a test set if some are of so many digits
    ("instance", 3): (
        "Three digits on this split are not the paper’s protocol. It tests all 1,000 numbers with 10 images each: 3 "
        "of the 5 neighbours of a probe must be among only 9 others of its number, among 9,990 images of others. The "
        "paper tests 100 numbers of three digits, “to enforce a minimal number of samples per class”: 100 images each, "
        "as do the grids above. Average precision hardly depends on it: half of its pairs match by construction."
    )
}
KEPT = "## What was tried for the numbers that fall short"  # where the part begins that is written by hand
NAMED_BY = ("table", "digits", "dim", "model", "metric", "gallery", "probe", "vote", "beta")
PET_KEYS = ("model", "metric", "correlation", "rejected")
MEASURES = {
    "verification_ap": "Verification AP",
    "knn_accuracy": "KNN accuracy",
    "ap_correlation": "τ of η and AP",
    "knn_correlation": "τ of η and KNN",
}


def load_cells(folder: Path, name: str) -> list[Cell]:
    """The cells of a table or figure as they were written; none if it was not made.

    Args:
        folder: Where results are.
        name: Of the table or figure.
    """
    path = folder / f"{name}.json"
    try:
        cells = read_json(path) if path.exists() else []
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read ({error}): make it again with `hedged paper run {name}`") from error
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise RunError(f"{path} holds no list of cells: make it again with `hedged paper run {name}`")
    return cells


def rows(cells: Sequence[Cell], keys: Sequence[str] = ()) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Header and lines of a plain list of cells: these keys, or those whose values vary; then the numbers.

    Args:
        cells: Of a table or figure.
        keys: Which keys to show; those whose values vary if none are given.
    """
    numbers = [key for key in ("paper", "measured", "std", "seeds") if any(key in cell for cell in cells)]
    known = dict.fromkeys(key for cell in cells for key in cell if key not in numbers)
    shown = keys or [key for key in known if len({json.dumps(cell.get(key)) for cell in cells}) > 1]
    lines = [tuple(_text(cell.get(key)) for key in (*shown, *numbers)) for cell in cells]
    return (*shown, *numbers), lines


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) >= 1e-3 or value == 0 else f"{value:g}"
    return "" if value is None else str(value)


def is_met(cell: Cell) -> bool:
    """Whether a cell is at or above the paper's number, less what chance may take.

    Args:
        cell: Measured, with the paper's number.
    """
    return bool(cell["measured"] >= cell["paper"] - ALLOWED[cell["metric"]])


def main_cells(folder: Path, metrics: Sequence[str]) -> list[tuple[str, Cell]]:
    """The cells of the main comparison, with the table of each.

    Args:
        folder: Where results are.
        metrics: Which cells, by their metric.
    """
    return [
        (name, cell)
        for name in TABLES
        for cell in load_cells(folder, name)
        if cell["metric"] in metrics and cell["split"] == "seen"
    ]


def write_page(shelf: Shelf | None, folder: Path, path: Path | None = None) -> Path:
    """All results of a folder as Markdown: its README.md unless a path is given.

    Without a shelf, what an earlier page says of the models stays as it is; its ending, written by hand, always does.

    Args:
        shelf: The models that the results were made of, if they are at hand.
        folder: Where results are.
        path: Where the page goes; README.md of the folder if not given.
    """
    path = path or folder / "README.md"
    introduction = _kept_introduction(path) if shelf is None else _introduction(shelf)
    lines = [*_page(introduction, folder, path), *_kept_ending(path)]
    write_text(path, "\n".join(lines) + "\n")
    return path


def _page(introduction: Iterable[str], folder: Path, path: Path) -> Iterator[str]:
    yield from (TITLE, "")
    yield from introduction
    yield from _summary(folder)
    for name in TABLES:
        yield from _table_section(folder, name)
    yield from _pets_section(folder)
    yield from _claims_section(folder)
    yield from ("## Figures", "")
    for name in FIGURES:
        if (folder / f"{name}.png").exists():
            picture = (folder / f"{name}.png").relative_to(path.parent)
            yield from (f"### {name}", "", exhibit(name).title + ".", "", f"![{exhibit(name).title}]({picture})", "")


def _kept_introduction(path: Path) -> list[str]:
    """What a page says between its title and its summary; nothing if there is no page."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    return lines[lines.index(TITLE) + 2 : lines.index(SUMMARY)]


def _kept_ending(path: Path) -> list[str]:
    """What a page says after its figures: what was tried for numbers that fall short; nothing if there is no page."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return lines[lines.index(KEPT) :] if KEPT in lines else []


def _introduction(shelf: Shelf) -> Iterator[str]:
    needs = together(need for name in NAMES if name != PETS for need in exhibit(name).needs({}))
    there = [need for need in needs if shelf.has(Need(need.config))]
    made = [shelf.made(need.config) for need in there]
    seconds = [each["seconds"] for each in made if each["seconds"]]
    commits = sorted({each["commit"] for each in made if each["commit"]})
    steps = sorted({need.config.train.steps for need in needs})
    yield "A table or figure is made by `hedged paper run NAME`, all of them by `hedged paper run all`."
    yield ""
    models = f"{len(needs)}" if len(there) == len(needs) else f"So far {len(there)} of {len(needs)}"
    yield f"* {models} models, of {', '.join(f'{n:,}' for n in steps)} steps each; the paper trains {STEPS:,}."
    if seconds:
        yield (
            f"* Training a model takes {median(seconds) / 60:.1f} minutes on one core (median of {len(seconds)}; "
            "as many at a time as the machine has cores)."
        )
    if commits:
        yield f"* Trained at commit {', '.join(commits)}."
    yield "* Settings: `src/hedged/training/configs/paper.toml`, chosen on held-out training digits (docs/recipe.md)."
    yield ""


def _summary(folder: Path) -> Iterator[str]:
    yield from (SUMMARY, "")
    for kind, metrics in (("accuracies", ACCURACIES), ("correlations", CORRELATIONS)):
        cells = main_cells(folder, metrics)
        if not cells:
            continue
        below = [(name, cell) for name, cell in cells if not is_met(cell)]
        slack = ALLOWED[metrics[0]]
        yield f"{len(cells) - len(below)} of {len(cells)} {kind} are at or above the paper’s less {slack}."
        if below:
            yield from ("", "Below it:", "")
            yield from _markdown(*rows([{"table": name, **cell} for name, cell in below], NAMED_BY))
        yield ""


def _table_section(folder: Path, name: str) -> Iterator[str]:
    cells = load_cells(folder, name)
    if not cells:
        return
    yield from (f"## {name}", "", exhibit(name).title + ".", "", f"`hedged paper run {name}`", "")
    if name == "dataset":
        yield from _markdown(*rows(cells))
        yield ""
        return
    for split, words in SPLITS.items():
        if of_split := [cell for cell in cells if cell["split"] == split]:
            yield from (words + ".", "")
            yield from _grid(of_split)
            yield ""
            for (noted, digits), note in NOTES.items():
                if name == NOTE_UNDER and noted == split and any(cell["digits"] == digits for cell in of_split):
                    yield from (note, "")
    if variants := load_cells(folder, f"{name}-variants"):
        yield from ("Variants of the recipe:", "")
        yield from _markdown(*rows(variants))
        yield ""


def _grid(cells: Sequence[Cell]) -> Iterator[str]:
    """A row a measurement, a column a model: measured, then the paper's; bold where at or above it."""
    columns = list(dict.fromkeys(_column(cell) for cell in cells))
    lines = list(dict.fromkeys(_line(cell) for cell in cells))
    found = {(_line(cell), _column(cell)): cell for cell in cells}
    seeds = sorted({cell["seeds"] for cell in cells})
    table = [
        (line, *(_beside(found[line, column]) if (line, column) in found else "" for column in columns))
        for line in lines
    ]
    yield from _markdown(("", *columns), table)
    yield ""
    yield f"Measured (paper), mean of {' or '.join(map(str, seeds))} seed{'s' if seeds != [1] else ''}."


def _column(cell: Cell) -> str:
    beta = f" β={cell['beta']:g}" if cell.get("beta") == 0 else ""
    return f"N={cell['digits']} D={cell['dim']} {cell['model']}{beta}"


def _line(cell: Cell) -> str:
    name, gallery, probe = MEASURES[cell["metric"]], cell["gallery"], cell["probe"]
    where = gallery if cell["metric"] in ("verification_ap", "ap_correlation") else f"{gallery} gallery, {probe} probe"
    return f"{name}, {where}" + (f", {cell['vote']}" if "vote" in cell else "")


def _beside(cell: Cell) -> str:
    digits = 3 if cell["metric"] in ACCURACIES else 2
    measured = f"{cell['measured']:.{digits}f}"
    bold = "**" if round(cell["measured"], digits) >= round(cell["paper"], digits) else ""
    spread = f" ± {cell['std']:.{digits}f}" if cell["seeds"] > 1 else ""
    return f"{bold}{measured}{bold}{spread} ({cell['paper']:.{digits}f})"


def _pets_section(folder: Path) -> Iterator[str]:
    if not (cells := load_cells(folder, PETS)):
        return
    first = cells[0]
    yield from (f"## {PETS}", "", exhibit(PETS).title + ".", "", f"`hedged paper run {PETS} --data DIR`", "")
    yield (
        f"{first['pets']} dogs of DogFaceNet that were not trained on, nor was a setting chosen on them; all pairs of "
        f"their {first['photos']:,} photos; the one threshold is the best on other dogs, also held out. A batch is of "
        f"{first['batch_size']} photos, a model trains for {first['steps']:,} steps. "
        "Settings: `src/hedged/training/configs/pets.toml`, chosen on dogs held out of training (docs/recipe.md). The "
        "paper’s numbers are of its own photos, a hundred times as many."
    )
    yield ""
    yield from _markdown(*rows([*cells, *load_cells(folder, f"{PETS}-variants")], PET_KEYS))
    yield ""


def _claims_section(folder: Path) -> Iterator[str]:
    if lines := load_cells(folder, CLAIMS):
        yield from ("## The claims of the text", "")
        table = [(claim["text"], "yes" if claim["holds"] else "**no**", claim["evidence"]) for claim in lines]
        yield from _markdown(("claim", "holds", "what says so"), table)
        yield ""


def _markdown(header: Sequence[str], lines: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(header) + " |"
    yield "|" + "---|" * len(header)
    for line in lines:
        yield "| " + " | ".join(line) + " |"
