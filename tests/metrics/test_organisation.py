"""Organisation against digits read as text."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedged.errors import DataError, ShapeError, ValueRangeError
from hedged.metrics import (
    Centroids,
    axis_alignment,
    best_turn,
    class_centroids,
    digit_reading,
    mean_run_length,
    run_lengths,
    shared_digit_count,
)

orders = st.lists(st.integers(0, 99), unique=True, min_size=1, max_size=40)
SNAKE = [10 * tens + (ones if tens % 2 == 0 else 9 - ones) for tens in range(10) for ones in range(10)]


def share(a: int, b: int, n_digits: int) -> bool:
    return any(x == y for x, y in zip(str(a).zfill(n_digits), str(b).zfill(n_digits), strict=True))


def slow_runs(order: list[int], n_digits: int) -> list[int]:
    runs = [1]
    for a, b in pairwise(order):
        if share(a, b, n_digits):
            runs[-1] += 1
        else:
            runs.append(1)
    return runs


@given(orders, st.integers(2, 3))
def test_runs_and_counts_are_those_of_the_digits_as_text(order: list[int], n_digits: int) -> None:
    runs = slow_runs(order, n_digits)
    count = sum(share(a, b, n_digits) for a, b in pairwise(order))
    assert shared_digit_count(order, n_digits) == count
    assert run_lengths(order, n_digits).tolist() == runs
    assert mean_run_length(order, n_digits) == pytest.approx(len(order) / (len(order) - count))
    connected = [length for length in runs if length > 1]
    expected = np.mean(connected) if connected else 0.0
    assert mean_run_length(order, n_digits, isolated=False) == pytest.approx(expected)
    assert shared_digit_count(order[::-1], n_digits) == count


def test_a_snake_through_the_grid_shares_99_of_99() -> None:
    assert shared_digit_count(SNAKE) == 99
    assert mean_run_length(SNAKE) == mean_run_length(SNAKE, isolated=False) == 100.0
    assert shared_digit_count(range(100)) == 90  # 09 and 10 share nothing


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(-9, 9), st.floats(-9, 9)), min_size=1))
def test_centroids_are_the_means_of_their_classes(items: list[tuple[int, float, float]]) -> None:
    centroids = class_centroids([item[1:] for item in items], [item[0] for item in items])
    assert centroids.labels.tolist() == sorted({label for label, *_ in items})
    for label, position in zip(centroids.labels, centroids.positions, strict=True):
        assert position == pytest.approx(np.mean([point for y, *point in items if y == label], axis=0))


def test_order_runs_along_the_line() -> None:
    assert class_centroids([[0.5], [0.1], [0.3], [0.7]], [3, 12, 12, 40]).order.tolist() == [12, 3, 40]
    with pytest.raises(ShapeError, match="centroids of 2 dimensions have no order"):
        _ = class_centroids([[0.5, 0.1]], [3]).order


def slow_explained(x: list[float], digit: list[str]) -> float:
    """1 − within / total, the other half of the ANOVA identity."""
    groups = [[v for v, d in zip(x, digit, strict=True) if d == value] for value in set(digit)]
    within = sum((v - np.mean(group)) ** 2 for group in groups for v in group)
    return float(1 - within / sum((v - np.mean(x)) ** 2 for v in x))


def test_alignment_is_one_minus_the_variance_within() -> None:
    classes = np.array([0, 1, 3, 10, 13, 25, 71, 79, 99])  # unequal groups
    positions = np.random.default_rng(0).normal(size=(len(classes), 2))
    explained = axis_alignment(Centroids(classes, positions)).explained
    for axis in range(2):
        for place in range(2):
            digit = [f"{c:02d}"[place] for c in classes]
            assert explained[axis, place] == pytest.approx(slow_explained(positions[:, axis].tolist(), digit))


def test_a_grid_is_aligned_until_it_is_turned() -> None:
    grid = np.stack(np.divmod(np.arange(100), 10), axis=1).astype(float)
    turn = np.array([[1, -1], [1, 1]]) / np.sqrt(2)
    assert axis_alignment(Centroids(np.arange(100), grid)).score == pytest.approx(1.0)
    assert axis_alignment(Centroids(np.arange(100), grid[:, ::-1])).score == pytest.approx(1.0)
    assert axis_alignment(Centroids(np.arange(100), grid @ turn)).score == pytest.approx(0.5)
    assert axis_alignment(Centroids(np.arange(100), np.ones((100, 2)))).score == 0.0


def test_bad_input_is_named() -> None:
    with pytest.raises(ShapeError, match=r"means has shape \(2,\); expected \(n, D\)"):
        class_centroids([0.1, 0.2], [1, 2])
    with pytest.raises(ShapeError, match="means 2, labels 1"):
        class_centroids([[0.1], [0.2]], [1])
    with pytest.raises(ValueRangeError, match="means holds NaN or infinity"):
        class_centroids([[np.nan]], [1])
    with pytest.raises(DataError, match="order names 3 classes, 2 distinct"):
        shared_digit_count([1, 2, 1])
    with pytest.raises(DataError, match="expected whole numbers"):
        shared_digit_count([0.5, 1.5])
    with pytest.raises(ValueRangeError, match="classes run from 1 to 100; expected 0 to 99: n_digits=2"):
        shared_digit_count([1, 100])


@pytest.mark.parametrize("degrees", [-30.0, 0.0, 12.5, 45.0])
def test_the_turn_is_found_at_which_digits_lie_along_the_axes(degrees: float) -> None:
    tens, ones = np.divmod(np.arange(100), 10)
    cos, sin = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    grid = np.stack([3.0 * tens, ones.astype(float)], axis=1) @ np.array([[cos, sin], [-sin, cos]])
    turn = best_turn(Centroids(np.arange(100), grid))
    assert turn.degrees == degrees
    assert turn.score == pytest.approx(1.0)
    with pytest.raises(ShapeError, match="a plane is turned"):
        best_turn(Centroids(np.arange(10), np.zeros((10, 3))))


def slow_reading(column: list[float], digit: list[int], beside: int) -> float:
    """One item after the other: the neighbours on either side vote."""
    along = [digit[i] for i in np.argsort(column, kind="stable")]
    read = []
    for k in range(len(along)):
        votes = [*along[max(k - beside, 0) : k], *along[k + 1 : k + 1 + beside]]
        read.append(max(range(10), key=lambda value: (votes.count(value), -value)))
    return float(np.mean([a == b for a, b in zip(read, along, strict=True)]))


def test_a_digit_is_read_as_its_neighbours_vote() -> None:
    rng = np.random.default_rng(1)
    labels, means = rng.integers(0, 100, 150), rng.normal(size=(150, 2))
    means[:, 1] += labels // 10  # the tens along the second dimension
    found = digit_reading(means, labels, beside=4)
    for axis in range(2):
        for place, digits in enumerate((labels // 10, labels % 10)):
            assert found.accuracy[axis, place] == slow_reading(means[:, axis].tolist(), digits.tolist(), 4)
    assert found.score == pytest.approx(max(np.trace(found.accuracy), np.trace(found.accuracy[::-1])) / 2)


def test_digits_are_read_along_their_axes_and_not_along_diagonals() -> None:
    labels = np.repeat(np.arange(100), 40)
    noise = np.random.default_rng(0).uniform(0, 0.9, (len(labels), 2))
    grid = np.stack(np.divmod(labels, 10), axis=1) + noise
    assert digit_reading(grid, labels).score == pytest.approx(1.0, abs=0.02)
    assert digit_reading(grid @ np.array([[1, -1], [1, 1]]), labels).score < 0.3
    with pytest.raises(ValueRangeError, match="beside"):
        digit_reading(grid, labels, beside=0)
