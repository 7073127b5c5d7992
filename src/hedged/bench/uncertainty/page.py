"""The page of the fair fight: a table for each set, and one figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hedged._files import write_atomically, write_text
from hedged._reading import read_json
from hedged.bench.uncertainty.fight import WAYS
from hedged.bench.uncertainty.measures import FALSE_ALARMS, FALSE_MATCHES, MEASURES, SHARES, TEMPLATE
from hedged.plots.style import FULL, HEDGED, SMALL, VERMILION, labels, panels, title

PAGE, FIGURE = "README.md", "uncertainty.png"
OURS = ("evidence", "the paper's η")
TITLES = {
    "ndigit": "2-digit MNIST, occluded",
    "fashion": "Fashion-MNIST; novel: MNIST",
    "dogs": "Dogs by EfficientNet-lite0; novel: none",
    "clinc": "CLINC150 by MiniLM; novel: out of scope",
    "digits": "8 × 8 digits with noise; novel: on their side",
}
INTRODUCTION = f"""# The fair fight

Written by `hedged bench uncertainty` from the files beside it. Every way sees the same training vectors, clean and
poorer; half of the test inputs are the poorer ones. Each is tuned on a part of the training set (by AURC, whole
identities held out where the test has others), then trained with each seed and measured once.

- *R-AUROC*: does uncertainty tell inputs whose best match is wrong? *AURC*: the error of best matches, averaged over
  all shares kept. *FNMR, discarding*: matches missed at a false match rate of {FALSE_MATCHES:g}, averaged over
  discarding none to half of the inputs. *Novelty AUROC*: are inputs of another kind told from test inputs? *DIR*:
  found under the right name at a false alarm rate of {FALSE_ALARMS:g}, templates of {TEMPLATE}.
- **Bold**: the best, and all within two standard errors of it.

![Missed matches by the share of inputs discarded, a panel a set]({FIGURE})
"""


def write_page(folder: Path) -> list[Path]:
    """Write the page and the figure of all results in a folder.

    Args:
        folder: of `fight`.
    """
    found = {path.stem: read_json(path) for path in sorted(folder.glob("*.json"))}
    parts = [INTRODUCTION]
    for name, results in found.items():
        parts += [f"\n## {TITLES.get(name, name)}\n", table(results)]
    write_text(folder / PAGE, "\n".join(parts) + "\n")
    figure = _figure(found)
    write_atomically(folder / FIGURE, lambda path: figure.savefig(path, format="png", dpi=160))
    return [folder / PAGE, folder / FIGURE]


def table(results: list[dict[str, Any]]) -> str:
    """Means and standard errors over the seeds, the best in bold.

    Args:
        results: of one set.
    """
    shown = [key for key in MEASURES if any(key in result for result in results)]
    ways = [way.name for way in WAYS if any(result["way"] == way.name for result in results)]
    cells = {(way, key): mean_and_error([r[key] for r in results if r["way"] == way]) for way in ways for key in shown}
    best = {}
    for key in shown:
        choose = max if MEASURES[key].is_better_higher else min
        best[key] = choose((cells[way, key] for way in ways), key=lambda cell: cell[0])
    lines = ["| | " + " | ".join(MEASURES[key].name for key in shown) + " |", "|---" * (len(shown) + 1) + "|"]
    for way in ways:
        row = [_cell(cells[way, key], best[key]) for key in shown]
        lines.append(f"| {way} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def mean_and_error(values: list[float]) -> tuple[float, float]:
    """The mean, and its standard error; 0 for a single value.

    Args:
        values: one a seed.

    >>> mean_and_error([1.0, 3.0])
    (2.0, 1.0)
    """
    error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
    return float(np.mean(values)), error


def _cell(cell: tuple[float, float], best: tuple[float, float]) -> str:
    mean, error = cell
    text = f"{mean:.3f} ± {error:.3f}"
    return f"**{text}**" if abs(mean - best[0]) <= 2 * np.hypot(error, best[1]) + 1e-12 else text


def _figure(found: dict[str, list[dict[str, Any]]]) -> Any:
    figure, axes = panels(1, max(len(found), 1), width=FULL)
    for axis, (name, results) in zip(np.ravel(axes), found.items(), strict=False):
        for way in (way.name for way in WAYS):
            curves = [result["curve"] for result in results if result["way"] == way]
            if not curves:
                continue
            colour = {"evidence": HEDGED, "the paper's η": VERMILION}.get(way, "0.75")
            axis.plot(SHARES, np.mean(curves, axis=0), color=colour, label=way if way in OURS else None)
        title(axis, TITLES.get(name, name))
        labels(axis, "share discarded", "missed matches")
        axis.legend(fontsize=SMALL)
    return figure
