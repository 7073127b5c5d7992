"""The page of what `hedged.bench.decisions` measured, and its figure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hedged._files import make_folder, write_atomically, write_json, write_text
from hedged.bench.decisions import ABSTAIN, BASELINES, CHOICES, TARGET
from hedged.plots.reliability import draw_diagonal, draw_reliability_lines
from hedged.plots.style import (
    COLOURS,
    FAINT,
    FULL,
    GREEN,
    HEDGED,
    INK,
    ORANGE,
    PINK,
    POINT,
    SMALL,
    TEXT,
    VERMILION,
    labels,
    panels,
    title,
)

PAGE, FIGURE = "README.md", "decisions.png"
TITLES = {"ndigit-2d": "2-digit MNIST, occluded", "ndigit-3d": "3-digit MNIST, occluded", "dogs": "held-out dogs"}
RUNS = {
    "dogs": "; RUN was made by `hedged train pets --out RUN --set data.path=DIR --set loss.means=hedged "
    "--set loss.beta=1e-4 --set train.steps=4000 --set data.colour=0.1 --set data.blur=0.05 --set data.erase=0.1 "
    "--set data.low_resolution=0.1 --set loss.mutual_weight=0 --set model.mirrored=false`"
}
LINES = dict(zip(CHOICES, (HEDGED, VERMILION, ORANGE, POINT, GREEN, PINK), strict=True))
STYLES = dict(zip(CHOICES, ("-", "-", "-", "-", ":", ":"), strict=True))
INTRODUCTION = """# Decisions

Written by `hedged bench decisions --out DIR` from the files beside it, each of which says how it was made. The
identities are halved at random, 20 times: pairs of one half are calibrated on, pairs of the other are measured, so that
nothing is measured on an identity that was calibrated on. [How it works](../../docs/decisions.md).

![Reliability, false-match rates in their intervals, and error by the share of pairs not decided](decisions.png)

"""
EXPLANATION = f"""
- *Calibration error*: ECE of the match probability on 100,000 pairs, half of them matches, in 15 bins of equal mass;
  the mean over the splits. A temperature or an isotonic function, chosen on the half that is calibrated on. Of photos,
  also on all test identities at once, calibrated on validation identities, as `hedged calibrate RUN` does it.
- *False-match rate*: with the threshold for {TARGET:g}, how often the rate on the other half lay within its 95 %
  interval, a predictive one that resamples identities.
- *Not deciding*: the error of "match, if the calibrated probability is at least ½" on the same pairs, and what is left
  of it when 20 % of the pairs are not decided. They are chosen by the expected error min(p, 1 − p), or by a baseline:
  the distance of a mean from its nearest neighbour among the images measured, the trace of Σ, or chance; of a pair, the
  sum of both. For comparison, also by η, and by how near the distance of the two means is to where it is decided.
"""


def write_sets(sets: Mapping[str, Mapping[str, Any]], folder: Path) -> list[Path]:
    """Write the numbers of sets, and the page of all sets in the folder.

    Args:
        sets: What was measured, by the name of the set.
        folder: Where it goes; sets that are there already and are not given stay.
    """
    make_folder(folder)
    for name, content in sets.items():
        rounded = json.loads(json.dumps(content), parse_float=lambda x: round(float(x), 5))
        write_json(folder / f"{name}.json", rounded)
    write_page(folder)
    return [*(folder / f"{name}.json" for name in sets), folder / PAGE, folder / FIGURE]


def write_page(folder: Path) -> None:
    """Write the figure and the page for the sets whose numbers are in a folder.

    Args:
        folder: Where the numbers are.
    """
    found = {name: folder / f"{name}.json" for name in TITLES}
    sets = {name: json.loads(path.read_text(encoding="utf-8")) for name, path in found.items() if path.exists()}
    figure = draw({TITLES[name]: content for name, content in sets.items()})
    write_atomically(folder / FIGURE, lambda part: figure.savefig(part, dpi=200, format="png"))
    write_text(folder / PAGE, INTRODUCTION + _table(sets) + EXPLANATION + _sources(sets))


def _table(sets: Mapping[str, Mapping[str, Any]]) -> str:
    rows: dict[str, list[str]] = {
        "Calibration error before": [f"{c['ece_before']:.3f}" for c in sets.values()],
        "Calibration error after (at most 0.02 asked)": [f"**{c['ece']:.4f}**" for c in sets.values()],
        "The same, highest of all splits": [f"{c['ece_highest']:.4f}" for c in sets.values()],
        "Calibration error after, calibrated on validation identities": [_whole(c) for c in sets.values()],
        "False-match rate within its interval (17 of 20 asked)": [
            f"**{c['false_match_rate_inside']} of {c['splits']}**" for c in sets.values()
        ],
        "Error, all pairs decided": [f"{c['error']:.3f}" for c in sets.values()],
    }
    for name in CHOICES:
        kind = "" if name == CHOICES[0] else " (baseline)" if name in BASELINES else " (for comparison)"
        left = [f"{c['error_after_abstaining'][name]:.3f}" for c in sets.values()]
        rows[f"Error, 20 % not decided, by {name}{kind}"] = [f"**{x}**" for x in left] if not kind else left
    rows["Splits in which no baseline leaves less"] = [
        f"{c['no_worse_than_any_baseline']} of {c['splits']}" for c in sets.values()
    ]
    head = f"| | {' | '.join(TITLES[name] for name in sets)} |\n|---|{'---|' * len(sets)}\n"
    return head + "".join(f"| {name} | {' | '.join(cells)} |\n" for name, cells in rows.items())


def _whole(content: Mapping[str, Any]) -> str:
    """The error on all test identities of what was found on validation identities, if there are any."""
    return f"**{content['validation']['ece']:.4f}**" if "validation" in content else "–"


def _sources(sets: Mapping[str, Mapping[str, Any]]) -> str:
    lines = (
        f"- {TITLES[name]}: {c['data']}; model {c['model']}; `{c['command']}`{RUNS.get(name, '')}\n"
        for name, c in sets.items()
    )
    return "\n" + "".join(lines)


def draw(sets: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Reliability, false-match rates in their intervals, and error against abstention: a row for each set.

    Args:
        sets: What was measured, by the title of the set.
    """
    figure, axes = panels(len(sets), 3, height=FULL * 0.36 * len(sets) + 0.1)
    for row, (name, content) in zip(axes, sets.items(), strict=True):
        _reliability(row[0], [trial["bins"] for trial in content["trials"]])
        _rates(row[1], content["trials"])
        _abstention(row[2], content["curves"])
        row[0].annotate(
            name,
            (-0.36, 0.5),
            xycoords="axes fraction",
            rotation=90,
            fontsize=TEXT,
            color=INK,
            va="center",
            ha="center",
        )
    for panel, text in zip(axes[0], ("probabilities come true", "false-match rates", "not deciding"), strict=True):
        title(panel, text)
    axes[0, 2].legend(frameon=False, fontsize=SMALL - 1, labelcolor=INK, handlelength=1.4, labelspacing=0.25)
    axes[0, 0].legend(frameon=False, fontsize=SMALL, labelcolor=INK, handlelength=1.2, loc="lower right")
    return figure


def _reliability(axes: Axes, trials: list[Mapping[str, list[float]]]) -> None:
    """A line for each split, before and after."""
    draw_diagonal(axes, INK, width=0.6, layer=3)
    for when, colour in (("before", COLOURS["corrupt"]), ("after", COLOURS["clean"])):
        lines = [(bins[f"predicted {when}"], bins[f"observed {when}"]) for bins in trials]
        draw_reliability_lines(axes, lines, colour, when)
    labels(axes, "match probability", "share that match")


def _rates(axes: Axes, trials: list[Mapping[str, Any]]) -> None:
    """A line for each split: its interval, and the rate on the other half."""
    trials = sorted(trials, key=lambda trial: float(trial["false_match_rate"]))
    axes.axvline(TARGET, color=FAINT, linewidth=1.0)
    for k, trial in enumerate(trials):
        colour = COLOURS["clean"] if trial["inside"] else COLOURS["corrupt"]
        axes.plot([trial["low"], trial["high"]], [k, k], color=colour, alpha=0.4, linewidth=2.4, solid_capstyle="butt")
        axes.plot(trial["false_match_rate"], k, "o", color=colour, markersize=3)
    inside = sum(bool(trial["inside"]) for trial in trials)
    axes.set_yticks([])
    axes.set_xlim(0, max(0.02, *(1.08 * max(trial["high"], trial["false_match_rate"]) for trial in trials)))
    labels(axes, f"aimed at {TARGET:g}: {inside} of {len(trials)} inside", "splits")


def _abstention(axes: Axes, curves: Mapping[str, Any]) -> None:
    shares = np.array(curves["not_decided"])
    axes.axvline(ABSTAIN, color=FAINT, linewidth=1.0)
    for name, colour in LINES.items():
        axes.plot(shares, curves["error"][name], STYLES[name], color=colour, linewidth=1.2, label=name)
    axes.set_xlim(0, shares[-1])
    axes.set_ylim(0, None)
    labels(axes, "share of pairs not decided", "error of the others")
