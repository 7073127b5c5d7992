"""Occlusion against what the appendix says, pixel by pixel."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from torch import Tensor

from hedged.data.ndigit.occlusion import cover, draw_boxes, occlude
from hedged.errors import ShapeError, ValueRangeError

WHITE = torch.full((28, 28), 255, dtype=torch.uint8)


def slow_cover(digit: Tensor, box: list[int]) -> Tensor:
    covered = digit.clone()
    top, left, bottom, right = box
    for row in range(top, bottom):
        for column in range(left, right):
            covered[row, column] = 0
    return covered


@given(seed=st.integers(0, 2**32), chance=st.floats(0, 1), batch=st.sampled_from([(), (3,), (2, 3), (0, 2)]))
def test_patches_are_the_boxes_drawn(seed: int, chance: float, batch: tuple[int, ...]) -> None:
    digits = torch.from_numpy(np.random.default_rng(seed).integers(1, 256, (*batch, 28, 28), dtype=np.uint8))
    before = digits.clone()
    occluded = occlude(digits, chance, np.random.default_rng(seed))
    boxes = draw_boxes(batch, chance, np.random.default_rng(seed))
    assert occluded.dtype == torch.uint8
    assert digits.equal(before)
    for image, result, box in zip(
        digits.view(-1, 28, 28), occluded.view(-1, 28, 28), boxes.reshape(-1, 4), strict=True
    ):
        assert result.equal(slow_cover(image, box.tolist()))


def test_boxes_lie_within_the_digit() -> None:
    boxes = draw_boxes((20_000,), 1.0, np.random.default_rng(0))
    assert (boxes >= 0).all()
    assert (boxes <= 28).all()
    assert (boxes[:, :2] <= boxes[:, 2:]).all()


@pytest.mark.parametrize("axis", [0, 1])
def test_sides_are_uniform_from_0_to_28(axis: int) -> None:
    boxes = draw_boxes((29_000,), 1.0, np.random.default_rng(1))
    sides = boxes[:, axis + 2] - boxes[:, axis]
    assert chisquare(np.bincount(sides, minlength=29)).pvalue > 0.001


def test_corners_are_uniform_where_the_patch_fits() -> None:
    boxes = draw_boxes((29_000,), 1.0, np.random.default_rng(2))
    tops = boxes[boxes[:, 2] - boxes[:, 0] == 20, 0]
    assert len(tops) > 800
    assert chisquare(np.bincount(tops, minlength=9)).pvalue > 0.001


def test_height_and_width_are_independent() -> None:
    boxes = draw_boxes((20_000,), 1.0, np.random.default_rng(3))
    height, width = (boxes[:, 2:] - boxes[:, :2]).T
    assert abs(np.corrcoef(height, width)[0, 1]) < 4 / 20_000**0.5


@pytest.mark.parametrize("chance", [0.0, 0.2, 1.0])
def test_the_chance_is_honoured_digit_by_digit(chance: float) -> None:
    n = 10_000
    touched = (occlude(WHITE.expand(n, 2, 28, 28), chance, np.random.default_rng(4)) == 0).any(-1).any(-1)
    seen = chance * (28 / 29) ** 2  # a patch of no height or no width leaves no trace
    spread = 4 * (seen * (1 - seen) / n) ** 0.5
    assert abs(float(touched[:, 0].float().mean()) - seen) <= spread
    both = (touched[:, 0] & touched[:, 1]).float().mean()
    assert abs(float(both) - seen**2) <= 4 * (seen**2 * (1 - seen**2) / n) ** 0.5


def test_a_whole_digit_and_none_of_it() -> None:
    assert cover(WHITE, np.array([0, 0, 28, 28])).sum() == 0
    assert cover(WHITE, np.array([5, 5, 5, 28])).equal(WHITE)


def test_composed_images_are_refused() -> None:
    with pytest.raises(ShapeError, match="before composing"):
        occlude(torch.zeros(3, 28, 56, dtype=torch.uint8), 0.2, np.random.default_rng(0))


@pytest.mark.parametrize("chance", [-0.1, 1.1, float("nan")])
def test_impossible_chances_are_refused(chance: float) -> None:
    with pytest.raises(ValueRangeError, match=r"\[0, 1\]"):
        occlude(WHITE, chance, np.random.default_rng(0))
