"""Composition: each image is its digits side by side, and its label is what they read."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hedged.data import Digits, NDigit, build_ndigit
from hedged.errors import DataError, ValueRangeError


@given(n_digits=st.integers(1, 6), seed=st.integers(0, 99), data=st.data())
def test_images_are_their_digits_side_by_side(
    blank_digits: Digits, n_digits: int, seed: int, data: st.DataObject
) -> None:
    numbers = data.draw(
        st.lists(st.integers(0, 10**n_digits - 1), min_size=1, max_size=4, unique=True), label="numbers"
    )
    images = build_ndigit(blank_digits, n_digits, numbers, 7, np.random.default_rng(seed))
    composed = images.clean()
    assert composed.shape == (7 * len(numbers), 28, 28 * n_digits)
    for i, (image, ids) in enumerate(zip(composed, images.image_ids.tolist(), strict=True)):
        assert image.equal(torch.cat([blank_digits.images[j] for j in ids], dim=1))
        reading = "".join(str(int(blank_digits.labels[j])) for j in ids)
        assert int(reading) == numbers[i // 7] == int(images.labels[i])
    assert images.numbers.tolist() == sorted(numbers)
    assert images.n_classes == len(numbers)
    assert images.source == "blank"


def test_digits_repeat_only_when_they_must(blank_digits: Digits) -> None:
    # Each label has 5 digits: 12 samples use each at least twice and none more than three times.
    images = build_ndigit(blank_digits, 2, [33], 12, np.random.default_rng(0))
    for place in (0, 1):
        ids = images.image_ids[:, place].tolist()
        assert sorted(Counter(ids).values()) == [2, 2, 2, 3, 3]
        assert len(set(ids[:5])) == 5


def test_every_digit_of_a_label_is_equally_likely(blank_digits: Digits) -> None:
    generator = np.random.default_rng(0)
    ids = torch.cat([build_ndigit(blank_digits, 1, [3], 2, generator).image_ids for _ in range(2_000)])
    counts = ids.flatten().bincount(minlength=50)[3::10]
    assert abs(counts - 800).max() < 100


def test_eighteen_digits_fit_a_label(train_digits: Digits) -> None:
    largest = 10**18 - 1
    images = build_ndigit(train_digits, 18, [largest], 2, np.random.default_rng(0))
    assert images.labels.tolist() == [largest] * 2


def test_twins_differ_only_where_they_are_black(train_digits: Digits) -> None:
    images = build_ndigit(train_digits, 3, range(20), 5, np.random.default_rng(0))
    clean, corrupt = images.clean(), images.corrupt(seed=1)
    assert ((corrupt == clean) | (corrupt == 0)).all()
    assert (corrupt != clean).any()
    assert corrupt.equal(images.corrupt(seed=1))
    assert not corrupt.equal(images.corrupt(seed=2))


def test_a_twin_does_not_depend_on_what_else_is_asked_for(train_digits: Digits) -> None:
    images = build_ndigit(train_digits, 2, range(20), 5, np.random.default_rng(0))
    index = torch.tensor([99, 3, 3, 50])
    assert images.corrupt(7, index).equal(images.corrupt(7)[index])
    assert images.clean(index).equal(images.clean()[index])


def test_every_digit_of_a_corrupt_twin_is_occluded() -> None:
    white = Digits(torch.full((10, 28, 28), 255, dtype=torch.uint8), torch.arange(10), "white")
    images = build_ndigit(white, 2, range(100), 50, np.random.default_rng(0))
    left = (images.corrupt(seed=0)[:, :, :28] == 0).any(-1).any(-1)
    assert abs(float(left.float().mean()) - (28 / 29) ** 2) < 0.015


@pytest.mark.parametrize(
    ("n_digits", "numbers", "samples"),
    [(0, [0], 2), (19, [0], 2), (2, [100], 2), (2, [-1], 2), (2, [], 2), (2, [1], 0)],
)
def test_impossible_numbers_are_refused(blank_digits: Digits, n_digits: int, numbers: list[int], samples: int) -> None:
    with pytest.raises(ValueRangeError):
        build_ndigit(blank_digits, n_digits, numbers, samples, np.random.default_rng(0))


def test_a_digit_that_is_not_there_is_named(blank_digits: Digits) -> None:
    no_seven = blank_digits.subset(blank_digits.labels != 7)
    with pytest.raises(DataError, match="no image of the digit 7"):
        build_ndigit(no_seven, 2, [17], 2, np.random.default_rng(0))


@pytest.mark.parametrize("ids", [[[0, 50]], [[-1, 0]], [0, 1], [[]], [[0.0, 1.0]]])
def test_ids_that_name_no_digit_are_refused(blank_digits: Digits, ids: list[object]) -> None:
    with pytest.raises(DataError, match="image_ids"):
        NDigit(blank_digits, torch.tensor(ids))
