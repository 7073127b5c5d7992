"""All benchmarks by name, and what they leave: a table, its numbers and a plot of how costs grow."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from hedged._files import make_folder, write_atomically, write_json
from hedged.bench.timing import Line
from hedged.errors import ConfigError

GROUPS = ("matching", "million", "search", "training", "images", "recipe")
TABLE, NUMBERS, GROWTH, PLOT = "README.md", "benchmarks.json", "growth.json", "growth.png"


def lines(group: str, quick: bool) -> Iterator[Line]:
    """The lines of one group, as they are measured.

    Args:
        group: One of `GROUPS`.
        quick: Whether to leave out whatever takes minutes.
    """
    if group not in GROUPS:
        known = ", ".join((*GROUPS, "decisions", "all"))
        raise ConfigError(f"there is no group of benchmarks {group!r}: choose one of {known}")
    found: Iterator[Line] = import_module(f"hedged.bench.{group}").lines(quick)
    return found


def lines_apart(group: str, quick: bool) -> list[Line]:
    """The same, in a process of their own: what one group leaves in memory and threads does not slow the next.

    Args:
        group: One of `GROUPS`.
        quick: Whether to leave out whatever takes minutes.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_all_lines, group, quick).result()


def _all_lines(group: str, quick: bool) -> list[Line]:
    return list(lines(group, quick))


def rows(measured: Sequence[Line]) -> list[tuple[str, ...]]:
    """For a table: name, ratio, what was asked, and whether it holds.

    Args:
        measured: Lines of any groups.
    """
    return [
        (
            line.name,
            f"{line.ratio:.3g}",
            f"{'≤' if line.at_most else '≥'} {line.asked:g}",
            "yes" if line.holds else "no",
        )
        for line in measured
    ]


def write(measured: Mapping[str, Sequence[Line]], out: Path) -> list[Path]:
    """Write the table and the numbers, measure how costs grow, and plot that.

    Lines that the folder has of other groups stay, with the day they are of.

    Args:
        measured: Lines by their groups.
        out: The folder.
    """
    from hedged.bench.growth import costs
    from hedged.bench.plot import plot

    make_folder(out)
    found = list(costs())
    content = _joined(measured, json.loads((out / NUMBERS).read_bytes()) if (out / NUMBERS).exists() else [])
    write_json(out / NUMBERS, content)
    write_json(out / GROWTH, [cost._asdict() for cost in found])
    write_atomically(out / TABLE, lambda part: part.write_text(page(content), encoding="utf-8"))
    write_atomically(out / PLOT, lambda part: plot(found, part))
    return [out / name for name in (TABLE, NUMBERS, GROWTH, PLOT)]


def _joined(measured: Mapping[str, Sequence[Line]], before: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines of all groups in their order, new where they were measured now and as they were elsewhere."""
    today, threads = f"{date.today()}", torch.get_num_threads()
    content = []
    for group in GROUPS:
        if group in measured:
            made = {"group": group, "measured": today, "threads": threads, "torch": torch.__version__}
            content += [{**line.content(), "at_most": line.at_most, **made} for line in measured[group]]
        else:
            content += [line for line in before if line["group"] == group]
    return content


def page(content: Sequence[dict[str, Any]]) -> str:
    """The table of benchmarks as a page.

    Args:
        content: Lines as the file of numbers has them.
    """
    header = ("benchmark", "ratio", "asked", "holds", "measured")
    body = "\n".join(
        f"| {line['name']} | {line['ratio']:.3g} | {'≤' if line['at_most'] else '≥'} {line['asked']:g} "
        f"| {'yes' if line['holds'] else 'no'} | {line['measured']} |"
        for line in content
    )
    days = {(line["measured"], line["threads"], line["torch"]) for line in content}
    made = "; ".join(f"{day} with {threads} threads and torch {version}" for day, threads, version in sorted(days))
    return f"""# Benchmarks

Made by `hedged bench --out results/benchmarks`, a group of lines in one run: medians of at least 5 repeats, the ways
that are compared taken in turns ({os.cpu_count()} {platform.machine()} cores; {made}).
What the lines mean is explained in [docs/benchmarks.md](../../docs/benchmarks.md).

| {" | ".join(header)} |
|{"---|" * len(header)}
{body}

![How costs grow]({PLOT})
"""
