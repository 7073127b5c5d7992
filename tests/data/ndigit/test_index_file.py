"""Index files in the layout of google/n-digit-mnist, made small."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from hedged.data import Digits, read_index
from hedged.errors import DataError

IDS = np.array([[[14, 7], [4, 17], [24, 27]], [[0, 9], [10, 19], [20, 29]]])  # of blank digits: 47 and 09
GOOD = {"image_ids": IDS, "chosen_numbers": np.array([47, 9]), "sample_per_number": np.array(3)}


def test_images_come_in_the_order_of_the_file(tmp_path: Path, blank_digits: Digits) -> None:
    np.savez(tmp_path / "index.npz", allow_pickle=True, **GOOD)
    images = read_index(tmp_path / "index.npz", blank_digits)
    assert images.labels.tolist() == [47, 47, 47, 9, 9, 9]
    assert images.clean(torch.tensor([1]))[0, 0].tolist() == [4] * 28 + [17] * 28


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"image_ids": IDS[0]}, r"\(classes, samples, N\)"),
        ({"image_ids": IDS.astype(float)}, "float64"),
        ({"sample_per_number": np.array(4)}, "sample_per_number 4"),
        ({"chosen_numbers": np.array([47])}, r"chosen_numbers \(1,\)"),
        ({"chosen_numbers": np.array([47, 8])}, "image 3 should read 8 but its digits are 9"),
        ({"image_ids": IDS + 50}, "numbered 0 to 49"),
        ({"image_ids": np.array([None, "object"])}, "it holds Python objects"),
    ],
)
def test_what_is_wrong_is_named(
    tmp_path: Path, blank_digits: Digits, change: dict[str, np.ndarray], message: str
) -> None:
    np.savez(tmp_path / "index.npz", allow_pickle=True, **(GOOD | change))
    with pytest.raises(DataError, match=f"index.npz is no index file .*{message}"):
        read_index(tmp_path / "index.npz", blank_digits)


def test_other_files_are_refused(tmp_path: Path, blank_digits: Digits) -> None:
    np.savez(tmp_path / "other.npz", images=IDS)
    np.save(tmp_path / "array.npy", IDS)
    (tmp_path / "empty.npz").touch()
    (tmp_path / "text.npz").write_text("no zip at all")
    (tmp_path / "cut.npz").write_bytes((tmp_path / "other.npz").read_bytes()[:100])
    for name in ("other.npz", "array.npy", "empty.npz", "text.npz", "cut.npz", "absent.npz"):
        with pytest.raises(DataError, match=f"{name} is no index file"):
            read_index(tmp_path / name, blank_digits)
