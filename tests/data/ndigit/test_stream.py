"""Two-stream batches: what they promise, counted."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hedged.data import Digits, NDigit, TwoStream, build_ndigit
from hedged.errors import ValueRangeError


@pytest.fixture(scope="module")
def data(train_digits: Digits) -> NDigit:
    """37 classes, of 10 to 46 images."""
    generator = np.random.default_rng(0)
    parts = [build_ndigit(train_digits, 2, [c], 10 + c, generator) for c in range(37)]
    return NDigit(train_digits, torch.cat([part.image_ids for part in parts]))


@pytest.fixture(scope="module")
def numbered() -> NDigit:
    """200 one-digit images whose pixels are their position: a batch tells which images it holds."""
    pixels = torch.arange(200, dtype=torch.uint8).view(-1, 1, 1).expand(-1, 28, 28).contiguous()
    return NDigit(Digits(pixels, torch.arange(200) % 10, "numbered"), torch.arange(200).view(-1, 1))


def test_a_batch_is_ready_for_a_network(data: NDigit) -> None:
    batch = TwoStream(data).batch(0)
    assert batch.images.shape == (128, 1, 28, 56)
    assert batch.images.dtype == torch.float32
    assert batch.images.is_contiguous()
    assert (float(batch.images.min()), float(batch.images.max())) == (0.0, 1.0)
    assert batch.labels.shape == (128,)
    assert batch.labels.dtype == torch.int64


@given(step=st.integers(0, 10**6), seed=st.integers(0, 2**63 - 1))
def test_no_image_is_twice_and_each_has_its_label(numbered: NDigit, step: int, seed: int) -> None:
    stream = TwoStream(numbered, 90, classes_per_batch=3, images_per_class=20, occlusion=0.0, seed=seed)
    batch = stream.batch(step)
    positions = (batch.images[:, 0, 0, 0] * 255).round().long()
    assert len(set(positions.tolist())) == 90
    assert batch.labels.equal(positions % 10)
    assert sum(n == 20 for n in Counter(batch.labels.tolist()).values()) >= 3


@pytest.mark.parametrize("classes_per_batch", [1, 5, 8, 37])
def test_each_pass_reaches_every_class(data: NDigit, classes_per_batch: int) -> None:
    stream = TwoStream(data, classes_per_batch * 3, classes_per_batch, images_per_class=3, occlusion=0.0)
    for turn in range(3):
        reached: Counter[int] = Counter()
        for place in range(stream.steps_per_pass):
            labels = stream.batch(turn * stream.steps_per_pass + place).labels
            counts = Counter(labels.tolist())
            assert set(counts.values()) == {3}
            assert len(counts) == classes_per_batch
            reached.update(counts.keys())
        assert set(reached) == set(range(37))
        assert reached.total() == stream.steps_per_pass * classes_per_batch


def test_batches_promise_positive_pairs(data: NDigit) -> None:
    stream = TwoStream(data)
    for step in range(50):
        counts = Counter(stream.batch(step).labels.tolist())
        assert sum(n >= 8 for n in counts.values()) >= 8
        assert sum(n * (n - 1) // 2 for n in counts.values()) >= 8 * 28


def test_the_first_stream_is_uniform(numbered: NDigit) -> None:
    stream = TwoStream(numbered, 50, classes_per_batch=1, images_per_class=1, occlusion=0.0)
    seen: Counter[int] = Counter()
    for step in range(400):
        seen.update((stream.batch(step).images[:, 0, 0, 0] * 255).round().long().tolist())
    assert len(seen) == 200
    assert all(abs(n - 100) < 45 for n in seen.values())


def test_a_batch_depends_on_seed_and_step_alone(data: NDigit) -> None:
    stream = TwoStream(data, seed=5)
    later = stream.batch(1_000)
    for step in range(5):
        stream.batch(step)
    again, fresh = stream.batch(1_000), TwoStream(data, seed=5).batch(1_000)
    for batch in (again, fresh):
        assert batch.images.equal(later.images)
        assert batch.labels.equal(later.labels)
    for batch in (stream.batch(1_001), TwoStream(data, seed=6).batch(1_000)):
        assert not batch.labels.equal(later.labels)


def test_global_seeds_are_neither_read_nor_changed(data: NDigit) -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    first = TwoStream(data).batch(0)
    assert torch.get_rng_state().equal(before)
    torch.manual_seed(1)
    assert TwoStream(data).batch(0).images.equal(first.images)


@pytest.mark.parametrize("chance", [0.0, 0.2, 1.0])
def test_digits_are_occluded_with_the_given_chance(chance: float) -> None:
    white = Digits(torch.full((500, 28, 28), 255, dtype=torch.uint8), torch.arange(500) % 10, "white")
    images = build_ndigit(white, 2, range(100), 20, np.random.default_rng(0))
    stream = TwoStream(images, occlusion=chance)
    left = torch.cat([(stream.batch(step).images[..., :28] == 0).flatten(1).any(1) for step in range(40)])
    assert abs(float(left.float().mean()) - chance * (28 / 29) ** 2) < 0.03


@pytest.mark.parametrize(
    ("batch_size", "classes", "per_class", "message"),
    [
        (63, 8, 8, "batch_size must be from .* = 64"),
        (2_000, 8, 8, "to the 1,036 images there are, got 2000"),
        (128, 38, 2, "at most the 37 classes"),
        (128, 8, 11, "at most 10, the images of the smallest class"),
        (128, 0, 8, "at least 1"),
        (128, 8, 0, "at least 1"),
    ],
)
def test_impossible_batches_are_refused(
    data: NDigit, batch_size: int, classes: int, per_class: int, message: str
) -> None:
    with pytest.raises(ValueRangeError, match=message):
        TwoStream(data, batch_size, classes, per_class)


def test_impossible_chances_and_steps_are_refused(data: NDigit) -> None:
    with pytest.raises(ValueRangeError, match="chance"):
        TwoStream(data, occlusion=1.5)
    with pytest.raises(ValueRangeError, match="step"):
        TwoStream(data).batch(-1)
