"""What all figures have in common, and the one that needs no model. Models of three steps stand in."""

from __future__ import annotations

import numpy as np
import pytest
from paper.exhibition import Exhibition
from PIL import Image

from hedged.paper import catalogue
from hedged.paper.catalogue import exhibit
from hedged.plots.style import FULL, SMALL

FIGURES = [name for name in catalogue.FIGURES if not exhibit(name).needs_photos]  # those: test_pets.py
COUNTS = {
    "teaser": 4,
    "uncertainty-vs-performance": 4,
    "soft-contrastive": 32,
    "centroids": 2,
    "number-line": 16,
    "kl-ellipsoids": 30,
}  # of the numbers beside a figure


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_a_picture_of_the_width_of_a_page(name: str, exhibition: Exhibition) -> None:
    with Image.open(exhibition[name].picture) as image:
        image.load()
        assert image.width == round(200 * FULL)
        assert len(np.unique(np.asarray(image.convert("L")))) > 50


@pytest.mark.parametrize("name", FIGURES)
def test_the_numbers_of_a_figure_are_all_there(name: str, exhibition: Exhibition) -> None:
    cells = exhibition[name].cells
    assert len(cells) == COUNTS.get(name, 0)
    for cell in cells:
        assert {"digits", "dim", "model", "metric", "split", "measured"} <= cell.keys()
        assert np.isfinite(cell["measured"])


@pytest.mark.parametrize("name", FIGURES)
def test_text_is_large_enough_to_read(name: str, exhibition: Exhibition) -> None:
    for axes in exhibition[name].axes:
        written = [*axes.texts, axes.title, axes.xaxis.label, axes.yaxis.label]
        if axes.name != "3d":  # it has no ticks to be seen
            written += [*axes.get_xticklabels(), *axes.get_yticklabels()]
        assert all(float(text.get_fontsize()) >= SMALL for text in written if text.get_text())


def test_only_the_drawing_of_the_method_needs_no_model() -> None:
    assert [name for name in FIGURES if not exhibit(name).needs({})] == ["architecture"]


def test_the_method_is_drawn_from_both_images_to_the_match_probability_by_both_ways(exhibition: Exhibition) -> None:
    (axes,) = exhibition["architecture"].axes
    words = [text.get_text() for text in axes.texts]
    for wanted in ("$x_1$", "$x_2$", "$p(z_1|x_1)$", "$p(z_2|x_2)$", "$p(m|x_1,x_2)$"):
        assert words.count(wanted) == 1
    assert words.count("$f$") == 2
    for way in ("Monte Carlo", "Closed form"):
        assert sum(way in word for word in words) == 1
    samples, curve = axes.child_axes[4], axes.child_axes[5]
    assert [len(np.asarray(line.get_xydata())) for line in samples.get_lines()] == [8, 8]
    assert [len(np.asarray(line.get_xydata())) for line in curve.get_lines()] == [200, 64]
