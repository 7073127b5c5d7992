"""KNN against a sort of every row and a count of every vote."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from hedged.errors import DataError, ShapeError, ValueRangeError
from hedged.metrics import knn_accuracy, knn_correct, nearest
from hedged.metrics.identification import ScoreRows

Matrix = NDArray[np.float64]


def rows_of(scores: ArrayLike) -> ScoreRows:
    return lambda rows: np.asarray(scores)[rows]


def slow_nearest(scores: Matrix, k: int, exclude_self: bool) -> list[list[int]]:
    def ranked(i: int) -> list[int]:
        others = [j for j in range(scores.shape[1]) if not (exclude_self and i == j)]
        return sorted(others, key=lambda j: (-scores[i, j], j))[:k]

    return [ranked(i) for i in range(len(scores))]


def slow_correct(votes: list[str], right: str, vote: str) -> bool:
    count = Counter(votes)
    if vote == "majority":
        return count[right] > len(votes) / 2
    tied = [label for label in count if count[label] == max(count.values())]
    return min(tied, key=votes.index) == right


@st.composite
def score_matrices(draw: st.DrawFn) -> Matrix:
    """Square, with many ties and some −∞: the log of a match probability that underflows."""
    n = draw(st.integers(3, 9))
    values = st.sampled_from([-np.inf, -2.0, -1.0, 0.0, 0.5])
    return np.array(draw(st.lists(st.lists(values, min_size=n, max_size=n), min_size=n, max_size=n)))


@given(scores=score_matrices(), k=st.integers(1, 2), exclude_self=st.booleans(), chunk=st.integers(1, 10))
def test_nearest_is_the_head_of_a_stable_sort(scores: Matrix, k: int, exclude_self: bool, chunk: int) -> None:
    before = scores.copy()
    found = nearest(rows_of(scores), len(scores), k, exclude_self=exclude_self, chunk=chunk)
    assert found.tolist() == slow_nearest(scores, k, exclude_self)
    assert np.array_equal(scores, before)  # the caller's scores are not written to


@given(scores=score_matrices())
def test_probabilities_and_their_logs_have_the_same_neighbours(scores: Matrix) -> None:
    logs = nearest(rows_of(scores), len(scores), 2, exclude_self=True)
    assert np.array_equal(logs, nearest(rows_of(np.exp(scores)), len(scores), 2, exclude_self=True))


def test_a_gallery_of_other_items_keeps_them_all() -> None:
    scores = np.array([[0.1, 0.9, 0.5], [0.2, 0.2, 0.3]], dtype=np.float32)
    assert nearest(rows_of(scores), 2, k=3, exclude_self=False).tolist() == [[1, 2, 0], [2, 0, 1]]


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


def test_bad_scores_are_named() -> None:
    with pytest.raises(ShapeError, match=r"has shape \(4,\); expected \(4, gallery\)"):
        nearest(lambda rows: np.zeros(4), 4, k=1, exclude_self=False)
    with pytest.raises(ShapeError, match="4 probes cannot be the same items as a gallery of 3"):
        nearest(rows_of(np.zeros((4, 3))), 4, k=1, exclude_self=True)
    with pytest.raises(ValueRangeError, match="k is 3, more than a gallery of 3 can give"):
        nearest(rows_of(np.zeros((3, 3))), 3, k=3, exclude_self=True)
    with pytest.raises(ValueRangeError, match="holds NaN"):
        nearest(rows_of(np.full((3, 3), np.nan)), 3, k=1, exclude_self=False)
    with pytest.raises(ValueRangeError, match="chunk is 0"):
        nearest(rows_of(np.zeros((3, 3))), 3, k=1, exclude_self=False, chunk=0)


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
