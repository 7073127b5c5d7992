"""Figures of where the classes lie: every class is at its place. Models of three steps stand in."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from paper.exhibition import Exhibition

from hedged.metrics import axis_alignment, mean_run_length, run_lengths, shared_digit_count
from hedged.paper import centroids, number_line
from hedged.paper.recipe import recipe
from hedged.plots.style import digit_colour, ink_on


def test_every_class_is_a_digit_at_its_centroid(exhibition: Exhibition) -> None:
    all_axes = exhibition["centroids"].axes
    found = [centres for centres in centroids.EXHIBIT.centroids(exhibition.shelf) for _ in range(2)]
    for axes, centres, unit in zip(all_axes, found, (1, 10, 1, 10), strict=True):
        assert centres.labels.tolist() == list(range(100))
        assert np.array([text.get_position() for text in axes.texts]) == pytest.approx(centres.positions)
        digits = centres.labels // unit % 10
        assert [int(text.get_text()) for text in axes.texts] == digits.tolist()
        (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
        assert ((centres.positions > [left, low]) & (centres.positions < [right, high])).all()
    scores = [cell["measured"] for cell in exhibition["centroids"].cells]
    assert scores == pytest.approx([axis_alignment(centres).score for centres in found[::2]], abs=1e-5)


def test_the_share_that_a_digit_explains_stands_along_its_dimension(exhibition: Exhibition) -> None:
    """`explained` has the tens first, the columns of the figure have the ones first."""
    all_axes = exhibition["centroids"].axes
    for axes, centres in zip(all_axes[::2], centroids.EXHIBIT.centroids(exhibition.shelf), strict=True):
        first, second = axis_alignment(centres).explained[:, 1]
        assert f"{first:.0%}" in axes.get_xlabel()
        assert f"{second:.0%}" in axes.get_ylabel()
        assert "ones" in axes.get_xlabel()


def drawn_bars(axes: Axes) -> list[list[tuple[float, float]]]:
    """Left and right end of the bars, track by track from top to bottom."""
    tracks: dict[float, list[tuple[float, float]]] = {}
    for collection in axes.collections:
        assert isinstance(collection, PolyCollection)
        for path in collection.get_paths():
            box = path.get_extents()
            tracks.setdefault(round(-box.y0, 3), []).append((box.x0, box.x1))
    return [tracks[height] for height in sorted(tracks)]


def test_the_number_line_is_sorted_by_centroid_and_shows_the_median_trial(exhibition: Exhibition) -> None:
    cells = exhibition["number-line"].cells
    for axes, model in zip(exhibition["number-line"].axes, ("mog-1", "point"), strict=True):
        counts = {c["seed"]: c for c in cells if (c["model"], c["metric"]) == (model, "shared_digit_count")}
        (shown,) = (seed for seed, cell in counts.items() if cell["drawn"])
        assert sum(cell["measured"] < counts[shown]["measured"] for cell in counts.values()) <= 1
        assert sum(cell["measured"] > counts[shown]["measured"] for cell in counts.values()) <= 2
        evaluation = exhibition.evaluation(recipe(2, 1, model, seed=shown, data__split="instance"))
        places = evaluation.embeddings["clean"].mean[:, 0].numpy()
        order = sorted(range(100), key=lambda number: places[evaluation.labels == number].mean(dtype=float))
        spelled = spell(axes)
        assert [10 * tens + ones for tens, ones in spelled] == order


def spell(axes: Axes) -> list[tuple[int, int]]:
    """The tens and ones of every class, read from the blocks and the digits in them."""
    tens, ones, _ = drawn_bars(axes)
    digits = iter(int(text.get_text()) for text in axes.texts)
    tracks = [[next(digits)] * round(right - left) for left, right in (*tens, *ones)]
    flat = [digit for block in tracks for digit in block]
    return list(zip(flat[:100], flat[100:], strict=True))


def test_bars_join_the_classes_of_a_run(exhibition: Exhibition) -> None:
    for axes in exhibition["number-line"].axes:
        order = [10 * tens + ones for tens, ones in spell(axes)]
        *_, runs = drawn_bars(axes)
        lengths = run_lengths(order)
        assert [round(right + 0.25) - round(left - 0.25) for left, right in runs] == lengths.tolist()
        assert [round(left - 0.25) for left, _ in runs] == (np.cumsum(lengths) - lengths).tolist()
        assert f"{shared_digit_count(order)} of 99" in axes.get_title("right")
        assert f"{mean_run_length(order):.1f} classes" in axes.get_title("right")


def test_the_paper_of_the_number_line() -> None:
    assert number_line.PAPER == {"mog-1": ((76, 80), 4.6), "point": ((42, 74), 3.0)}


@pytest.mark.parametrize(
    ("counts", "trial"), [([5], 0), ([9, 1], 1), ([3, 1, 2], 2), ([4, 4, 4, 4], 1), ([1, 9, 5, 7], 2)]
)
def test_the_median_trial_is_the_lower_of_two(counts: list[int], trial: int) -> None:
    assert number_line.median_trial(counts) == trial


@pytest.mark.parametrize("digit", range(10))
def test_a_digit_can_be_read_on_its_colour(digit: int) -> None:
    """The contrast ratio of WCAG, at least the 3 that it asks of large text and of marks."""

    def luminance(colour: str) -> float:
        parts = [{"white": "#ffffff"}.get(colour, colour)[k : k + 2] for k in (1, 3, 5)]
        values = [int(part, 16) / 255 for part in parts]
        linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))

    ground = digit_colour(digit)
    dark, light = sorted([luminance(ground), luminance(ink_on(ground))])
    assert (light + 0.05) / (dark + 0.05) >= 3
