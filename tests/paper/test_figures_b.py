"""Figures of performance and of organisation: they draw what was measured. Models of three steps stand in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from PIL import Image

from hedged.metrics import axis_alignment, mean_run_length, run_lengths, shared_digit_count
from hedged.paper import centroids, kl_ellipsoids, number_line, soft_contrastive, uncertainty_vs_performance
from hedged.paper.exhibits import Figure
from hedged.paper.measurements import Cell
from hedged.paper.recipe import recipe
from hedged.paper.shelf import Shelf
from hedged.paper.style import FULL, SMALL, digit_colour, ink_on
from hedged.report.plane import one_of_each

TINY: dict[str, dict[str, Any]] = {
    "data": {"source": "offline", "split": "number", "train_images": 2000, "test_images": 400, "per_class": 20},
    "model": {"channels": [2, 4], "hidden": 16},
    "loss": {"beta": 1e-4},
    "train": {"steps": 3, "warmup": 1, "batch_size": 32, "classes_per_batch": 4, "images_per_class": 4},
}
MODULES = (uncertainty_vs_performance, soft_contrastive, centroids, number_line, kl_ellipsoids)
FIGURES: tuple[Figure, ...] = tuple(module.EXHIBIT for module in MODULES)
COUNTS = {
    "uncertainty-vs-performance": 4,
    "soft-contrastive": 32,
    "centroids": 2,
    "number-line": 16,
    "kl-ellipsoids": 20,
}


@dataclass(frozen=True, eq=False)
class Made:
    """A figure as `write` left it: its panels, its files and the cells in one of them."""

    axes: list[Axes]
    picture: Path
    cells: list[Cell]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    """All models of these figures, by a recipe that takes a moment."""
    shelf = Shelf(tmp_path_factory.mktemp("models"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hedged.paper.recipe._file", lambda: TINY)
        for figure in FIGURES:
            for need in figure.needs({}):
                shelf.fill(need)
        yield shelf


@pytest.fixture(scope="module")
def made(shelf: Shelf, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Made]:
    """Each figure by its name, written once."""
    folder = tmp_path_factory.mktemp("figures")
    return {figure.name: _make(figure, shelf, folder) for figure in FIGURES}


def _make(figure: Figure, shelf: Shelf, folder: Path) -> Made:
    canvas = figure.draw(shelf)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(figure), "draw", lambda figure, shelf: canvas)  # once is enough
        picture, numbers = figure.write(shelf, folder, {})
    return Made(canvas.axes, picture, json.loads(numbers.read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", COUNTS)
def test_a_figure_is_a_picture_of_the_width_of_a_page_and_its_numbers(name: str, made: dict[str, Made]) -> None:
    with Image.open(made[name].picture) as image:
        image.load()
        assert image.width == round(200 * FULL)
    assert len(made[name].cells) == COUNTS[name]
    for cell in made[name].cells:
        assert {"digits", "dim", "model", "metric", "split", "measured"} <= cell.keys()
        assert np.isfinite(cell["measured"])


@pytest.mark.parametrize("name", COUNTS)
def test_text_is_large_enough_to_read(name: str, made: dict[str, Made]) -> None:
    for axes in made[name].axes:
        written = [*axes.texts, axes.title, axes.xaxis.label, axes.yaxis.label]
        if axes.name != "3d":  # it has no ticks to be seen
            written += [*axes.get_xticklabels(), *axes.get_yticklabels()]
        assert all(float(text.get_fontsize()) >= SMALL for text in written if text.get_text())


def test_uncertainty_bins_are_those_of_the_evaluation(shelf: Shelf, made: dict[str, Made]) -> None:
    evaluation = shelf.evaluation(recipe(3, 3, "mog-1"))
    curves = [
        *(evaluation.ap_curve(condition) for condition in ("clean", "corrupt")),
        *(evaluation.knn_curve(gallery) for gallery in ("clean", "corrupt")),
    ]
    all_axes = made["uncertainty-vs-performance"].axes
    for axes, curve in zip(all_axes, curves, strict=True):
        (line,) = axes.get_lines()
        assert np.array_equal(line.get_xydata(), np.stack([np.arange(1, 21), curve.performance], axis=1))
        assert f"{curve.kendall:.2f}" in axes.get_title()
        assert [label.get_text().split("\n")[1] for label in axes.get_xticklabels()] == [
            f"{curve.uncertainty[k]:.2f}" for k in (0, 9, 19)
        ]
    cells = made["uncertainty-vs-performance"].cells
    assert [cell["measured"] for cell in cells] == pytest.approx([curve.kendall for curve in curves], abs=1e-5)
    assert [cell["paper"] for cell in cells] == [0.51, 0.85, 0.74, 0.67]


def test_panels_of_one_measure_have_one_height_that_holds_all_bins(made: dict[str, Made]) -> None:
    all_axes = made["uncertainty-vs-performance"].axes
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
    made: dict[str, Made],
) -> None:
    cells = made["soft-contrastive"].cells
    for axes, metric in zip(made["soft-contrastive"].axes, soft_contrastive.PANELS, strict=True):
        for gallery, dashes in (("clean", "-"), ("corrupt", "--")):
            found = [cell for cell in cells if (cell["metric"], cell["gallery"]) == (metric, gallery)]
            level, through = (line for line in axes.get_lines() if line.get_linestyle() == dashes)
            (soft,) = (cell["measured"] for cell in found if cell["objective"] == "soft-contrastive")
            assert np.asarray(level.get_ydata()) == pytest.approx([soft, soft], abs=1e-5)
            hard = [(cell["margin"], cell["measured"]) for cell in found if cell["objective"] == "contrastive"]
            assert np.asarray(through.get_xydata()) == pytest.approx(np.array(hard), abs=1e-5)
        assert axes.get_xscale() == "log"


def test_soft_contrastive_numbers_are_those_that_were_measured(shelf: Shelf, made: dict[str, Made]) -> None:
    margin = soft_contrastive.MARGINS[2]
    config = recipe(2, 2, "point", loss__kind="contrastive", loss__margin=margin)
    accuracy = shelf.evaluation(config).knn_accuracy("corrupt")
    (cell,) = (
        cell
        for cell in made["soft-contrastive"].cells
        if (cell.get("margin"), cell["metric"], cell["gallery"]) == (margin, "knn_accuracy", "corrupt")
    )
    assert cell["measured"] == pytest.approx(accuracy, abs=1e-5)
    assert (cell["probe"], cell["vote"], cell["split"]) == ("clean", "majority", "seen")


def test_every_class_is_a_digit_at_its_centroid(shelf: Shelf, made: dict[str, Made]) -> None:
    all_axes = made["centroids"].axes
    found = [centres for centres in centroids.EXHIBIT.centroids(shelf) for _ in range(2)]
    for axes, centres, unit in zip(all_axes, found, (1, 10, 1, 10), strict=True):
        assert centres.labels.tolist() == list(range(100))
        assert np.array([text.get_position() for text in axes.texts]) == pytest.approx(centres.positions)
        digits = centres.labels // unit % 10
        assert [int(text.get_text()) for text in axes.texts] == digits.tolist()
        (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
        assert ((centres.positions > [left, low]) & (centres.positions < [right, high])).all()
    scores = [cell["measured"] for cell in made["centroids"].cells]
    assert scores == pytest.approx([axis_alignment(centres).score for centres in found[::2]], abs=1e-5)


def test_the_share_that_a_digit_explains_stands_along_its_dimension(shelf: Shelf, made: dict[str, Made]) -> None:
    """`explained` has the tens first, the columns of the figure have the ones first."""
    all_axes = made["centroids"].axes
    for axes, centres in zip(all_axes[::2], centroids.EXHIBIT.centroids(shelf), strict=True):
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


def test_the_number_line_is_sorted_by_centroid_and_shows_the_median_trial(shelf: Shelf, made: dict[str, Made]) -> None:
    cells = made["number-line"].cells
    for axes, model in zip(made["number-line"].axes, ("mog-1", "point"), strict=True):
        counts = {c["seed"]: c for c in cells if (c["model"], c["metric"]) == (model, "shared_digit_count")}
        (shown,) = (seed for seed, cell in counts.items() if cell["drawn"])
        assert sum(cell["measured"] < counts[shown]["measured"] for cell in counts.values()) <= 1
        assert sum(cell["measured"] > counts[shown]["measured"] for cell in counts.values()) <= 2
        evaluation = shelf.evaluation(recipe(2, 1, model, seed=shown, data__split="instance"))
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


def test_bars_join_the_classes_of_a_run(made: dict[str, Made]) -> None:
    for axes in made["number-line"].axes:
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


def test_weights_of_the_kl_term_rise_from_panel_to_panel(made: dict[str, Made]) -> None:
    *cubes, trend = made["kl-ellipsoids"].axes
    assert [axes.get_title() for axes in cubes] == [
        rf"({letter}) $\beta = 10^{{-{power}}}$" for letter, power in zip("abcde", (6, 5, 4, 3, 2), strict=True)
    ]
    betas = [config.loss.beta for config in kl_ellipsoids.EXHIBIT.configs()]
    assert betas == sorted(betas) == list(kl_ellipsoids.BETAS)
    for line in trend.get_lines():
        assert np.asarray(line.get_xdata()).tolist() == betas


def test_the_middle_weight_is_the_model_of_the_tables(shelf: Shelf) -> None:
    assert kl_ellipsoids.EXHIBIT.configs()[2].fingerprint() == recipe(3, 3, "mog-1").fingerprint()


def test_all_cubes_are_one_cube_that_holds_every_ellipsoid_and_the_unit_sphere(
    shelf: Shelf, made: dict[str, Made]
) -> None:
    *cubes, _ = made["kl-ellipsoids"].axes
    limits = [np.array([axes.get_xlim(), axes.get_ylim(), axes.get_zlim()]) for axes in cubes]  # type: ignore[attr-defined]
    for cube, config in zip(limits, kl_ellipsoids.EXHIBIT.configs(), strict=True):
        assert np.array_equal(cube, limits[0])
        low, high = cube.T
        z = shelf.evaluation(config).embeddings["corrupt"]
        drawn = one_of_each(shelf.evaluation(config).labels, kl_ellipsoids.DRAWN, 0)
        means, deviations = z.mean.numpy()[drawn], z.variance.sqrt().numpy()[drawn]
        assert (means - deviations >= low - 1e-5).all()
        assert (means + deviations <= high + 1e-5).all()
        assert (low <= -1).all()
        assert (high >= 1).all()


def test_averages_of_each_weight(shelf: Shelf, made: dict[str, Made]) -> None:
    cells = made["kl-ellipsoids"].cells
    for beta, config in zip(kl_ellipsoids.BETAS, kl_ellipsoids.EXHIBIT.configs(), strict=True):
        evaluation = shelf.evaluation(config)
        for condition in ("clean", "corrupt"):
            found = {c["metric"]: c["measured"] for c in cells if (c["beta"], c["probe"]) == (beta, condition)}
            assert found == {
                "uncertainty": pytest.approx(evaluation.uncertainty[condition].mean(), abs=1e-5),
                "standard_deviation": pytest.approx(
                    float(evaluation.embeddings[condition].variance.sqrt().mean()), abs=1e-5
                ),
            }


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
