"""The splits: the paper's sizes, and nothing shared that must not be."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from hedged.data import Digits, NDigit, SplitSizes, ndigit_splits
from hedged.data.ndigit.splits import Split
from hedged.errors import DataError, ValueRangeError

SMALL = SplitSizes(train=2_000, validation=600, test=800, per_class=8)


def size(images: NDigit) -> tuple[int, int]:
    """Classes, and images of each: the same for all."""
    (samples,) = set(Counter(images.labels.tolist()).values())
    return images.n_classes, samples


@pytest.mark.parametrize(
    ("n_digits", "train", "test"),
    [(2, (100, 1000), (100, 100)), (3, (1000, 100), (1000, 10)), (4, (1000, 100), (1000, 10))],
)
def test_sizes_by_instance(
    train_digits: Digits, test_digits: Digits, n_digits: int, train: tuple[int, int], test: tuple[int, int]
) -> None:
    parts = ndigit_splits(train_digits, test_digits, n_digits, "instance")
    assert size(parts.train) == train
    assert set(parts.test) == {"instance"}
    assert size(parts.test["instance"]) == test
    assert parts.test["instance"].numbers.equal(parts.train.numbers)


@pytest.mark.parametrize(
    ("n_digits", "train", "seen", "unseen"),
    [
        (2, (70, 1428), (70, 142), (30, 333)),
        (3, (700, 142), (100, 100), (100, 100)),
        (6, (1000, 100), (100, 100), (100, 100)),
    ],
)
def test_sizes_by_number_are_the_paper_s(
    train_digits: Digits,
    test_digits: Digits,
    n_digits: int,
    train: tuple[int, int],
    seen: tuple[int, int],
    unseen: tuple[int, int],
) -> None:
    parts = ndigit_splits(train_digits, test_digits, n_digits, "number")
    assert [size(parts.train), size(parts.test["seen"]), size(parts.test["unseen"])] == [train, seen, unseen]
    assert len(parts.test["all"]) == len(parts.test["seen"]) + len(parts.test["unseen"])


@pytest.mark.parametrize("n_digits", [1, 2, 3, 18])
def test_unseen_numbers_are_never_trained_on(train_digits: Digits, test_digits: Digits, n_digits: int) -> None:
    parts = ndigit_splits(train_digits, test_digits, n_digits, "number", sizes=SMALL, holdout=0.2)
    assert parts.validation is not None
    trained = set(parts.train.numbers.tolist())
    assert set(parts.test["seen"].numbers.tolist()) <= trained
    assert set(parts.validation.numbers.tolist()) <= trained
    assert not trained & set(parts.test["unseen"].numbers.tolist())
    union = parts.test["all"]
    assert union.labels.equal(torch.cat([parts.test["seen"].labels, parts.test["unseen"].labels]))


@pytest.mark.parametrize("split", ["instance", "number"])
def test_no_digit_of_validation_is_in_training(blank_digits: Digits, split: Split) -> None:
    parts = ndigit_splits(blank_digits, blank_digits, 2, split, holdout=0.4, sizes=SMALL)
    assert parts.validation is not None
    trained, validated = (
        set(images.clean()[:, 0, ::28].flatten().tolist()) for images in (parts.train, parts.validation)
    )
    assert (len(trained), len(validated)) == (30, 20)
    assert not trained & validated


def test_test_images_are_of_test_digits(train_digits: Digits, test_digits: Digits) -> None:
    parts = ndigit_splits(train_digits, test_digits, 2, "number", sizes=SMALL)
    assert parts.validation is None
    assert parts.train.digits.images.equal(train_digits.images)
    assert all(images.digits is test_digits for images in parts.test.values())


def test_one_digit_images_are_never_repeated(train_digits: Digits, test_digits: Digits) -> None:
    parts = ndigit_splits(train_digits, test_digits, 1)
    for images in (parts.train, parts.test["instance"]):
        assert len(set(images.image_ids.flatten().tolist())) == len(images)
        assert images.n_classes == 10


def test_the_seed_decides(train_digits: Digits, test_digits: Digits) -> None:
    first, again, other = (
        ndigit_splits(train_digits, test_digits, 2, "number", seed=seed, holdout=0.1, sizes=SMALL) for seed in (3, 3, 4)
    )
    assert first.train.clean().equal(again.train.clean())
    assert first.test["all"].image_ids.equal(again.test["all"].image_ids)
    assert not first.train.numbers.equal(other.train.numbers)


def test_impossible_splits_are_refused(train_digits: Digits, test_digits: Digits) -> None:
    with pytest.raises(ValueRangeError, match="instance"):
        ndigit_splits(train_digits, test_digits, split="digit")  # type: ignore[arg-type]
    with pytest.raises(ValueRangeError, match="holdout"):
        ndigit_splits(train_digits, test_digits, holdout=1.0)
    with pytest.raises(ValueRangeError, match="n_digits"):
        ndigit_splits(train_digits, test_digits, n_digits=0)
    with pytest.raises(DataError, match="lack one of the labels"):
        ndigit_splits(train_digits, test_digits, holdout=0.001)
    with pytest.raises(ValueRangeError, match="per_class"):
        SplitSizes(test=99)
