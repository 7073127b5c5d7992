"""How certain the model is: the images at both ends of η, and η over the whole test set."""

from __future__ import annotations

import numpy as np
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from hedged.evaluation.evaluation import CONDITIONS, Condition, Evaluation
from hedged.evaluation.images import images_of, reading, thumbnail
from hedged.evaluation.report.markup import Section, escape, grid
from hedged.evaluation.report.panel import Panel
from hedged.metrics import twin_order, uncertainty_auroc
from hedged.plots.style import COLOURS, FAINT

SHOWN = 8  # images of a row
BINS = 40


def extremes_section(evaluation: Evaluation) -> Section:
    """The most and least certain images, clean and corrupt, each with its η."""
    lead = (
        "The uncertainty η of an image is the chance that two draws from its cloud would not match. Certain images "
        "should be easy to tell for you too; uncertain ones are sloppy, ambiguous or mostly hidden. At most one image "
        "of each class is shown."
    )
    rows = [_row(evaluation, c, most) for c in CONDITIONS for most in (True, False)]
    return Section("extremes", "What it is sure of, and what not", lead, "\n".join(rows))


def _row(evaluation: Evaluation, condition: Condition, most_certain: bool) -> str:
    items = _ends(evaluation, condition, most_certain)
    images = images_of(evaluation, condition, items)
    cards = []
    for item, image in zip(items, images, strict=True):
        label = reading(evaluation, item)
        eta = f"{evaluation.uncertainty[condition][item]:.3f}"
        picture = thumbnail(image, f"{condition} image of {label}")
        cards.append(f'<div class="thumb">{picture}<span><b>{escape(label)}</b> η {eta}</span></div>')
    title = f"{condition.capitalize()}, {'most' if most_certain else 'least'} certain"
    return f'<h3 class="{condition}">{title}</h3>\n' + grid(cards, "thumbs")


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
    """η of all images, clean and corrupt."""
    eta = evaluation.uncertainty
    clean, corrupt = eta["clean"], eta["corrupt"]
    lead = (
        f"Nobody told the model which images are corrupt. Its mean η is <b>{clean.mean():.3f}</b> for clean images and "
        f"<b>{corrupt.mean():.3f}</b> for corrupt ones. Hiding part of an image raises its η in "
        f"<b>{twin_order(clean, corrupt):.0%}</b> of cases; of a random clean and a random corrupt image, the corrupt "
        f"one has the higher η <b>{uncertainty_auroc(clean, corrupt):.0%}</b> of the time."
    )
    return Section("spread", "Uncertainty of clean and corrupt images", lead, grid([_histogram(evaluation)], "charts"))


def _histogram(evaluation: Evaluation) -> str:
    panel = Panel("Share of test images by η")
    eta = evaluation.uncertainty
    for condition in CONDITIONS:
        counts, edges = np.histogram(eta[condition], bins=BINS, range=(0.0, 1.0))
        share, colour = counts / len(eta[condition]), COLOURS[condition]
        label = f"{condition}, mean {eta[condition].mean():.3f}"
        panel.axes.stairs(share, edges, fill=True, color=colour, alpha=0.35, label=label)
        panel.axes.stairs(share, edges, color=colour, linewidth=1.4)
    panel.axes.set_xlim(0, 1)
    panel.axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    panel.axes.grid(axis="y", color=FAINT, linewidth=0.6)
    panel.label("uncertainty η", "share of images")
    panel.legend()
    means = " and ".join(f"{eta[c].mean():.3f} for {c} images" for c in CONDITIONS)
    return panel.html(f"Histograms of the uncertainty, with a mean of {means}")
