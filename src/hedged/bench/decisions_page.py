"""The page of what `hedged.bench.decisions` measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hedged._files import write_atomically, write_text
from hedged.bench.decisions import BASELINES, CHOICES, TARGET
from hedged.bench.decisions_figure import draw

PAGE, FIGURE = "README.md", "decisions.png"
TITLES = {"ndigit-2d": "2-digit MNIST, occluded", "ndigit-3d": "3-digit MNIST, occluded", "dogs": "held-out dogs"}
RUNS = {
    "dogs": "; RUN was made by `hedged train pets --out RUN --set data.path=DIR --set loss.means=hedged "
    "--set loss.beta=1e-4 --set train.steps=4000 --set data.colour=0.1 --set data.blur=0.05 --set data.erase=0.1 "
    "--set data.low_resolution=0.1 --set loss.mutual_weight=0 --set model.mirrored=false`"
}
INTRODUCTION = """# Decisions

Written by `python tools/measure_decisions.py page` from the files beside it, each of which says how it was made. The
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


def write_page(folder: Path) -> None:
    """Write the figure and the page for the sets whose numbers are in the folder."""
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
