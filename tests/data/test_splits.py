"""No identity is in two parts, whatever the rule; the same rule gives the same parts."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedged.data import Photos, SplitRule, Splits
from hedged.data.photos.cache import Decoded, Squares
from hedged.data.photos.dataset import split_photos
from hedged.data.photos.listing import Listing
from hedged.errors import DataError


def split(
    identities: list[str], parts: list[str] | None = None, broken: tuple[int, ...] = (), **rule: Any
) -> Splits[Photos]:
    paths = [Path(f"{i}.jpg") for i in range(len(identities))]
    squares = Squares(Path("cache"), np.zeros((len(paths), 8, 8, 3), np.uint8), np.zeros(len(paths), np.uint32))
    decoded = Decoded(squares, dict.fromkeys(broken, "broken"))
    return split_photos(Listing(paths, identities, parts), decoded, 6, SplitRule(**rule), "test")


def shown(splits: Splits[Photos]) -> dict[str, set[str]]:
    """The identities of each part."""
    parts = {"train": splits.train, "validation": splits.validation, "test": splits.test["test"]}
    return {name: {photos.name(int(y)) for y in photos.labels} for name, photos in parts.items() if photos}


@given(
    st.lists(st.sampled_from("abcdefghij"), min_size=3, max_size=60).filter(lambda names: len(set(names)) > 3),
    st.floats(0.05, 0.5),
    st.floats(0, 0.3),
    st.integers(0, 2**63 - 1),
)
def test_no_identity_is_in_two_parts_and_none_is_lost(
    names: list[str], test_share: float, validation_share: float, seed: int
) -> None:
    parts = shown(split(names, test_share=test_share, validation_share=validation_share, seed=seed))
    assert sorted(name for part in parts.values() for name in part) == sorted(set(names))
    assert len(parts["test"]) == np.ceil(test_share * len(set(names)))


def test_the_draw_depends_on_the_seed_alone_not_on_the_photos() -> None:
    few, many = [f"{i}" for i in range(50)], [f"{i % 50}" for i in range(170)]
    assert shown(split(few, seed=1)) == shown(split(many, seed=1)) != shown(split(few, seed=2))


def test_dogs_whose_number_is_a_multiple_of_five() -> None:
    parts = shown(split([f"{i}" for i in range(137)], by="pattern", test_pattern="[05]$"))
    assert parts["test"] == {f"{i}" for i in range(0, 137, 5)}
    assert len(parts["validation"]) == 11  # a tenth of the 109 others, rounded up


def test_by_column() -> None:
    names, column = ["a", "a", "b", "c", "d"], ["train", "Train", "val", "test", "test"]
    assert shown(split(names, column, by="column")) == {"train": {"a"}, "validation": {"b"}, "test": {"c", "d"}}
    parts = shown(split(["a", "b", "c"], ["train", "train", "test"], by="column", validation_share=0.5))
    assert parts["test"] == {"c"}
    assert len(parts["validation"]) == 1


def test_a_column_that_is_not_used_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "hedged"):
        split(["a", "b", "c", "d"], ["train", "train", "test", "test"])
    assert 'set data.split = "column"' in caplog.text


def test_broken_photos_are_in_no_part() -> None:
    parts = split(["a", "a", "b", "b", "c", "c"], broken=(0, 3), test_share=0.3, validation_share=0.3)
    found = [*parts.train.paths, *(parts.validation.paths if parts.validation else ()), *parts.test["test"].paths]
    assert sorted(path.stem for path in found) == ["1", "2", "4", "5"]


@pytest.mark.parametrize(
    ("names", "parts", "rule", "words"),
    [
        (["a", "a"], None, {}, "leaves none of the 2 inputs to train on"),
        (
            ["a", "b"],
            None,
            {"by": "pattern", "test_pattern": "z"},
            "inputs to test: data.test_pattern = 'z'",
        ),
        (["a", "b"], None, {"by": "pattern", "test_pattern": "("}, "not a regular expression"),
        (["a", "b"], None, {"by": "column"}, "there is none"),
        (["a", "b"], ["train", "probe"], {"by": "column"}, "says 'probe', expected one of train"),
        (["a", "a", "b"], ["train", "test", "test"], {"by": "column"}, "a has inputs in train and in test"),
    ],
)
def test_rules_that_leave_nothing(names: list[str], parts: list[str] | None, rule: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        split(names, parts, **rule)
