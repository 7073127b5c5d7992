"""How certain the model is: the images at both ends of η, those of most novelty, and both over the whole test set."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from hedged.evaluation.evaluation import CONDITIONS, Array, Condition, Evaluation
from hedged.evaluation.images import images_of, reading
from hedged.evaluation.report.panel import Panel
from hedged.evaluation.report.section import Chart, Picture, Section, picture
from hedged.metrics import twin_order, uncertainty_auroc
from hedged.plots.curves import draw_histogram
from hedged.plots.style import COLOURS, grid

SHOWN = 8  # images of a row
BINS = 40


class Thumbnail(NamedTuple):
    """An image with what it shows, how uncertain it is, and how novel, if that is known."""

    picture: Picture
    label: str
    uncertainty: float
    novelty: float | None


class Row(NamedTuple):
    """Images of a condition: the most or the least certain ones, or the most novel."""

    condition: Condition
    which: str
    thumbnails: list[Thumbnail]


def extremes_section(evaluation: Evaluation) -> Section:
    """The most and least certain images, clean and corrupt, each with its η and novelty.

    Args:
        evaluation: The test set, embedded; its images can be shown.
    """
    eta = evaluation.uncertainty
    rows = [
        _row(evaluation, c, which, sign * eta[c])
        for c in CONDITIONS
        for which, sign in (("most certain", 1), ("least certain", -1))
    ]
    return Section("extremes.html", {"rows": rows})


def _row(evaluation: Evaluation, condition: Condition, which: str, values: Array) -> Row:
    """The images of the lowest values."""
    items, novelty = _first(evaluation, condition, values), evaluation.novelty
    thumbnails = []
    for item, image in zip(items, images_of(evaluation, condition, items), strict=True):
        label = reading(evaluation, item)
        eta = float(evaluation.uncertainty[condition][item])
        new = float(novelty[condition][item]) if novelty else None
        thumbnails.append(Thumbnail(picture(image, f"{condition} image of {label}"), label, eta, new))
    return Row(condition, which, thumbnails)


def _first(evaluation: Evaluation, condition: Condition, values: Array) -> NDArray[np.intp]:
    """The images of the lowest values: one a class, and no two that look the same (all hidden, they do)."""
    candidates = np.argsort(values, kind="stable")[: 40 * SHOWN]
    seen: set[object] = set()
    chosen: list[int] = []
    for item, image in zip(candidates, images_of(evaluation, condition, candidates), strict=True):
        looks: set[object] = {int(evaluation.labels[item]), image.tobytes()}
        if not looks & seen:
            seen |= looks
            chosen.append(int(item))
    return np.array(chosen[:SHOWN], dtype=np.intp)


def spread_section(evaluation: Evaluation) -> Section:
    """η of all inputs, clean and corrupt.

    Args:
        evaluation: The test set, embedded.
    """
    clean, corrupt = (evaluation.uncertainty[c] for c in CONDITIONS)
    content = {
        "clean": clean.mean(),
        "corrupt": corrupt.mean(),
        "twin_order": twin_order(clean, corrupt),
        "auroc": uncertainty_auroc(clean, corrupt),
        "chart": _histogram(evaluation, evaluation.uncertainty, "uncertainty η", "η"),
    }
    return Section("spread.html", content)


def novelty_section(evaluation: Evaluation, novelty: dict[Condition, Array]) -> Section:
    """Novelty of all inputs, clean and corrupt, and the most novel of them, if they can be shown.

    Args:
        evaluation: The test set, embedded.
        novelty: Of its inputs.
    """
    clean, corrupt = (novelty[c] for c in CONDITIONS)
    pictured = evaluation.data.has_pictures
    content = {
        "clean": clean.mean(),
        "corrupt": corrupt.mean(),
        "auroc": uncertainty_auroc(clean, corrupt),
        "chart": _histogram(evaluation, novelty, "novelty", "novelty"),
        "rows": [_row(evaluation, c, "most novel", -novelty[c]) for c in CONDITIONS] if pictured else [],
    }
    return Section("novelty.html", content)


def _histogram(evaluation: Evaluation, found: dict[Condition, Array], name: str, short: str) -> Chart:
    """How η or novelty lies in both conditions."""
    inputs = evaluation.data.inputs
    panel = Panel(f"Share of test {inputs} by {short}")
    for condition in CONDITIONS:
        counts, edges = np.histogram(found[condition], bins=BINS, range=(0.0, 1.0))
        label = f"{condition}, mean {found[condition].mean():.3f}"
        draw_histogram(panel.axes, counts / len(found[condition]), edges, COLOURS[condition], label, width=1.4)
    panel.axes.set_xlim(0, 1)
    panel.axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    grid(panel.axes)
    panel.label(name, f"share of {inputs}")
    panel.legend()
    means = " and ".join(f"{found[c].mean():.3f} for {c} {inputs}" for c in CONDITIONS)
    return panel.chart(f"Histograms of {name}, with a mean of {means}")
