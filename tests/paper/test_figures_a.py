"""Figures of embeddings and of the method: they show what they promise. Models of three steps stand in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection, LineCollection
from matplotlib.figure import Figure as Canvas
from matplotlib.text import Annotation
from PIL import Image

from hedged.evaluation import CONDITIONS
from hedged.metrics import Centroids
from hedged.paper import (
    architecture,
    drawing,
    embedded_images,
    embeddings_2d,
    embeddings_3d,
    embeddings_mog,
    teaser,
)
from hedged.paper.exhibits import Figure
from hedged.paper.recipe import recipe
from hedged.paper.shelf import Shelf
from hedged.paper.style import FULL, SMALL
from hedged.report.images import images_of
from hedged.report.plane import Array
from hedged.report.space import DRAWN, Space

TINY: dict[str, dict[str, Any]] = {
    "data": {"source": "offline", "split": "number", "train_images": 2000, "test_images": 400, "per_class": 20},
    "model": {"channels": [2, 4], "hidden": 16},
    "loss": {"beta": 1e-4},
    "train": {"steps": 3, "warmup": 1, "batch_size": 32, "classes_per_batch": 4, "images_per_class": 4},
}
MODULES = (teaser, architecture, embeddings_2d, embedded_images, embeddings_mog, embeddings_3d)
FIGURES: dict[str, Figure] = {module.EXHIBIT.name: module.EXHIBIT for module in MODULES}


@dataclass(frozen=True, eq=False)
class Made:
    """A figure as it was drawn and as `write` left it."""

    canvas: Canvas
    files: list[Path]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    """All models of these figures, by a recipe that takes a moment."""
    shelf = Shelf(tmp_path_factory.mktemp("models"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hedged.paper.recipe._file", lambda: TINY)
        for figure in FIGURES.values():
            for need in figure.needs({}):
                shelf.fill(need)
        yield shelf


@pytest.fixture(scope="module")
def made(shelf: Shelf, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Made]:
    """Each figure by its name, drawn once."""
    return {name: _make(figure, shelf, tmp_path_factory.mktemp(name)) for name, figure in FIGURES.items()}


def _make(figure: Figure, shelf: Shelf, folder: Path) -> Made:
    canvas = figure.draw(shelf)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(figure), "draw", lambda figure, shelf: canvas)
        return Made(canvas, figure.write(shelf, folder, {}))


def ellipses_of(axes: Axes) -> tuple[Array, Array]:
    """Centres and widths and heights of all ellipses of a panel, `(n, 2)` each."""
    found = [c for c in axes.collections if isinstance(c, EllipseCollection)]
    sizes = [np.stack([c.get_widths(), c.get_heights()], axis=-1) for c in found]
    return np.concatenate([c.get_offsets() for c in found]), np.concatenate(sizes)


def has_ellipses(axes: Axes, means: Array, variances: Array, deviations: float) -> bool:
    """Whether the ellipses of a panel are those of these Gaussians, whatever their order, and turned or not."""
    centres, sizes = ellipses_of(axes)
    drawn = np.column_stack([centres, np.sort(sizes, axis=-1)])
    reach = np.sort(2 * deviations * np.sqrt(variances.reshape(-1, 2)), axis=-1)
    wanted = np.column_stack([means.reshape(-1, 2), reach])
    if drawn.shape != wanted.shape:
        return False
    return bool(np.allclose(drawn[np.lexsort(drawn.T)], wanted[np.lexsort(wanted.T)], rtol=1e-4))


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_a_picture_of_the_width_of_a_page(name: str, made: dict[str, Made]) -> None:
    with Image.open(made[name].files[0]) as image:
        image.load()
        assert image.width == round(200 * FULL)
        assert len(np.unique(np.asarray(image.convert("L")))) > 50


@pytest.mark.parametrize("name", FIGURES)
def test_text_is_large_enough_to_read(name: str, made: dict[str, Made]) -> None:
    for axes in made[name].canvas.axes:
        for text in (*axes.texts, axes.title, axes.xaxis.label):
            assert float(text.get_fontsize()) >= SMALL or not text.get_text()


def test_only_the_drawing_of_the_method_needs_no_model() -> None:
    assert [name for name, figure in FIGURES.items() if not figure.configs()] == ["architecture"]


def test_the_method_is_drawn_from_both_images_to_the_match_probability_by_both_ways(made: dict[str, Made]) -> None:
    (axes,) = made["architecture"].canvas.axes
    words = [text.get_text() for text in axes.texts]
    for wanted in ("$x_1$", "$x_2$", "$p(z_1|x_1)$", "$p(z_2|x_2)$", "$p(m|x_1,x_2)$"):
        assert words.count(wanted) == 1
    assert words.count("$f$") == 2
    for way in ("Monte Carlo", "Closed form"):
        assert sum(way in word for word in words) == 1
    samples, curve = axes.child_axes[4], axes.child_axes[5]
    assert [len(np.asarray(line.get_xydata())) for line in samples.get_lines()] == [8, 8]
    assert [len(np.asarray(line.get_xydata())) for line in curve.get_lines()] == [200, 64]


def test_ellipses_of_the_same_images_clean_and_corrupt(shelf: Shelf, made: dict[str, Made]) -> None:
    space = Space(shelf.evaluation(recipe(2, 2, "mog-1")))
    clean, corrupt = made["embeddings-2d"].canvas.axes
    assert clean.get_title() == "(a) Clean test images"
    assert corrupt.get_title() == "(b) Corrupt test images"
    assert has_ellipses(clean, *space.parts("clean", space.drawn), 1)
    assert has_ellipses(corrupt, *space.parts("corrupt", space.drawn), 1)
    assert len(ellipses_of(clean)[0]) == DRAWN
    assert [text.get_text() for text in clean.texts] == [f"{label:02d}" for label in space.centroids.labels]
    assert (clean.get_xlim(), clean.get_ylim()) == (corrupt.get_xlim(), corrupt.get_ylim())


@pytest.mark.parametrize(("row", "components"), [(0, 2), (1, 4)])
def test_components_of_one_image_are_joined(row: int, components: int, shelf: Shelf, made: dict[str, Made]) -> None:
    space = Space(shelf.evaluation(embeddings_mog.EXHIBIT.configs()[row]))
    for axes, condition in zip(made["embeddings-mog"].canvas.axes[2 * row :], CONDITIONS, strict=False):
        means, variances = space.parts(condition, space.drawn[: embeddings_mog.IMAGES])
        assert has_ellipses(axes, means, variances, 1)
        (lines,) = (c for c in axes.collections if isinstance(c, LineCollection))
        for line, parts in zip(lines.get_segments(), means, strict=True):
            assert len(line) == components
            assert np.allclose(np.sort(line, axis=0), np.sort(parts, axis=0))
        assert f"{components} components" in axes.get_title()


def test_the_line_through_components_is_the_shortest() -> None:
    path = drawing._shortest_path(np.array([[0.0, 0.0], [3.0, 0.0], [1.0, 0.0], [2.0, 0.0]]))
    assert np.abs(np.diff(path[:, 0])).tolist() == [1, 1, 1]


def test_wide_gaussians_are_beneath_and_fainter() -> None:
    axes = Canvas().add_subplot()
    found = drawing.ellipses(axes, np.zeros((2, 2)), np.array([[0.01, 0.01], [1.0, 4.0]]), "black", deviations=3)
    assert np.asarray(found.get_widths()).tolist() == pytest.approx([12, 0.6])
    assert np.asarray(found.get_heights()).tolist() == pytest.approx([6, 0.6])
    wide, narrow = np.asarray(found.get_facecolor())[:, 3]
    assert wide < narrow


def test_embedded_images_are_points_and_ellipses_of_the_same_images(shelf: Shelf, made: dict[str, Made]) -> None:
    point, hedged = (Space(shelf.evaluation(config)) for config in embedded_images.EXHIBIT.configs())
    shown = list(embedded_images.examples(hedged.evaluation))
    assert [example.condition for example in shown] == ["clean"] * 3 + ["corrupt"] * 5
    left, right = made["embedded-images"].canvas.axes
    assert not [c for c in left.collections if isinstance(c, EllipseCollection)]
    parts = [hedged.parts(example.condition, np.array([example.item])) for example in shown]
    means, variances = (np.concatenate(some) for some in zip(*parts, strict=True))
    assert has_ellipses(right, means, variances, 3)
    for axes, space in ((left, point), (right, hedged)):
        squares, *places = axes.get_lines()
        assert np.asarray(squares.get_xydata()) == pytest.approx(space.centroids.positions)
        assert squares.get_marker() == "s"
        expected = [space.parts(example.condition, np.array([example.item]))[0][0, 0] for example in shown]
        assert np.concatenate([line.get_xydata() for line in places]) == pytest.approx(np.stack(expected))


def test_hidden_digits_are_those_that_the_examples_say(shelf: Shelf) -> None:
    evaluation = shelf.evaluation(recipe(2, 2, "mog-1"))
    hidden = teaser.hidden_ink(evaluation)
    items = [example.item for example in embedded_images.examples(evaluation)][3:]
    assert (hidden[items] >= 0.5).tolist() == [[True, False]] * 2 + [[False, True]] * 2 + [[True, True]]
    clean, corrupt = (images_of(evaluation, c, np.array(items[:1]))[0] for c in CONDITIONS)
    assert hidden[items[0], 0] == pytest.approx(1 - corrupt[:, :28].sum() / clean[:, :28].sum())


def test_images_around_a_map_cover_neither_it_nor_each_other(made: dict[str, Made]) -> None:
    canvas = made["embedded-images"].canvas
    frames = [child.get_window_extent() for axes in canvas.axes for child in axes.child_axes]
    maps = [axes.get_window_extent() for axes in canvas.axes]
    assert len(frames) == 2 * 8
    for one, other in combinations([*frames, *maps], 2):
        assert not one.overlaps(other)
    for frame in frames:
        assert canvas.bbox.x0 <= frame.x0 < frame.x1 <= canvas.bbox.x1
        assert canvas.bbox.y0 <= frame.y0 < frame.y1 <= canvas.bbox.y1


def test_lines_to_the_images_do_not_cross(made: dict[str, Made]) -> None:
    for axes in made["embedded-images"].canvas.axes:
        to_axes = axes.transData + axes.transAxes.inverted()
        lines = [text for text in axes.texts if isinstance(text, Annotation)]
        ends = np.array([[to_axes.transform(line.xy), line.xyann] for line in lines])
        assert len(np.unique(ends[:, 1], axis=0)) == len(ends) == 8
        assert not any(_cross(one, other) for one, other in combinations(ends, 2))


def _cross(one: Array, other: Array) -> bool:
    """Whether two segments `(2, 2)` have a point inside both in common."""
    sides = [[np.linalg.det(np.stack([b[1] - b[0], p - b[0]])) for p in a] for a, b in ((one, other), (other, one))]
    return all(first * second < -1e-12 for first, second in sides)


def test_ellipsoids_of_the_same_images_clean_and_corrupt(made: dict[str, Made]) -> None:
    clean, corrupt = made["embeddings-3d"].canvas.axes
    assert clean.get_title() == "(a) Clean test images"
    assert corrupt.get_title() == "(b) Corrupt test images"
    for axes in (clean, corrupt):
        assert axes.name == "3d"
        solids = [c for c in axes.collections if c.get_rasterized()]
        assert [len(np.asarray(c.get_facecolor())) for c in solids] == [drawing.CAPS * embeddings_3d.DRAWN]
    assert clean.get_xlim() == corrupt.get_xlim()


def test_an_ellipsoid_is_its_silhouette_and_caps_within() -> None:
    axes: Any = Canvas().add_subplot(projection="3d")
    drawing.cube_view(axes, np.array([[-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]]))
    viewer, spread = drawing._direction(axes.elev, axes.azim), np.array([0.1, 1.0, 3.0])
    caps = drawing._caps(spread, axes)
    assert np.linalg.norm(caps, axis=-1) == pytest.approx(np.ones(caps.shape[:2]))
    facing = (caps / spread) @ viewer
    assert facing[0] == pytest.approx(np.zeros(caps.shape[1]), abs=1e-12)
    assert (facing[1:] > 0).all()
    drawing.ellipsoids(axes, np.zeros((2, 1, 3)), np.ones((2, 1, 3)), "black")


def test_a_cube_is_drawn_without_its_nearest_corner() -> None:
    edges = drawing._far_edges(20, -60)
    assert edges.shape == (9, 2, 3)
    assert not (edges == [1, -1, 1]).all(-1).any()


def grid() -> Centroids:
    """Classes where the tens are one axis and the ones the other."""
    labels = np.arange(100)
    return Centroids(labels, np.stack([labels // 10, labels % 10], axis=-1).astype(float))


def test_the_image_of_the_teaser_lies_on_two_readings() -> None:
    """Of seven images only 0 and 1 have two readings in question; 1 is the tighter."""
    pairs = [(17, 47), (17, 47), (17, 23), (41, 11), (47, 47), (17, 47), (17, 47)]
    means = grid().positions[np.array(pairs)] + 0.02
    variances = np.full_like(means, 1e-6)
    variances[0] = 0.1
    hidden = np.tile([0.9, 0.0], (7, 1))
    hidden[6] = 0.3
    labels = np.array([47, 47, 17, 47, 47, 87, 47])
    assert teaser.choose(means, variances, labels, grid(), hidden) == teaser.Choice(1, (17, 47))
    hidden[1] = [0.0, 0.9]  # then the 7 is hidden, and 17 is no reading of 47
    assert teaser.choose(means, variances, labels, grid(), hidden) == teaser.Choice(0, (17, 47))


def test_readings_far_apart_are_told_apart_better() -> None:
    means = grid().positions[np.array([[17, 27], [17, 87]])] + 0.1
    hidden, labels = np.tile([1.0, 0.0], (2, 1)), np.array([17, 17])
    assert teaser.choose(means, np.full_like(means, 1e-3), labels, grid(), hidden).item == 1


def test_there_is_a_teaser_even_if_no_image_has_two_readings() -> None:
    means = grid().positions[np.array([[17, 17], [35, 35]])]
    found = teaser.choose(means, np.zeros_like(means), np.array([17, 17]), grid(), np.zeros((2, 2)))
    assert found.readings in ((17, 17), (35, 35))


def test_the_teaser_shows_one_image_under_both_models(shelf: Shelf, made: dict[str, Made]) -> None:
    point, mixture = (Space(shelf.evaluation(config)) for config in teaser.EXHIBIT.configs())
    choice = teaser.chosen(mixture.evaluation)
    images, left, right = made["teaser"].canvas.axes
    assert len(images.child_axes) == 2
    assert has_ellipses(right, *mixture.parts("corrupt", np.array([choice.item])), 2)
    assert not [c for c in left.collections if isinstance(c, EllipseCollection)]
    place = point.parts("corrupt", np.array([choice.item]))[0][0]
    assert np.asarray(left.get_lines()[-1].get_xydata()) == pytest.approx(place)
    for axes, space in ((left, point), (right, mixture)):
        words = [text.get_text() for text in axes.texts if isinstance(text, Annotation)]
        found = [teaser.match(space.evaluation, choice.item, reading) for reading in choice.readings]
        assert [word.split()[-1] for word in words] == [f"{p:.2f}" for p in found]
        assert [int(word.split()[0]) for word in words] == list(choice.readings)


def test_the_numbers_of_the_teaser_are_those_in_the_picture(made: dict[str, Made]) -> None:
    cells = json.loads(made["teaser"].files[1].read_text(encoding="utf-8"))
    assert [cell["model"] for cell in cells] == ["point", "point", "mog-2", "mog-2"]
    words = [t.get_text() for axes in made["teaser"].canvas.axes for t in axes.texts if isinstance(t, Annotation)]
    assert [f"{cell['measured']:.2f}" for cell in cells] == [word.split()[-1] for word in words]
