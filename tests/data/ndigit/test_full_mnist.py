"""The real digits, where they can be had."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hedged.data import Digits, ndigit_splits, read_index
from hedged.errors import DataError

pytestmark = pytest.mark.mnist


def test_mnist_is_what_it_is_known_to_be(mnist: tuple[Digits, Digits]) -> None:
    train, test = mnist
    assert (len(train), len(test)) == (60_000, 10_000)
    assert train.labels[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert round(float(train.images.double().mean()), 3) == 33.318


@pytest.mark.parametrize("n_digits", [2, 3])
@pytest.mark.parametrize(
    ("split", "parts"), [("instance", ["train", "test"]), ("number", ["train", "test_seen", "test_unseen"])]
)
def test_standard_files_give_exactly_their_images(
    mnist: tuple[Digits, Digits], standard_files: Path, n_digits: int, split: str, parts: list[str]
) -> None:
    for part in parts:
        path = standard_files / f"dataset_mnist_{n_digits}_{split}_{part}.npz"
        digits = mnist[part != "train"]
        images = read_index(path, digits)
        with np.load(path) as content:
            index = dict(content)
        classes, samples, _ = index["image_ids"].shape
        assert len(images) == classes * samples
        assert images.labels.view(classes, samples)[:, 0].tolist() == index["chosen_numbers"].tolist()
        for c, s in ((0, 0), (classes // 2, 1), (classes - 1, samples - 1)):
            expected = np.hstack([digits.images[i].numpy() for i in index["image_ids"][c, s]])
            position = images.labels.new_tensor([c * samples + s])
            assert (images.clean(position)[0].numpy() == expected).all()


def test_a_file_for_the_other_part_is_refused(mnist: tuple[Digits, Digits], standard_files: Path) -> None:
    with pytest.raises(DataError, match="should read 0 but its digits are"):
        read_index(standard_files / "dataset_mnist_2_instance_test.npz", mnist[0])


@pytest.mark.parametrize("n_digits", [2, 3])
def test_own_splits_have_the_sizes_of_the_standard_files(
    mnist: tuple[Digits, Digits], standard_files: Path, n_digits: int
) -> None:
    own = ndigit_splits(*mnist, n_digits=n_digits, split="number")
    parts = {"train": own.train, "test_seen": own.test["seen"], "test_unseen": own.test["unseen"]}
    for name, images in parts.items():
        with np.load(standard_files / f"dataset_mnist_{n_digits}_number_{name}.npz") as content:
            standard = content["image_ids"]
        assert (images.n_classes, len(images)) == (standard.shape[0], standard.shape[0] * standard.shape[1])
        # As there, no digit is twice at the same place of the same number.
        places = images.image_ids.view(standard.shape).numpy()
        assert all(len(set(column)) == len(column) for group in places for column in group.T.tolist())
