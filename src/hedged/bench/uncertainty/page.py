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
ACROSS = 3  # panels of a row
OURS, PAPER = "evidence", "the paper's η"
Results = list[dict[str, Any]]
Cell = tuple[float, float]  # a mean and its standard error
TITLES = {
    "ndigit": "2-digit MNIST, occluded; novel: strokes",
    "fashion": "Fashion-MNIST; novel: MNIST",
    "dogs": "Dogs by EfficientNet-lite0; novel: none",
    "clinc": "CLINC150 by MiniLM; novel: out of scope",
    "digits": "8 × 8 digits with noise; novel: on their side",
}
INTRODUCTION = f"""# The fair fight

Written by `hedged bench uncertainty` from the files beside it. Every way sees the same training vectors, clean and
poorer; half of the test inputs are the poorer ones. Each is tuned on a part of the training set (by AURC, whole
identities held out where the test has others), then trained with each seed and measured once. Where the test shows
the classes of training, as of small digits, `evidence` is tuned over what it doubts by, too: η, or the entropy of
which class it is, by templates of all training vectors. The files name it as `doubt`; where they do not, it is η.

Two things are not the same for all. `evidence` answers the column of novelty by a second score, its novelty, while the
others have one number for both, what they doubt by. And for DIR, `evidence` fuses the vectors of a template into one
embedding, as it does wherever it identifies, while the others average their scores with each.

- *R-AUROC*: does uncertainty tell inputs whose best match is wrong? *AURC*: the error of best matches, averaged over
  all shares kept. *FNMR, discarding*: matches missed at a false match rate of {FALSE_MATCHES:g}, averaged over
  discarding none to half of the inputs. *Novelty AUROC*: are inputs of another kind told from test inputs? *DIR*:
  found under the right name at a false alarm rate of {FALSE_ALARMS:g}, templates of {TEMPLATE}.
- **Bold**: the best, and all within two standard errors of the difference, over the seeds.

![Missed matches by the share of inputs discarded, a panel a set]({FIGURE})
"""


def write_page(folder: Path) -> list[Path]:
    """Write the page and the figure of all results in a folder.

    Args:
        folder: of `fight`.
    """
    found = read_results(folder)
    write_text(folder / PAGE, page_of(found))
    figure = _figure(found)
    write_atomically(folder / FIGURE, lambda path: figure.savefig(path, format="png", dpi=160))
    return [folder / PAGE, folder / FIGURE]


def read_results(folder: Path) -> dict[str, Results]:
    """The results of each set, in the order of `TITLES`.

    Args:
        folder: of `fight`.
    """
    names = sorted((path.stem for path in folder.glob("*.json")), key=lambda name: ([*TITLES, name].index(name), name))
    return {name: read_json(folder / f"{name}.json") for name in names}


def page_of(found: dict[str, Results]) -> str:
    """The text of the page.

    Args:
        found: the results of each set.
    """
    parts = [INTRODUCTION]
    for name, results in found.items():
        parts += [f"\n## {TITLES.get(name, name)}\n", table(results), behind(results)]
    return "\n".join(parts) + "\n"


def table(results: Results) -> str:
    """Means and standard errors over the seeds, the best in bold.

    Args:
        results: of one set.
    """
    cells = _cells(results)
    shown = list(dict.fromkeys(key for _, key in cells))
    best = {key: cells[_first(cells, key), key] for key in shown}
    lines = ["| | " + " | ".join(MEASURES[key].name for key in shown) + " |", "|---" * (len(shown) + 1) + "|"]
    for way in dict.fromkeys(way for way, _ in cells):
        row = [_cell(cells[way, key], best[key]) for key in shown]
        lines.append(f"| {way} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def behind(results: Results) -> str:
    """Where ours is neither first nor within two standard errors of the first, in words.

    Args:
        results: of one set.
    """
    cells = _cells(results)
    found = []
    for key in dict.fromkeys(key for way, key in cells if way == OURS):
        first = _first(cells, key)
        if not _is_level(cells[OURS, key], cells[first, key]):
            apart = abs(cells[OURS, key][0] - cells[first, key][0])
            error = np.hypot(cells[OURS, key][1], cells[first, key][1])
            found.append(f"{MEASURES[key].name} (by {apart:.3f} ± {error:.3f}, {first} is first)")
    if not found:
        return f"\n`{OURS}` is first, or within two standard errors of the first, in every column."
    return f"\n`{OURS}` is behind in {', '.join(found)}."


def _cells(results: Results) -> dict[tuple[str, str], Cell]:
    """Mean and standard error of each way and measure, in the order of the table."""
    ways = [way.name for way in WAYS if any(result["way"] == way.name for result in results)]
    shown = [key for key in MEASURES if any(key in result for result in results)]
    return {(way, key): mean_and_error([r[key] for r in results if r["way"] == way]) for way in ways for key in shown}


def _first(cells: dict[tuple[str, str], Cell], key: str) -> str:
    """The way with the best mean of a measure."""
    choose = max if MEASURES[key].is_better_higher else min
    return choose((way for way, of in cells if of == key), key=lambda way: cells[way, key][0])


def _is_level(cell: Cell, best: Cell) -> bool:
    """Whether a mean is within two standard errors of the best, those of their difference."""
    return bool(abs(cell[0] - best[0]) <= 2 * np.hypot(cell[1], best[1]) + 1e-12)


def mean_and_error(values: list[float]) -> Cell:
    """The mean, and its standard error; 0 for a single value.

    Args:
        values: one a seed.

    >>> mean_and_error([1.0, 3.0])
    (2.0, 1.0)
    """
    error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
    return float(np.mean(values)), error


def _cell(cell: Cell, best: Cell) -> str:
    text = f"{cell[0]:.3f} ± {cell[1]:.3f}"
    return f"**{text}**" if _is_level(cell, best) else text


def _figure(found: dict[str, Results]) -> Any:
    across = min(max(len(found), 1), ACROSS)
    rows = max(-(-len(found) // across), 1)
    figure, axes = panels(rows, across, width=FULL * across / ACROSS, height=FULL / ACROSS * rows)
    for axis in axes.flat[len(found) :]:
        axis.set_visible(False)
    for axis, (name, results) in zip(axes.flat, found.items(), strict=False):
        for way in (way.name for way in WAYS):
            curves = [result["curve"] for result in results if result["way"] == way]
            if not curves:
                continue
            colour = {OURS: HEDGED, PAPER: VERMILION}.get(way, "0.75")
            on_top, label = (3, way) if way in (OURS, PAPER) else (2, None)
            axis.plot(SHARES, np.mean(curves, axis=0), color=colour, label=label, zorder=on_top)
        title(axis, TITLES.get(name, name).split(";")[0])
        labels(axis, "share discarded", "missed matches")
        axis.set_ylim(0, None)
    axes.flat[0].legend(fontsize=SMALL, loc="lower left")
    return figure
