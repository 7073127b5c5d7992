"""Any size and mode of image becomes the same square; what is broken is named, never a crash."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from data.photos.album import BROKEN, as_bytes, portrait
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image, ImageOps

from hedged import _decode as decode
from hedged._decode import image_suffixes, middle, read_middle, upright
from hedged.errors import DataError

SIDE = 24


def gradient(width: int = 60, height: int = 48) -> Image.Image:
    """Dark at the left, light at the right, redder to the bottom."""
    x, y = np.meshgrid(np.linspace(0, 200, width), np.linspace(0, 200, height))
    return Image.fromarray(np.stack([(x + y) / 2, x, x], -1).astype(np.uint8))


def looks_like(found: NDArray[np.uint8], wanted: NDArray[np.uint8], tolerance: float = 4) -> bool:
    return bool(np.abs(found.astype(float) - wanted).mean() < tolerance)


def test_the_shorter_edge_is_resized_and_the_longer_cut() -> None:
    pixels = np.zeros((30, 90, 3), np.uint8)
    pixels[:, 30:60] = 255
    assert (middle(Image.fromarray(pixels), 30) == 255).all()
    assert middle(Image.fromarray(pixels), 10).mean() > 245  # a little dark comes in over the edges


@given(st.integers(1, 200), st.integers(1, 200), st.integers(1, 40))
def test_every_size_becomes_a_square(width: int, height: int, side: int) -> None:
    assert middle(Image.new("RGB", (width, height), (9, 99, 199)), side).shape == (side, side, 3)


@pytest.mark.parametrize("suffix", ["grey.png", "palette.gif", "RGBA.PNG", "sixteen.png", "sixteen.tif", "cmyk.jpg"])
def test_every_mode_is_seen_as_it_looks(suffix: str, tmp_path: Path) -> None:
    image, path = gradient(), tmp_path / suffix
    grey = np.asarray(image.convert("L"))
    {
        "grey.png": lambda: image.convert("L").save(path),
        "palette.gif": lambda: image.convert("P", palette=Image.Palette.ADAPTIVE).save(path),
        "RGBA.PNG": lambda: image.convert("RGBA").save(path),
        "sixteen.png": lambda: Image.fromarray(grey.astype(np.uint16) * 257).save(path),
        "sixteen.tif": lambda: Image.fromarray(grey.astype(np.uint16) * 257).save(path),
        "cmyk.jpg": lambda: image.convert("CMYK").save(path, quality=95),
    }[suffix]()
    wanted = middle(image.convert("L") if suffix.startswith(("grey", "sixteen")) else image, SIDE)
    assert looks_like(read_middle(path, SIDE), wanted, tolerance=8)


def test_a_photo_that_was_taken_with_a_turned_camera_is_put_upright(tmp_path: Path) -> None:
    image, path = gradient(50, 50), tmp_path / "turned.jpg"
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90° clockwise
    image.transpose(Image.Transpose.ROTATE_90).save(path, exif=exif, quality=95)
    assert looks_like(read_middle(path, SIDE), middle(image, SIDE))


def test_what_is_transparent_is_black(tmp_path: Path) -> None:
    Image.new("RGBA", (30, 30), (255, 255, 255, 0)).save(tmp_path / "glass.png")
    assert not read_middle(tmp_path / "glass.png", SIDE).any()


def test_content_counts_not_the_suffix(tmp_path: Path) -> None:
    (tmp_path / "really.jpg").write_bytes(as_bytes(gradient(), "png"))
    assert looks_like(read_middle(tmp_path / "really.jpg", SIDE), middle(gradient(), SIDE))


def test_a_large_jpeg_is_decoded_small_and_as_sharp(tmp_path: Path) -> None:
    image = portrait(3, 0, (900, 700))
    image.save(tmp_path / "large.jpg", quality=95)
    with Image.open(tmp_path / "large.jpg") as whole:
        assert looks_like(read_middle(tmp_path / "large.jpg", SIDE), middle(whole, SIDE), tolerance=3)


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_named(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(BROKEN[name]())
    with pytest.raises(DataError, match=f"{name} cannot be read as an image"):
        read_middle(tmp_path / name, SIDE)


@pytest.mark.parametrize(("name", "words"), [("empty.jpg", "it is empty"), ("bomb.png", "decompression bomb|exceeds")])
def test_the_reason_is_told(name: str, words: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(BROKEN[name]())
    with pytest.raises(DataError, match=words):
        read_middle(tmp_path / name, SIDE)


def test_formats_whose_decoders_take_more_memory_may_have_fewer_pixels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(decode.MAX_PIXELS_OF, "WEBP", 20 * 20)
    for name in ("a.webp", "a.png"):
        Image.new("RGB", (20, 21)).save(tmp_path / name)
    assert read_middle(tmp_path / "a.png", SIDE).shape == (SIDE, SIDE, 3)
    with pytest.raises(DataError, match="20 × 21 pixels and may be a decompression bomb"):
        read_middle(tmp_path / "a.webp", SIDE)


def test_brightness_of_no_agreed_range_is_refused(tmp_path: Path) -> None:
    Image.fromarray(np.full((9, 9), 1e6, np.float32)).save(tmp_path / "float.tif")
    with pytest.raises(DataError, match="no agreed range"):
        read_middle(tmp_path / "float.tif", SIDE)


def test_suffixes_of_images() -> None:
    assert {".jpg", ".jpeg", ".png", ".webp", ".tif", ".bmp", ".gif"} <= image_suffixes()
    assert not {".eps", ".pdf", ".txt", ".csv"} & image_suffixes()


GROWTH = """
import sys
from pathlib import Path
from hedged._decode import read_middle
def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024
side, small, large = int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
read_middle(small, side)
before = peak()
read_middle(large, side)
print(peak() - before)
"""


def memory_growth(small: Path, large: Path) -> int:
    """How much memory a large image takes beyond a small one, in bytes, in a process without other threads."""
    if not Path("/proc/self/status").exists():
        pytest.skip("the kernel does not tell the peak of a process")
    program = [sys.executable, "-c", GROWTH, str(SIDE), str(small), str(large)]
    return int(subprocess.run(program, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("mode", ["P", "RGBA", "I;16"])
def test_a_large_image_takes_two_copies_of_its_pixels_at_most(mode: str, tmp_path: Path) -> None:
    side, path = 5000, tmp_path / "a.png"
    image = Image.new(mode, (side, side))
    if mode == "P":
        image.info["transparency"] = 0
    image.save(path)
    assert path.stat().st_size < 500_000
    Image.new(mode, (9, 9)).save(tmp_path / "small.png")
    assert memory_growth(tmp_path / "small.png", path) < 11 * side**2


@pytest.mark.parametrize("name", ["a.webp", "a.tiff", "a.jp2", "a.avif"])
def test_the_largest_image_of_each_format_takes_less_than_a_gigabyte_and_a_half(name: str, tmp_path: Path) -> None:
    side, small, large = 1500, tmp_path / f"small-{name}", tmp_path / name
    try:
        for path, width in (small, 9), (large, side):
            image = Image.new("RGBA", (width, width), (200, 100, 50, 255))
            image.save(path, compression="tiff_lzw", speed=10, method=0)
    except (KeyError, OSError, ValueError):
        pytest.skip("this Pillow cannot write it")
    with Image.open(large) as image:
        most = decode.MAX_PIXELS_OF[image.format or ""]
    assert memory_growth(small, large) / side**2 * most < 1.25e9  # and the program itself


def test_pixels_in_flight_are_limited_over_all_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [(40, 30), (100, 100), (30, 30), (300, 200), (50, 60)] * 6
    for i, size in enumerate(sizes):
        Image.new("RGB", size).save(tmp_path / f"{i}.png")
    monkeypatch.setattr(decode, "_in_flight", decode.Budget(20_000))
    now: Counter[int] = Counter()
    most, real = [0], decode.middle

    def watched(image: Image.Image, side: int) -> NDArray[np.uint8]:
        now[threading.get_ident()] = image.width * image.height
        most[0] = max(most[0], now.total() if now.total() != 60_000 else 0)  # one that is too large for all is alone
        time.sleep(0.002)
        pixels = real(image, side)
        now[threading.get_ident()] = 0
        return pixels

    monkeypatch.setattr(decode, "middle", watched)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: read_middle(tmp_path / f"{i}.png", SIDE), range(len(sizes))))
    assert 10_000 < most[0] <= 20_000


def test_a_bug_in_the_library_is_no_broken_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gradient().save(tmp_path / "a.png")

    def bug(image: Image.Image, mode: str) -> Image.Image:
        raise TypeError("a bug")

    monkeypatch.setattr(decode, "upright", bug)
    with pytest.raises(TypeError, match="a bug"):
        read_middle(tmp_path / "a.png", SIDE)


def test_strips_are_as_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    for image in (gradient().convert("P"), gradient().convert("RGBA"), gradient().convert("CMYK")):
        image.info["transparency"] = 3 if image.mode == "P" else None
        whole = np.asarray(upright(image, "RGB"))
        with monkeypatch.context() as patch:
            patch.setattr(decode, "STRIP_PIXELS", 500)
            assert (np.asarray(upright(image, "RGB")) == whole).all()


@pytest.mark.parametrize("turn", range(1, 9))
def test_every_way_to_hold_a_camera(turn: int) -> None:
    image = gradient()
    image.getexif()[0x0112] = turn
    assert (np.asarray(upright(image, "RGB")) == np.asarray(ImageOps.exif_transpose(image))).all()
