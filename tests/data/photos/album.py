"""Small albums of photos that a test can know by heart, and files that are broken in every way."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image


def portrait(identity: int, number: int, size: tuple[int, int] = (44, 40)) -> Image.Image:
    """A photo whose colours tell who it shows, with some noise of its own."""
    face = np.random.default_rng(identity).integers(0, 256, (4, 4, 3), dtype=np.uint8)
    large = np.asarray(Image.fromarray(face).resize(size, Image.Resampling.BICUBIC)).astype(np.int64)
    noise = np.random.default_rng([identity, number]).integers(-20, 21, large.shape)
    return Image.fromarray(np.clip(large + noise, 0, 255).astype(np.uint8))


def fill_album(folder: Path, identities: int, each: int, size: tuple[int, int] = (44, 40)) -> Path:
    """A folder for each identity, named 00, 01, …, with so many JPEGs."""
    for identity in range(identities):
        place = folder / f"{identity:02d}"
        place.mkdir(parents=True)
        for number in range(each):
            portrait(identity, number, size).save(place / f"{number}.jpg")
    return folder


def as_bytes(image: Image.Image, kind: str) -> bytes:
    buffer = BytesIO()
    image.save(buffer, kind)
    return buffer.getvalue()


def bomb() -> bytes:
    """A PNG of a few hundred bytes that claims 60,000 × 60,000 pixels."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    head = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")
    )


def truncated_jpeg() -> bytes:
    content = as_bytes(portrait(0, 0, (200, 200)), "jpeg")
    return content[: len(content) // 2]


def truncated_png() -> bytes:
    content = as_bytes(portrait(0, 0, (200, 200)), "png")
    return content[: len(content) // 2]


def damaged_png() -> bytes:
    """A PNG with some bytes in the middle turned over."""
    content = bytearray(as_bytes(portrait(0, 0, (200, 200)), "png"))
    for i in range(len(content) // 2, len(content) // 2 + 200):
        content[i] ^= 0xFF
    return bytes(content)


def program() -> bytes:
    """PostScript, which Pillow would hand to an interpreter."""
    return b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\n0 0 10 10 rectfill\nshowpage\n"


BROKEN: dict[str, Callable[[], bytes]] = {
    "empty.jpg": lambda: b"",
    "text.jpg": lambda: b"this is no image at all, whatever its name says\n" * 20,
    "half.jpg": truncated_jpeg,
    "half.png": truncated_png,
    "damaged.png": damaged_png,
    "bomb.png": bomb,
    "head-only.jpg": lambda: truncated_jpeg()[:20],
    "noise.webp": lambda: np.random.default_rng(0).bytes(3000),
    "archive.png": lambda: b"PK\x03\x04" + bytes(500),
    "program.jpg": program,
}
