"""KNN against a count of every vote."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedged.errors import DataError, ShapeError, ValueRangeError
from hedged.metrics import knn_accuracy, knn_correct


def slow_correct(votes: list[str], right: str, vote: str) -> bool:
    count = Counter(votes)
    if vote == "majority":
        return count[right] > len(votes) / 2
    tied = [label for label in count if count[label] == max(count.values())]
    return min(tied, key=votes.index) == right


votes = st.integers(1, 6).flatmap(
    lambda k: st.lists(st.lists(st.sampled_from("abc"), min_size=k, max_size=k), min_size=1)
)


@given(votes=votes, seed=st.integers(0, 9))
def test_votes_are_counted_as_by_hand(votes: list[list[str]], seed: int) -> None:
    gallery = np.concatenate(votes)
    neighbours = np.arange(gallery.size).reshape(len(votes), -1)
    right = np.random.default_rng(seed).choice(list("abc"), size=len(votes))
    majority = knn_correct(neighbours, gallery, right, "majority")
    plurality = knn_correct(neighbours, gallery, right, "plurality")
    assert majority.tolist() == [slow_correct(v, r, "majority") for v, r in zip(votes, right, strict=True)]
    assert plurality.tolist() == [slow_correct(v, r, "plurality") for v, r in zip(votes, right, strict=True)]
    assert np.all(plurality >= majority)  # more than half is always the most
    assert knn_accuracy(neighbours, gallery, right, "plurality") == plurality.mean()


@pytest.mark.parametrize(
    ("votes", "majority", "plurality"),
    [
        ("aaabb", True, True),
        ("baaca", True, True),  # three of five, however far
        ("aabbc", False, True),  # a tie: the closest sample is an a
        ("babac", False, False),  # a tie: the closest sample is a b
        (
            "cabab",
            False,
            True,
        ),  # a tie of a and b, and a is closer; the closest of all is a c, which is not tied
        ("abcde", False, True),  # five classes: the nearest neighbour decides
    ],
)
def test_votes_of_five(votes: str, majority: bool, plurality: bool) -> None:
    found = [knn_correct([range(5)], list(votes), ["a"], vote).item() for vote in ("majority", "plurality")]
    assert found == [majority, plurality]


def test_bad_votes_are_named() -> None:
    with pytest.raises(ShapeError, match="runs from 0 to 2; expected indices of the 2 gallery_labels"):
        knn_correct([[0, 2]], [1, 1], [1])
    with pytest.raises(ShapeError, match=r"expected indices \(n, k\)"):
        knn_correct([0, 1], [1, 1], [1])
    with pytest.raises(ShapeError, match="lengths differ: neighbours 1, probe_labels 2"):
        knn_correct([[0, 1]], [1, 1], [1, 2])
    with pytest.raises(DataError, match="probe_labels is empty"):
        knn_accuracy(np.empty((0, 5), dtype=int), [1], [])
    with pytest.raises(ValueRangeError, match="vote is 'mean'; expected 'majority' or 'plurality'"):
        knn_correct([[0]], [1], [1], "mean")  # type: ignore[arg-type]
