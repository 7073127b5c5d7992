"""Sets of vectors: parts without a common identity, corrupt twins, and what an embedder takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from vectors import EACH, IDENTITIES, SIZE, made_up

from hedged.data import BatchPlan, Features, FeaturesConfig, SplitRule, open_features
from hedged.data.inputs import vector_batches
from hedged.errors import ConfigError, DataError, ShapeError, ValueRangeError


def save(path: Path, **arrays: object) -> Path:
    vectors, labels = made_up()
    np.savez(path, **({"features": vectors, "labels": labels} | arrays))  # type: ignore[arg-type]
    return path


def whose(features: Features) -> set[str]:
    return {features.name(label) for label in features.labels.tolist()}


@settings(max_examples=10, deadline=None)
@given(share=st.floats(0.05, 0.8), validation=st.floats(0, 0.3), seed=st.integers(0, 99))
def test_parts_share_no_identity_and_lose_none(
    tmp_path_factory: pytest.TempPathFactory, share: float, validation: float, seed: int
) -> None:
    path = save(tmp_path_factory.mktemp("split") / "a.npz")
    parts = open_features(path, rule=SplitRule(test_share=share, validation_share=validation, seed=seed))
    found = [parts.train, *([parts.validation] if parts.validation else []), parts.test["test"]]
    names = [whose(part) for part in found]
    assert len(set.union(*names)) == sum(map(len, names)) == IDENTITIES
    assert sum(map(len, found)) == IDENTITIES * EACH
    vectors, labels = made_up()
    for part in found:
        for vector, label in zip(part.clean(), part.labels.tolist(), strict=True):
            (row,) = np.flatnonzero((vectors == vector.numpy()).all(1))
            assert labels[row] == part.name(label)


def test_parts_by_pattern_and_by_column(tmp_path: Path) -> None:
    path = save(tmp_path / "a.npz")
    parts = open_features(path, rule=SplitRule("pattern", test_pattern="[05]$", validation_share=0))
    assert whose(parts.test["test"]) == {f"id{i:02}" for i in range(0, IDENTITIES, 5)}
    assert parts.validation is None
    column = np.repeat(["train", "val", "test"], IDENTITIES * EACH // 3)
    parts = open_features(save(tmp_path / "b.npz", split=column), rule=SplitRule("column"))
    assert parts.validation is not None
    assert len(parts.train) == len(parts.validation) == len(parts.test["test"])
    column[0] = "test"
    with pytest.raises(DataError, match=r"id00 has .* in test and in train"):
        open_features(save(tmp_path / "c.npz", split=column), rule=SplitRule("column"))


def test_corrupt_vectors_are_those_of_the_second_file(tmp_path: Path) -> None:
    worse, labels = made_up(spread=2.0, seed=5)
    path, second = save(tmp_path / "a.npz"), save(tmp_path / "b.npz", features=worse)
    test = open_features(path, corrupt=second).test["test"]
    rows = [i for i, label in enumerate(labels) if label in whose(test)]
    np.testing.assert_array_equal(test.corrupt(seed=0).numpy(), worse[rows])
    np.testing.assert_array_equal(test.corrupt(3, torch.tensor([2, 0])).numpy(), worse[rows][[2, 0]])


def test_without_a_second_file_half_of_the_features_are_hidden(tmp_path: Path) -> None:
    parts = open_features(save(tmp_path / "a.npz"))
    test = parts.test["test"]
    corrupt = test.corrupt(seed=4)
    middle = parts.train.vectors.mean(0).expand_as(corrupt)
    hidden = corrupt == middle
    assert torch.equal(corrupt[~hidden], test.clean()[~hidden])
    assert 0.4 < hidden.float().mean() < 0.6
    index = torch.tensor([5, 1])
    assert torch.equal(test.corrupt(4, index), corrupt[index])
    assert not torch.equal(test.corrupt(5), corrupt)


def test_files_that_do_not_belong_together(tmp_path: Path) -> None:
    path, (vectors, labels) = save(tmp_path / "a.npz"), made_up()
    short = save(tmp_path / "short.npz", features=vectors[1:], labels=labels[1:])
    with pytest.raises(DataError, match=r"short.npz has 239 rows of 12.*row by row"):
        open_features(path, corrupt=short)
    turned = save(tmp_path / "turned.npz", labels=labels[::-1])
    with pytest.raises(DataError, match=r"other labels .*same order"):
        open_features(path, corrupt=turned)
    np.save(tmp_path / "bare.npy", vectors)
    with pytest.raises(DataError, match=r"whose each vector is.*data\.labels"):
        open_features(tmp_path / "bare.npy")
    with pytest.raises(DataError, match="leaves none of the 240 inputs to train on"):
        open_features(path, rule=SplitRule("pattern", test_pattern="."))


def test_nobody_is_tested_where_that_was_asked_for(tmp_path: Path) -> None:
    parts = open_features(save(tmp_path / "a.npz"), rule=SplitRule(test_share=0, validation_share=0))
    assert len(whose(parts.train)) == IDENTITIES
    assert (parts.validation, parts.test) == (None, {})
    with pytest.raises(DataError, match="kept no identities to test"):
        _ = parts.first_test


def test_vectors_of_a_file_are_fitted_not_trained() -> None:
    section = FeaturesConfig(source="features", path="a.npz", size=SIZE)
    with pytest.raises(ConfigError, match=r"`hedged retrofit a\.npz --out RUN`"):
        section.batches(None, BatchPlan(8, 2, 2, 0))  # type: ignore[arg-type]


def test_vectors_come_in_batches_whatever_they_are_in(tmp_path: Path) -> None:
    vectors = made_up()[0]
    np.save(tmp_path / "a.npy", vectors)
    ways = [vectors, torch.from_numpy(vectors), vectors.astype(np.float64), tmp_path / "a.npy", str(tmp_path / "a.npy")]
    for way in [*ways, list(vectors), [tmp_path / "a.npy"]]:
        np.testing.assert_array_equal(torch.cat(list(vector_batches(way, SIZE, 100))).numpy(), vectors)
    assert [tuple(b.shape) for b in vector_batches(vectors[0].tolist(), SIZE, 4)] == [(1, SIZE)]
    with pytest.raises(ShapeError, match=r"\(240, 12\), this model takes vectors \(n, 5\)"):
        list(vector_batches(vectors, 5, 4))
    with pytest.raises(ValueRangeError, match="not finite"):
        list(vector_batches(vectors * np.inf, SIZE, 4))
    with pytest.raises(DataError, match=r"takes vectors, .*got photo\.jpg"):
        list(vector_batches(["photo.jpg"], SIZE, 4))
    with pytest.raises(ValueRangeError, match="batch_size=0"):
        list(vector_batches(vectors, SIZE, 0))
