"""A set of photos, the batches drawn from it, and the twins it is tested with."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from data.photos.album import fill_album

from hedged import Architecture, Embedder
from hedged.data import Augmentation, ClassSampler, Photos, PhotoStream, SplitRule, open_photos
from hedged.errors import DataError, ShapeError, ValueRangeError


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Photos:
    """The photos of the training identities of an album, of 16 pixels cut from 20."""
    folder = tmp_path_factory.mktemp("album")
    parts = open_photos(fill_album(folder / "album", 12, 4), size=16, cached_size=20, cache=folder / "cache")
    return parts.train


def test_clean_photos_are_the_middle_of_the_cached_ones(photos: Photos) -> None:
    some = torch.tensor([3, 0, 7])
    np.testing.assert_array_equal(photos.clean(some).permute(0, 2, 3, 1), photos.squares(some)[:, 2:18, 2:18])
    assert photos.clean().shape == (len(photos), 3, 16, 16)


def test_a_corrupt_twin_is_the_same_whatever_else_is_asked_for(photos: Photos) -> None:
    some = torch.tensor([5, 2])
    assert torch.equal(photos.corrupt(7)[some], photos.corrupt(7, some))
    assert not torch.equal(photos.corrupt(7), photos.corrupt(8))
    assert (photos.corrupt(7) != photos.clean()).flatten(1).any(1).all()


def test_embedding_a_file_is_embedding_its_cached_photo(photos: Photos) -> None:
    embedder = Embedder.new(Architecture(channels=(2, 4), hidden=8, shape=(3, 16, 16), resize=20), seed=0)
    from_files, from_cache = embedder.embed(photos.paths), embedder.embed(photos.clean())
    torch.testing.assert_close(from_files.mean, from_cache.mean)
    torch.testing.assert_close(from_files.variance, from_cache.variance)


def stream(photos: Photos, seed: int = 0) -> PhotoStream:
    sampler = ClassSampler(photos.labels, 16, classes_per_batch=3, images_per_class=4, seed=seed, fewest=2)
    return PhotoStream(photos, sampler, Augmentation())


def test_a_batch_depends_on_the_seed_and_the_step_alone(photos: Photos) -> None:
    one, other = stream(photos).batch(3), stream(photos).batch(3)
    assert torch.equal(one.images, other.images)
    assert torch.equal(one.labels, other.labels)
    assert not torch.equal(one.images, stream(photos).batch(4).images)
    assert not torch.equal(one.images, stream(photos, seed=1).batch(3).images)


def test_a_batch_has_several_photos_of_a_few_identities_and_no_photo_twice(photos: Photos) -> None:
    batches = stream(photos)
    for step in range(10):
        batch = batches.batch(step)
        assert batch.images.shape == (16, 3, 16, 16)
        assert sum(count == 4 for count in Counter(batch.labels.tolist()).values()) >= 3
        assert len(set(batches.sampler.draw(step).places.tolist())) == 16


def test_a_pass_reaches_every_identity_that_has_two_photos() -> None:
    labels = torch.tensor([0, 0, 1, 1, 1, 2, 3, 3, 4, 4, 5])  # 2 and 5 have one
    sampler = ClassSampler(labels, 8, classes_per_batch=2, images_per_class=3, fewest=2)
    assert sampler.n_classes == 4
    assert sampler.steps_per_pass == 2
    for turn in range(5):
        seen: Counter[int] = Counter()
        for place in range(2):
            few = sampler._of_few_classes(2 * turn + place, np.random.default_rng(0))
            seen.update(labels[few].tolist())
        assert seen == {0: 2, 1: 3, 3: 2, 4: 2}


@pytest.mark.parametrize(
    ("labels", "sizes", "error", "words"),
    [
        ([0, 1, 2, 3], (4, 1, 2), DataError, "no class has 2 images"),
        ([0, 0, 1, 1], (8, 1, 2), ValueRangeError, "to the 4 images there are"),
        ([0, 0, 1, 1], (2, 2, 2), ValueRangeError, "batch_size must be from"),
        ([0, 0, 1, 2, 3, 4], (6, 2, 2), ValueRangeError, "1 classes there are with 2 images, got 2"),
        ([0, 0], (2, 0, 2), ValueRangeError, "must be at least 1"),
    ],
)
def test_what_no_batch_can_be_made_of(
    labels: list[int], sizes: tuple[int, int, int], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        ClassSampler(torch.tensor(labels), *sizes, fewest=2)


def test_photos_too_small_for_the_network_are_refused(photos: Photos) -> None:
    with pytest.raises(ShapeError, match="at least size = 30"):
        Photos(photos.pixels, photos.rows, photos.labels, photos.names, photos.paths, 30, "test")
    with pytest.raises(ShapeError, match="as many labels"):
        Photos(photos.pixels, photos.rows, photos.labels[1:], photos.names, photos.paths, 16, "test")


def test_broken_files_are_skipped_or_refused_by_name(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    album = fill_album(tmp_path / "album", 5, 2)
    (album / "03" / "empty.jpg").touch()
    parts = open_photos(album, size=16, cached_size=16, rule=SplitRule(validation_share=0.0), cache=tmp_path / "cache")
    assert len(parts.train) + len(parts.test["test"]) == 10
    assert "1 of 11 images are broken and skipped" in caplog.text
    assert "empty.jpg" in caplog.text
    with pytest.raises(DataError, match=r"(?s)1 of 11 images are broken: .*empty\.jpg"):
        open_photos(album, size=16, cached_size=16, broken="refuse", cache=tmp_path / "cache")
    for path in album.rglob("*.jpg"):
        path.write_bytes(b"")
    with pytest.raises(DataError, match="all 11 images are broken"):
        open_photos(album, size=16, cached_size=16, cache=tmp_path / "cache")
