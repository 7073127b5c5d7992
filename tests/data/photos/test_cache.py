"""Photos are decoded once; the cache follows the files, and is whole or not there."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from data.photos.album import BROKEN, fill_album

from hedged._decode import Pixels, read_middle
from hedged.data.photos import cache as photo_cache
from hedged.data.photos.cache import Decoded, decode_all
from hedged.data.photos.listing import image_files
from hedged.errors import DataError


def squares(decoded: Decoded) -> Pixels:
    return decoded.pixels[np.arange(len(decoded.pixels))]


def test_every_photo_is_in_its_place(tmp_path: Path) -> None:
    paths = image_files(fill_album(tmp_path / "album", 7, 5))
    decoded = decode_all(paths, 20, tmp_path / "cache")
    assert not decoded.broken
    for path, pixels in zip(paths, squares(decoded), strict=True):
        np.testing.assert_array_equal(pixels, read_middle(path, 20))


def test_it_is_done_once_and_again_when_a_file_or_the_size_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths, count = image_files(fill_album(tmp_path / "album", 2, 3)), 0

    def counting(path: Path, side: int, content: bytes) -> object:
        nonlocal count
        count += 1
        return read_middle(path, side, content)

    monkeypatch.setattr(photo_cache, "read_middle", counting)
    for wanted, side in ((6, 20), (6, 20), (12, 24)):
        decode_all(paths, side, tmp_path / "cache")
        assert count == wanted
    os.utime(paths[0], (1, 1))
    decode_all(paths, 20, tmp_path / "cache")
    assert count == 12  # what counts is the content
    paths[0].write_bytes(paths[0].read_bytes()[::-1])
    os.utime(paths[0], (1, 1))
    decode_all(paths, 20, tmp_path / "cache")
    assert count == 18


def test_broken_files_are_remembered_by_the_cache(tmp_path: Path) -> None:
    album = fill_album(tmp_path / "album", 2, 2)
    for name, content in BROKEN.items():
        (album / "00" / name).write_bytes(content())
    paths = [*image_files(album), album / "missing.jpg"]
    first, again = (decode_all(paths, 20, tmp_path / "cache") for _ in range(2))
    assert first.broken == again.broken
    assert {paths[i].name for i in first.broken} == {*BROKEN, "missing.jpg"}
    assert all(str(paths[i]) in why for i, why in first.broken.items())


def test_interrupted_it_leaves_nothing_that_looks_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = image_files(fill_album(tmp_path / "album", 2, 3))

    def stop(path: Path, side: int, content: bytes) -> object:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(photo_cache, "read_middle", stop)
        with pytest.raises(KeyboardInterrupt):
            decode_all(paths, 20, tmp_path / "cache")
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert squares(decode_all(paths, 20, tmp_path / "cache")).any()


@pytest.mark.parametrize("content", [b"", b"no array", None])
def test_a_damaged_cache_says_what_to_delete(content: bytes | None, tmp_path: Path) -> None:
    paths = image_files(fill_album(tmp_path / "album", 2, 2))
    decode_all(paths, 20, tmp_path / "cache")
    (file,) = (tmp_path / "cache").rglob("pixels.npy")
    file.write_bytes(file.read_bytes()[:-50] if content is None else content)
    with pytest.raises(DataError, match="delete that folder"):
        decode_all(paths, 20, tmp_path / "cache")


@pytest.mark.parametrize("name", ["pixels.npy", "files.json"])
def test_a_flipped_bit_is_seen_or_changes_nothing(tmp_path: Path, name: str) -> None:
    album = fill_album(tmp_path / "album", 2, 2)
    (album / "00" / "bad.jpg").write_bytes(b"no photo")
    paths = image_files(album)
    first = decode_all(paths, 6, tmp_path / "cache")
    expected, broken, seen = squares(first), first.broken, 0
    (file,) = (tmp_path / "cache").rglob(name)
    whole = file.read_bytes()
    for bit in np.random.default_rng(0).integers(0, 8 * len(whole), 200).tolist():
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        file.write_bytes(damaged)
        try:
            decoded = decode_all(paths, 6, tmp_path / "cache")
            np.testing.assert_array_equal(squares(decoded), expected)
        except DataError:
            seen += 1
        else:
            assert decoded.broken == broken
    assert seen > 100


def test_a_bug_is_not_taken_for_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> object:
        raise TypeError("a bug")

    monkeypatch.setattr(photo_cache, "read_middle", broken)
    with pytest.raises(TypeError, match="a bug"):
        decode_all(image_files(fill_album(tmp_path / "album", 1, 1)), 20, tmp_path / "cache")


def test_a_cache_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match="HEDGED_CACHE"):
        decode_all(image_files(fill_album(tmp_path / "album", 1, 1)), 20, tmp_path / "file")
