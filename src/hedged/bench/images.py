"""Photos: decoded into the cache against Pillow alone, and embedded from it against the bare network."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from hedged._parallel import cores
from hedged.bench.timing import Line, side_by_side
from hedged.data import Photos
from hedged.data.photos.cache import decode_all
from hedged.models import Architecture, Embedder, channels_last, embed_all

SIZES = ((640, 480), (128, 128))  # of the photos: as from a phone, made smaller; and cut out already
SIDE, SEEN = 112, 96  # pixels a side that are cached, and that the network sees
PHOTOS, QUICK = 480, 120  # of the large ones fewer if it is to be quick
ROUNDS = 11


def lines(quick: bool) -> Iterator[Line]:
    """Rates of decoding and of embedding, as ratios.

    Args:
        quick: Whether to leave out whatever takes minutes.
    """
    with tempfile.TemporaryDirectory() as name:
        for size, count in zip(SIZES, (QUICK if quick else PHOTOS, PHOTOS), strict=True):
            paths = write_photos(Path(name) / f"{size[0]}", count, size)
            ways = _caching(paths, Path(name) / "cache"), partial(by_pillow, paths)
            ours, pillow = side_by_side(*ways, repeats=ROUNDS)
            what = f"decoding and caching photos of {size[0]}×{size[1]}: rate / that of Pillow alone"
            yield Line(what, pillow / ours, 0.8)
        photos = cached_photos(paths, Path(name) / "cache")
        network = Embedder.new(Architecture(backbone="mobilenet", dim=20, shape=(3, SEEN, SEEN)), seed=0).eval()
        network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        ours, bare = side_by_side(
            lambda: embed_all(network, photos.clean, len(photos)), _bare(network, photos), repeats=ROUNDS
        )
        yield Line("embedding cached photos, MobileNet 0.25: rate / that of the bare network", bare / ours, 0.9)


def write_photos(folder: Path, count: int, size: tuple[int, int]) -> list[Path]:
    """Made-up photos: shapes of a few sizes and a little grain, so that they weigh as JPEG what real ones do.

    Args:
        folder: A new folder.
        count: How many.
        size: Width and height, in pixels.
    """
    random = np.random.default_rng(0)
    folder.mkdir(parents=True)
    paths = []
    for i in range(count):
        picture = np.zeros((size[1], size[0], 3), np.float32)
        for cells, strength in ((4, 60), (16, 40), (64, 20)):
            coarse = Image.fromarray(random.integers(0, 256, (cells, cells, 3), dtype=np.uint8))
            picture += strength / 128 * (np.asarray(coarse.resize(size, Image.Resampling.BICUBIC), np.float32) - 128)
        picture += random.normal(128, 4, picture.shape)
        paths.append(folder / f"{i}.jpg")
        Image.fromarray(picture.clip(0, 255).astype(np.uint8)).save(paths[-1], quality=90)
    return paths


def by_pillow(paths: Sequence[Path]) -> None:
    """What one would write oneself: open, convert and resize, on all cores, and keep nothing.

    Args:
        paths: Of the photos.
    """

    def one(path: Path) -> None:
        with Image.open(path) as image:
            image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)

    with ThreadPoolExecutor(cores()) as pool:
        list(pool.map(one, paths))


def _caching(paths: Sequence[Path], cache: Path) -> Callable[[], object]:
    """Decode into a new cache each time."""
    turns = iter(range(10**6))
    return lambda: decode_all(paths, SIDE, cache / str(next(turns)))


def cached_photos(paths: Sequence[Path], cache: Path) -> Photos:
    """The same photos as a set, of which nothing but the pixels matters.

    Args:
        paths: Of the photos.
        cache: The folder of the cache.
    """
    decoded = decode_all(paths, SIDE, cache / "set")
    labels = torch.zeros(len(paths), dtype=torch.int64)
    return Photos(decoded.pixels, np.arange(len(paths)), labels, [""], paths, SEEN, "made-up photos")


def _bare(network: Embedder, photos: Photos) -> Callable[[], None]:
    """The network alone, on pixels that are ready in memory."""
    batches = [channels_last(part.float() / 255) for part in torch.split(photos.clean(), network.batch_size)]

    @torch.no_grad()
    def run() -> None:
        for batch in batches:
            network(batch)

    return run
