"""Figures of embeddings: their ellipses and ellipsoids are those of the images. Models of three steps stand in."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import EllipseCollection, LineCollection
from matplotlib.figure import Figure as Canvas
from matplotlib.text import Annotation
from paper.exhibition import Exhibition, ellipses_of, has_ellipses

from hedged.evaluation import CONDITIONS
from hedged.evaluation.space import DRAWN, Space
from hedged.paper import embedded_images, embeddings_3d, embeddings_mog, kl_ellipsoids
from hedged.paper.recipe import recipe
from hedged.plots import ellipses, ellipsoids
from hedged.plots.plane import Array, one_of_each


def test_ellipses_of_the_same_images_clean_and_corrupt(exhibition: Exhibition) -> None:
    space = Space(exhibition.evaluation(recipe(2, 2, "mog-1")))
    clean, corrupt = exhibition["embeddings-2d"].axes
    assert clean.get_title() == "(a) Clean test images"
    assert corrupt.get_title() == "(b) Corrupt test images"
    assert has_ellipses(clean, *space.parts("clean", space.drawn), 1)
    assert has_ellipses(corrupt, *space.parts("corrupt", space.drawn), 1)
    assert len(ellipses_of(clean)[0]) == DRAWN
    assert [text.get_text() for text in clean.texts] == [f"{label:02d}" for label in space.centroids.labels]
    assert (clean.get_xlim(), clean.get_ylim()) == (corrupt.get_xlim(), corrupt.get_ylim())


@pytest.mark.parametrize(("row", "components"), [(0, 2), (1, 4)])
def test_components_of_one_image_are_joined(row: int, components: int, exhibition: Exhibition) -> None:
    space = Space(exhibition.evaluation(embeddings_mog.EXHIBIT.configs()[row]))
    for axes, condition in zip(exhibition["embeddings-mog"].axes[2 * row :], CONDITIONS, strict=False):
        means, variances = space.parts(condition, space.drawn[: embeddings_mog.IMAGES])
        assert has_ellipses(axes, means, variances, 1)
        (lines,) = (c for c in axes.collections if isinstance(c, LineCollection))
        for line, parts in zip(lines.get_segments(), means, strict=True):
            assert len(line) == components
            assert np.allclose(np.sort(line, axis=0), np.sort(parts, axis=0))
        assert f"{components} components" in axes.get_title()


def test_the_line_through_components_is_the_shortest() -> None:
    path = ellipses._shortest_path(np.array([[0.0, 0.0], [3.0, 0.0], [1.0, 0.0], [2.0, 0.0]]))
    assert np.abs(np.diff(path[:, 0])).tolist() == [1, 1, 1]


def test_wide_gaussians_are_beneath_and_fainter() -> None:
    axes = Canvas().add_subplot()
    found = ellipses.draw_ellipses(axes, np.zeros((2, 2)), np.array([[0.01, 0.01], [1.0, 4.0]]), "black", deviations=3)
    assert np.asarray(found.get_widths()).tolist() == pytest.approx([12, 0.6])
    assert np.asarray(found.get_heights()).tolist() == pytest.approx([6, 0.6])
    wide, narrow = np.asarray(found.get_facecolor())[:, 3]
    assert wide < narrow


def test_embedded_images_are_points_and_ellipses_of_the_same_images(exhibition: Exhibition) -> None:
    point, hedged = (Space(exhibition.evaluation(config)) for config in embedded_images.EXHIBIT.configs())
    shown = list(embedded_images.examples(hedged.evaluation))
    assert [example.condition for example in shown] == ["clean"] * 3 + ["corrupt"] * 5
    left, right = exhibition["embedded-images"].axes
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


def test_images_around_a_map_cover_neither_it_nor_each_other(exhibition: Exhibition) -> None:
    canvas = exhibition["embedded-images"].canvas
    frames = [child.get_window_extent() for axes in canvas.axes for child in axes.child_axes]
    maps = [axes.get_window_extent() for axes in canvas.axes]
    assert len(frames) == 2 * 8
    for one, other in combinations([*frames, *maps], 2):
        assert not one.overlaps(other)
    for frame in frames:
        assert canvas.bbox.x0 <= frame.x0 < frame.x1 <= canvas.bbox.x1
        assert canvas.bbox.y0 <= frame.y0 < frame.y1 <= canvas.bbox.y1


def test_lines_to_the_images_do_not_cross(exhibition: Exhibition) -> None:
    for axes in exhibition["embedded-images"].axes:
        to_axes = axes.transData + axes.transAxes.inverted()
        lines = [text for text in axes.texts if isinstance(text, Annotation)]
        ends = np.array([[to_axes.transform(line.xy), line.xyann] for line in lines])
        assert len(np.unique(ends[:, 1], axis=0)) == len(ends) == 8
        assert not any(_cross(one, other) for one, other in combinations(ends, 2))


def _cross(one: Array, other: Array) -> bool:
    """Whether two segments `(2, 2)` have a point inside both in common."""
    sides = [[np.linalg.det(np.stack([b[1] - b[0], p - b[0]])) for p in a] for a, b in ((one, other), (other, one))]
    return all(first * second < -1e-12 for first, second in sides)


def test_ellipsoids_of_the_same_images_clean_and_corrupt(exhibition: Exhibition) -> None:
    clean, corrupt = exhibition["embeddings-3d"].axes
    assert clean.get_title() == "(a) Clean test images"
    assert corrupt.get_title() == "(b) Corrupt test images"
    for axes in (clean, corrupt):
        assert axes.name == "3d"
        solids = [c for c in axes.collections if c.get_rasterized()]
        assert [len(np.asarray(c.get_facecolor())) for c in solids] == [ellipsoids.CAPS * embeddings_3d.DRAWN]
    assert clean.get_xlim() == corrupt.get_xlim()


def test_an_ellipsoid_is_its_silhouette_and_caps_within() -> None:
    axes: Any = Canvas().add_subplot(projection="3d")
    ellipsoids.cube_view(axes, np.array([[-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]]))
    viewer, spread = ellipsoids._direction(axes.elev, axes.azim), np.array([0.1, 1.0, 3.0])
    caps = ellipsoids._caps(spread, axes)
    assert np.linalg.norm(caps, axis=-1) == pytest.approx(np.ones(caps.shape[:2]))
    facing = (caps / spread) @ viewer
    assert facing[0] == pytest.approx(np.zeros(caps.shape[1]), abs=1e-12)
    assert (facing[1:] > 0).all()
    ellipsoids.draw_ellipsoids(axes, np.zeros((2, 1, 3)), np.ones((2, 1, 3)), "black")


def test_a_cube_is_drawn_without_its_nearest_corner() -> None:
    edges = ellipsoids._far_edges(20, -60)
    assert edges.shape == (9, 2, 3)
    assert not (edges == [1, -1, 1]).all(-1).any()


def test_weights_of_the_kl_term_rise_from_panel_to_panel(exhibition: Exhibition) -> None:
    *cubes, trend = exhibition["kl-ellipsoids"].axes
    assert [axes.get_title() for axes in cubes] == [
        rf"({letter}) $\beta = 10^{{-{power}}}$" for letter, power in zip("abcde", (6, 5, 4, 3, 2), strict=True)
    ]
    betas = [config.loss.beta for config in kl_ellipsoids.EXHIBIT.configs()]
    assert betas == sorted(betas) == list(kl_ellipsoids.BETAS)
    for line in trend.get_lines():
        assert np.asarray(line.get_xdata()).tolist() == betas


def test_the_middle_weight_is_the_model_of_the_tables(exhibition: Exhibition) -> None:
    assert kl_ellipsoids.EXHIBIT.configs()[2].digest() == recipe(3, 3, "mog-1").digest()


def test_all_cubes_are_one_cube_that_holds_every_ellipsoid_and_the_unit_sphere(exhibition: Exhibition) -> None:
    *cubes, _ = exhibition["kl-ellipsoids"].axes
    limits = [np.array([axes.get_xlim(), axes.get_ylim(), axes.get_zlim()]) for axes in cubes]  # type: ignore[attr-defined]
    for cube, config in zip(limits, kl_ellipsoids.EXHIBIT.configs(), strict=True):
        assert np.array_equal(cube, limits[0])
        low, high = cube.T
        z = exhibition.evaluation(config).embeddings["corrupt"]
        drawn = one_of_each(exhibition.evaluation(config).labels, kl_ellipsoids.DRAWN, 0)
        means, deviations = z.mean.numpy()[drawn], z.variance.sqrt().numpy()[drawn]
        assert (means - deviations >= low - 1e-5).all()
        assert (means + deviations <= high + 1e-5).all()
        assert (low <= -1).all()
        assert (high >= 1).all()


def test_averages_of_each_weight(exhibition: Exhibition) -> None:
    cells = exhibition["kl-ellipsoids"].cells
    for beta, config in zip(kl_ellipsoids.BETAS, kl_ellipsoids.EXHIBIT.configs(), strict=True):
        evaluation = exhibition.evaluation(config)
        places = evaluation.embeddings["clean"].mean.double().numpy()
        centres = np.stack([places[evaluation.labels == label].mean(0) for label in np.unique(evaluation.labels)])
        spread = np.sqrt(((centres - centres.mean(0)) ** 2).mean())
        for condition in ("clean", "corrupt"):
            found = {c["metric"]: c["measured"] for c in cells if (c["beta"], c["probe"]) == (beta, condition)}
            sigma = float(evaluation.embeddings[condition].variance.sqrt().mean())
            assert found == {
                "uncertainty": pytest.approx(evaluation.uncertainty[condition].mean(), abs=1e-5),
                "standard_deviation": pytest.approx(sigma, abs=1e-5),
                "relative_standard_deviation": pytest.approx(sigma / spread, rel=1e-4, abs=1e-5),
            }
