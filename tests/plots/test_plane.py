"""The view on embeddings of any dimension."""

from __future__ import annotations

import numpy as np
import pytest

from hedged.plots.plane import Plane, one_of_each


def test_two_dimensions_are_seen_as_they_are() -> None:
    points = np.random.default_rng(0).normal(size=(7, 2))
    plane = Plane.through(points)
    np.testing.assert_array_equal(plane.project(points), points)
    width, height, angle = plane.ellipses(np.array([[4.0, 1.0], [1.0, 9.0]]))
    np.testing.assert_allclose(width, [4, 6])  # the longer axis: twice the deviation
    np.testing.assert_allclose(height, [2, 2])
    np.testing.assert_allclose(np.abs(angle) % 180, [0, 90])


def test_an_ellipse_in_the_view_is_the_covariance_of_projected_samples() -> None:
    rng = np.random.default_rng(0)
    plane = Plane.through(rng.normal(size=(200, 5)) * [3, 2, 1, 0.5, 0.1])
    variance = np.array([[0.5, 2.0, 1.0, 0.1, 3.0]])
    samples = plane.project(rng.normal(size=(200_000, 5)) * np.sqrt(variance))
    (width,), (height,), (angle,) = plane.ellipses(variance)
    turn = np.radians(angle)
    axes = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    expected = axes.T @ np.diag([(width / 2) ** 2, (height / 2) ** 2]) @ axes
    np.testing.assert_allclose(np.cov(samples.T), expected, atol=0.03)
    assert np.allclose(plane.ellipses(np.diag(variance[0])[None]), plane.ellipses(variance))
    np.testing.assert_allclose(plane.deviations(np.diag(variance[0])), samples.std(0), rtol=0.01)


def test_an_ellipse_turns_with_its_covariance() -> None:
    (width,), (height,), (angle,) = Plane.through(np.zeros((1, 2))).ellipses(np.array([[[2.5, 1.5], [1.5, 2.5]]]))
    np.testing.assert_allclose([width, height, angle % 180], [4, 2, 45])


def test_the_principal_axes_hold_the_most_variance() -> None:
    means = np.random.default_rng(0).normal(size=(500, 3)) * [1, 10, 5]
    plane = Plane.through(means)
    assert plane.share == pytest.approx(means[:, 1:].var(0).sum() / means.var(0).sum(), abs=0.01)
    np.testing.assert_allclose(plane.directions.T @ plane.directions, np.eye(2), atol=1e-12)


def test_means_that_are_all_one_have_a_plane_too() -> None:
    assert Plane.through(np.ones((4, 3))).share == 1.0


def test_a_sample_has_every_class_before_any_twice() -> None:
    labels = np.repeat(np.arange(1000), 3)
    assert len(set(labels[one_of_each(labels, 1000, seed=1)])) == 1000
    some = labels[one_of_each(labels, 100, seed=1)]
    assert len(set(some)) == 100
    assert some.max() > 900  # of all classes, not of the first
    assert sorted(one_of_each(labels, 10_000, seed=1)) == list(range(3000))
