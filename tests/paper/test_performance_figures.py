"""Figures of performance: they draw what was measured. Models of three steps stand in."""

from __future__ import annotations

import numpy as np
import pytest
from paper.exhibition import Exhibition

from hedged.paper import soft_contrastive
from hedged.paper.recipe import recipe


def test_uncertainty_bins_are_those_of_the_evaluation(exhibition: Exhibition) -> None:
    evaluation = exhibition.evaluation(recipe(3, 3, "mog-1"))
    curves = [
        *(evaluation.ap_curve(condition) for condition in ("clean", "corrupt")),
        *(evaluation.knn_curve(gallery) for gallery in ("clean", "corrupt")),
    ]
    all_axes = exhibition["uncertainty-vs-performance"].axes
    for axes, curve in zip(all_axes, curves, strict=True):
        (line,) = axes.get_lines()
        assert np.array_equal(line.get_xydata(), np.stack([np.arange(1, 21), curve.performance], axis=1))
        assert f"{curve.kendall:.2f}" in axes.get_title()
        assert [label.get_text().split("\n")[1] for label in axes.get_xticklabels()] == [
            f"{curve.uncertainty[k]:.2f}" for k in (0, 9, 19)
        ]
    cells = exhibition["uncertainty-vs-performance"].cells
    assert [cell["measured"] for cell in cells] == pytest.approx([curve.kendall for curve in curves], abs=1e-5)
    assert [cell["paper"] for cell in cells] == [0.51, 0.85, 0.74, 0.67]


def test_panels_of_one_measure_have_one_height_that_holds_all_bins(exhibition: Exhibition) -> None:
    all_axes = exhibition["uncertainty-vs-performance"].axes
    assert [axes.get_title().split("\n")[0] for axes in all_axes] == [
        "(a) AP, clean",
        "(b) AP, corrupt",
        "(c) KNN, clean gallery",
        "(d) KNN, corrupt gallery",
    ]
    for left, right in (all_axes[:2], all_axes[2:]):
        assert left.get_ylim() == right.get_ylim()
        for axes in (left, right):
            values = np.asarray(axes.get_lines()[0].get_ydata())
            assert axes.get_ylim()[0] < values.min() <= values.max() < axes.get_ylim()[1]


def test_the_soft_contrastive_loss_is_one_level_line_and_the_other_goes_through_all_margins(
    exhibition: Exhibition,
) -> None:
    cells = exhibition["soft-contrastive"].cells
    for axes, metric in zip(exhibition["soft-contrastive"].axes, soft_contrastive.PANELS, strict=True):
        for gallery, dashes in (("clean", "-"), ("corrupt", "--")):
            found = [cell for cell in cells if (cell["metric"], cell["gallery"]) == (metric, gallery)]
            level, through = (line for line in axes.get_lines() if line.get_linestyle() == dashes)
            (soft,) = (cell["measured"] for cell in found if cell["objective"] == "soft-contrastive")
            assert np.asarray(level.get_ydata()) == pytest.approx([soft, soft], abs=1e-5)
            hard = [(cell["margin"], cell["measured"]) for cell in found if cell["objective"] == "contrastive"]
            assert np.asarray(through.get_xydata()) == pytest.approx(np.array(hard), abs=1e-5)
        assert axes.get_xscale() == "log"


def test_soft_contrastive_numbers_are_those_that_were_measured(exhibition: Exhibition) -> None:
    margin = soft_contrastive.MARGINS[2]
    config = recipe(2, 2, "point", loss__kind="contrastive", loss__margin=margin)
    accuracy = exhibition.evaluation(config).knn_accuracy("corrupt")
    (cell,) = (
        cell
        for cell in exhibition["soft-contrastive"].cells
        if (cell.get("margin"), cell["metric"], cell["gallery"]) == (margin, "knn_accuracy", "corrupt")
    )
    assert cell["measured"] == pytest.approx(accuracy, abs=1e-5)
    assert (cell["probe"], cell["vote"], cell["split"]) == ("clean", "majority", "seen")
