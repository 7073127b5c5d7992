"""Charts and choices behind the page."""

from __future__ import annotations

from io import BytesIO

import numpy as np
from PIL import Image

from hedged.evaluation import CONDITIONS
from hedged.evaluation.images import images_of
from hedged.evaluation.report.certainty import SHOWN, _first
from hedged.evaluation.report.pairs import EXCEPTIONS, _choose
from hedged.evaluation.report.panel import CSS_DPI, SHARPNESS, Panel
from hedged.evaluation.space import Space

from .conftest import Evaluate


def test_a_panel_is_as_large_as_it_says_and_transparent() -> None:
    panel = Panel("η < 1", height=3.0)
    panel.axes.plot([0, 1], [1, 0], label="falls")
    panel.legend()
    image = Image.open(BytesIO(panel.png()))
    assert image.size == (round(4.6 * CSS_DPI * SHARPNESS), 3 * CSS_DPI * SHARPNESS)
    assert np.asarray(image)[0, 0, 3] == 0
    chart = panel.chart("a line")
    assert (chart.title, chart.alt, chart.width, chart.height) == ("η < 1", "a line", 460, 300)


def test_both_panels_show_all_clouds(evaluate: Evaluate) -> None:
    space = Space(evaluate(head="mixture", components=2, dim=3))
    low, high = space.limits
    assert np.isfinite([low, high]).all()
    assert (low < high).all()
    for condition in CONDITIONS:
        places = space.plane.project(space.parts(condition, space.drawn)[0])
        assert ((places > low) & (places < high)).all()
    assert set(space.marked) <= set(space.drawn)


def test_the_ends_of_uncertainty_are_of_different_classes_and_looks(evaluate: Evaluate) -> None:
    evaluation = evaluate(numbers=range(20), each=12)
    for condition in CONDITIONS:
        eta = evaluation.uncertainty[condition]
        most, least = (_first(evaluation, condition, sign * eta) for sign in (1, -1))
        assert len(most) == len(least) == SHOWN
        assert eta[most[0]] == eta.min()
        assert eta[least[0]] == eta.max()
        assert len(set(evaluation.labels[least])) == SHOWN
        assert len(np.unique(images_of(evaluation, condition, least), axis=0)) == SHOWN


def test_pairs_shown_have_some_of_the_rarer_kind() -> None:
    truth = np.array([True] * 90 + [False] * 10)
    chosen = _choose(truth, np.random.default_rng(0))
    assert len(set(chosen)) == 6
    assert (~truth[chosen]).sum() == EXCEPTIONS
    assert _choose(np.array([True]), np.random.default_rng(0)) == [0]
