"""Varied photos: each way against a slow and obvious one, in range, by the generator alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hedged.data import Augmentation
from hedged.data.photos.augmentation import LUMINANCE, blur, crop, recolour
from hedged.data.photos.corruption import corrupted, draw_damage
from hedged.errors import ValueRangeError

NONE = Augmentation(flip=0, colour=0, blur=0, erase=0, low_resolution=0)


def squares(count: int = 6, side: int = 40) -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (count, side, side, 3), dtype=np.uint8)


def test_a_crop_is_a_part_of_the_photo_or_of_its_mirror_image() -> None:
    photos = squares(40, 12)
    mirrored = 0
    for photo, part in zip(photos, crop(photos, 8, 0.5, np.random.default_rng(0)), strict=True):
        windows = [photo[y : y + 8, x : x + 8] for y in range(5) for x in range(5)]
        plain = sum(np.array_equal(part, window) for window in windows)
        turned = sum(np.array_equal(part, window[:, ::-1]) for window in windows)
        assert plain + turned == 1
        mirrored += turned
    assert 10 < mirrored < 30


def test_crops_reach_every_corner() -> None:
    place = np.zeros((400, 12, 12, 3), np.uint8)
    place[:, :, :, 0], place[:, :, :, 1] = np.arange(12)[:, None], np.arange(12)[None, :]
    corners = {tuple(part[0, 0, :2]) for part in crop(place, 8, 0.0, np.random.default_rng(0))}
    assert corners == {(y, x) for y in range(5) for x in range(5)}


def test_without_any_strength_a_photo_stays_as_it_is() -> None:
    photos = squares()
    plain = NONE.apply(photos, 40, np.random.default_rng(0))
    np.testing.assert_allclose(plain.permute(0, 2, 3, 1), photos / 255, atol=1e-6)


def test_colours_against_one_step_after_the_other() -> None:
    photos, strength = squares(5, 9), 0.4
    found = recolour(torch.from_numpy(photos).permute(0, 3, 1, 2), strength, np.random.default_rng(3))
    generator = np.random.default_rng(3)
    factors = generator.uniform(1 - strength, 1 + strength, (3, 5))
    channels = generator.uniform(1 - strength / 3, 1 + strength / 3, (5, 3))
    weights = LUMINANCE.double().numpy()
    for i, photo in enumerate(photos / 255):
        bright, contrast, saturation = factors[:, i]
        grey = (photo @ weights)[..., None]
        x = saturation * photo + (1 - saturation) * grey
        x = contrast * x + (1 - contrast) * grey.mean()
        wanted = np.clip(x * bright * channels[i], 0, 1)
        np.testing.assert_allclose(found[i].permute(1, 2, 0), wanted, atol=1e-5)


def test_a_blur_is_a_gaussian_mean_of_the_neighbours() -> None:
    dot = torch.zeros(2, 3, 31, 31)
    dot[:, :, 15, 15] = 1
    spread = np.array([0.8, 1.5])
    for photo, sigma in zip(blur(dot, spread), spread, strict=True):
        away = np.arange(31) - 15
        weights = np.where(abs(away) <= 5, np.exp(-(away**2) / (2 * sigma**2)), 0)
        weights /= weights.sum()
        for channel in photo:
            np.testing.assert_allclose(channel, np.outer(weights, weights), atol=1e-6)
    even = torch.full((1, 3, 20, 20), 0.3)
    torch.testing.assert_close(blur(even, np.array([2.0])), even)


def test_erasing_leaves_one_colour_in_a_rectangle_and_the_rest_alone() -> None:
    photos = squares(30)
    erased = Augmentation(flip=0, colour=0, blur=0, erase=1, low_resolution=0).apply(
        photos, 40, np.random.default_rng(0)
    )
    plain = NONE.apply(photos, 40, np.random.default_rng(0))
    for before, after in zip(plain, erased, strict=True):
        changed = (before != after).any(0)
        rows, columns = (np.flatnonzero(changed.any(axis)) for axis in (1, 0))
        box = after[:, rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        assert box.flatten(1).std(1).max() < 1e-6
        assert 0.1 * 40 <= len(rows) <= 0.65 * 40


def test_low_resolution_loses_detail_and_keeps_brightness() -> None:
    photos = squares(20)
    reduced = Augmentation(flip=0, colour=0, blur=0, erase=0, low_resolution=1).apply(
        photos, 40, np.random.default_rng(0)
    )
    plain = NONE.apply(photos, 40, np.random.default_rng(0))
    assert (reduced.std((2, 3)) < 0.7 * plain.std((2, 3))).all()
    torch.testing.assert_close(reduced.mean((2, 3)), plain.mean((2, 3)), atol=0.03, rtol=0)


@given(st.integers(0, 2**32), st.integers(1, 8))
def test_all_together_stay_in_range_and_follow_the_generator(seed: int, count: int) -> None:
    photos = squares(count, 20)
    whole = Augmentation(flip=0.5, colour=0.9, blur=0.5, erase=0.5, low_resolution=0.5)
    one, other = (whole.apply(photos, 16, np.random.default_rng(seed)) for _ in range(2))
    assert torch.equal(one, other)
    assert one.shape == (count, 3, 16, 16)
    assert 0 <= one.min() <= one.max() <= 1
    assert one.is_contiguous(memory_format=torch.channels_last)


def test_what_is_no_chance_is_refused() -> None:
    with pytest.raises(ValueRangeError, match="blur must be in"):
        Augmentation(blur=1.5)


def test_every_corrupt_photo_is_either_hidden_in_part_or_of_low_resolution() -> None:
    photos = torch.from_numpy(squares(60)).permute(0, 3, 1, 2)
    damage = draw_damage(60, 40, np.random.default_rng(0))
    for photo, spoilt, (top, left, bottom, right, small) in zip(photos, corrupted(photos, damage), damage, strict=True):
        if small:
            assert 5 <= small <= 10
            assert spoilt.float().std() < 0.6 * photo.float().std()
        else:
            kept = photo.clone()
            kept[:, top:bottom, left:right] = 128
            assert torch.equal(spoilt, kept)
            assert 16 <= bottom - top <= 32
    assert 15 < (damage[:, 4] > 0).sum() < 45
