"""Measure the retrofit: a hedged head on features of a network that was trained before, and a point head on the same.

    python tools/measure_retrofit.py DIR MODEL... [--part validation] [--set KEY=VALUE] [--keep FOLDER] [--out FILE]

DIR is the folder of dogfacenet-112, MODEL a run of `hedged train` on it with a MobileNet; with several, each seed takes
the next. Features are those that the network had before its own head, of every photo as it is and reduced to 28 pixels.
Heads are trained with the config `features` on the dogs that the network was trained on, which are never tested;
settings were chosen with --part validation (docs/recipe.md tells what else was measured on test dogs). In FOLDER the
features are kept, and found again.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from hedged._files import write_json
from hedged.data import Dataset, Photos, Splits
from hedged.data.photos.corruption import reduced_to
from hedged.distributions import Point
from hedged.evaluation import CONDITIONS, Evaluation
from hedged.metrics import all_pairs, average_precision
from hedged.models import Embedder, channels_last
from hedged.training import Run, build_data, load_config, shipped_config, train

SIDE = 28  # pixels a side that photos are reduced to
SEEDS = (0, 1, 2)
BATCH = 128
HEADS: dict[str, tuple[str, ...]] = {"mog-1": (), "point": ("model.head=point", "loss.kind=soft-contrastive")}
NAMES = {"clean": "as they are", "corrupt": f"reduced to {SIDE} pixels"}


class Made(NamedTuple):
    """Files with the features of all photos, as they are and reduced, and how many of which length there are."""

    whole: Path
    small: Path
    rows: int
    size: int


@torch.no_grad()
def features(network: Embedder, photos: Photos, side: int | None) -> np.ndarray[Any, np.dtype[np.float32]]:
    """What the network has before its head, (n, F)."""
    found = []
    for index in torch.split(torch.arange(len(photos)), BATCH):
        pixels = photos.clean(index)
        pixels = pixels if side is None else reduced_to(pixels, side)
        found.append(network.backbone(channels_last(pixels.float() / 255)))
    vectors: np.ndarray[Any, np.dtype[np.float32]] = torch.cat(found).numpy()
    return vectors


def make(model: Path, data: Path, folder: Path) -> Made:
    """Write the features of a network, with the parts that it was trained with, if they are not there."""
    whole, small = folder / "whole.npz", folder / "small.npz"
    if whole.exists() and small.exists():
        with np.load(whole) as content:
            return Made(whole, small, *content["features"].shape)
    network, parts = Embedder.load(model), build_data(load_config(Run(model).config_file, [f"data.path={data}"]))
    sets = [(name, part) for name, part in _parts(parts).items() if isinstance(part, Photos)]
    labels = [part.name(label) for _, part in sets for label in part.labels.tolist()]
    split = [name for name, part in sets for _ in range(len(part))]
    for path, side in ((whole, None), (small, SIDE)):
        vectors = np.concatenate([features(network, part, side) for _, part in sets])
        np.savez(path, features=vectors, labels=labels, split=split)
    return Made(whole, small, *vectors.shape)


def _parts(parts: Splits[Dataset]) -> dict[str, Dataset | None]:
    return {"train": parts.train, "validation": parts.validation, "test": parts.test["test"]}


def measure(made: Made, head: str, seed: int, part: str, overrides: Sequence[str], folder: Path) -> dict[str, Any]:
    """Train one head and verify all pairs of a part."""
    files = (f"data.path={made.whole}", f"data.corrupt_path={made.small}", f"data.size={made.size}")
    chosen = ("data.split=column", f"train.seed={seed}", *HEADS[head], *overrides)
    config = load_config(shipped_config("features"), [*files, *chosen])
    data = build_data(config)
    begun = time.process_time()  # of all threads: no less than the time on a machine that does nothing else
    embedder = train(config, data.train, folder / f"{head}-{seed}")
    seconds = time.process_time() - begun
    test = _parts(data)[part]
    assert test is not None
    evaluation = Evaluation(embedder, test)
    pairs = all_pairs(evaluation.labels)
    found = {NAMES[c]: average_precision(evaluation.scores(pairs, c), pairs.matches) for c in CONDITIONS}
    eta = {NAMES[c]: float(evaluation.uncertainty[c].mean()) for c in CONDITIONS}
    return {"model": head, "seed": seed, "training_vectors": len(data.train), "cpu_seconds": seconds, "ap": found} | (
        {} if isinstance(evaluation.embeddings["clean"], Point) else {"uncertainty": eta}
    )


def raw(made: Made, part: str) -> dict[str, float]:
    """AP of all pairs by the distance of the features themselves."""
    found = {}
    for name, path in zip(NAMES.values(), (made.whole, made.small), strict=True):
        with np.load(path) as content:
            chosen = content["split"] == part
            vectors, labels = torch.from_numpy(content["features"][chosen]), content["labels"][chosen]
        pairs = all_pairs(np.unique(labels, return_inverse=True)[1])
        distances = torch.cdist(vectors, vectors).double().numpy()
        found[name] = average_precision(-distances[pairs.first, pairs.second], pairs.matches)
    return found


def _mean(numbers: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.mean(one[name] for one in numbers) for name in NAMES.values()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--part", choices=("validation", "test"), default="test")
    parser.add_argument("--seeds", type=int, nargs="*", default=SEEDS)
    parser.add_argument("--heads", nargs="*", choices=tuple(HEADS), default=tuple(HEADS))
    parser.add_argument("--set", dest="overrides", action="append", default=[])
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    runs, before = [], []
    with tempfile.TemporaryDirectory() as name:
        folders = [(given.keep or Path(name)) / model.name for model in given.models]
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
        sets = [make(model, given.data, folder) for model, folder in zip(given.models, folders, strict=True)]
        before = [raw(made, given.part) for made in sets]
        for seed in given.seeds:
            for head in given.heads:
                which = seed % len(sets)
                found = measure(sets[which], head, seed, given.part, given.overrides, Path(name))
                print(found, flush=True)
                runs.append(found)
    means = {
        head: {
            name: statistics.mean(run["ap"][name] for run in runs if run["model"] == head) for name in NAMES.values()
        }
        for head in given.heads
    }
    means["raw"] = _mean(before)
    content = {
        "command": "python tools/measure_retrofit.py DIR " + " ".join(map(str, given.models)),
        "part": given.part,
        "features": [sets[0].rows, sets[0].size],
        "mean_ap": means,
        "runs": runs,
    }
    print(means)
    if given.out:
        write_json(given.out, content)


if __name__ == "__main__":
    main()
