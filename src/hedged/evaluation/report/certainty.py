"""How certain the model is: the images at both ends of η, and η over the whole test set."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from hedged.evaluation.evaluation import CONDITIONS, Condition, Evaluation
from hedged.evaluation.images import images_of, reading
from hedged.evaluation.report.panel import Panel
from hedged.evaluation.report.section import Chart, Picture, Section, picture
from hedged.metrics import twin_order, uncertainty_auroc
from hedged.plots.curves import draw_histogram
from hedged.plots.style import COLOURS, grid

SHOWN = 8  # images of a row
BINS = 40


class Thumbnail(NamedTuple):
    """An image with what it shows and how uncertain it is."""

    picture: Picture
    label: str
    uncertainty: float


class Row(NamedTuple):
    """The most or the least certain images of a condition."""

    condition: Condition
    end: str
    thumbnails: list[Thumbnail]


def extremes_section(evaluation: Evaluation) -> Section:
    """The most and least certain images, clean and corrupt, each with its η.

    Args:
        evaluation: The test set, embedded; its images can be shown.
    """
    rows = [_row(evaluation, c, most) for c in CONDITIONS for most in (True, False)]
    return Section("extremes.html", {"rows": rows})


def _row(evaluation: Evaluation, condition: Condition, most_certain: bool) -> Row:
    items = _ends(evaluation, condition, most_certain)
    thumbnails = []
    for item, image in zip(items, images_of(evaluation, condition, items), strict=True):
        label = reading(evaluation, item)
        eta = float(evaluation.uncertainty[condition][item])
        thumbnails.append(Thumbnail(picture(image, f"{condition} image of {label}"), label, eta))
    return Row(condition, "most" if most_certain else "least", thumbnails)


def _ends(evaluation: Evaluation, condition: Condition, most_certain: bool) -> NDArray[np.intp]:
    """The images of lowest or highest η: one a class, and no two that look the same (all hidden, they do)."""
    eta = evaluation.uncertainty[condition]
    order = np.argsort(eta if most_certain else -eta, kind="stable")
    candidates = order[: 40 * SHOWN]
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
        "chart": _histogram(evaluation),
    }
    return Section("spread.html", content)


def _histogram(evaluation: Evaluation) -> Chart:
    inputs, eta = evaluation.data.inputs, evaluation.uncertainty
    panel = Panel(f"Share of test {inputs} by η")
    for condition in CONDITIONS:
        counts, edges = np.histogram(eta[condition], bins=BINS, range=(0.0, 1.0))
        label = f"{condition}, mean {eta[condition].mean():.3f}"
        draw_histogram(panel.axes, counts / len(eta[condition]), edges, COLOURS[condition], label, width=1.4)
    panel.axes.set_xlim(0, 1)
    panel.axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    grid(panel.axes)
    panel.label("uncertainty η", f"share of {inputs}")
    panel.legend()
    means = " and ".join(f"{eta[c].mean():.3f} for {c} {inputs}" for c in CONDITIONS)
    return panel.chart(f"Histograms of the uncertainty, with a mean of {means}")
