"""Measure decisions on identities that they were not calibrated on, for results/decisions.

    python tools/measure_decisions.py ndigit          occluded N-digit MNIST, with two of the models that ship
    python tools/measure_decisions.py photos RUN      the held-out identities of a run on photos
    python tools/measure_decisions.py page            the page and the figure of what was measured

Each set gets a file of numbers; `--out` names another folder than results/decisions.
"""

from __future__ import annotations

import argparse
import json
import platform
from pathlib import Path
from typing import Any

import numpy as np

from hedged import Embedder
from hedged._files import make_folder, write_json
from hedged._progress import progress
from hedged.bench.decisions import SPLITS, Items, Trial, as_json, curves, halves, measure, summary
from hedged.bench.decisions_page import write_page
from hedged.data import build_ndigit, load_mnist
from hedged.data.random import Purpose, keyed
from hedged.errors import DataError
from hedged.models import embed_all
from hedged.training import Run, build_data

RESULTS = Path(__file__).parents[1] / "results" / "decisions"
NUMBERS = {"hedged:ndigit-2d": 100, "hedged:ndigit-3d": 400}  # numbers of which images are made, drawn by the seed
IMAGES = {"hedged:ndigit-2d": 100, "hedged:ndigit-3d": 25}  # of each


def measure_ndigit(name: str, out: Path) -> None:
    """Test digits, every one of them occluded; the identities are the numbers that they read."""
    embedder = Embedder.load(name)
    digits = embedder.architecture.shape[2] // 28
    numbers = keyed(0, Purpose.CLASSES).choice(10**digits, NUMBERS[name], replace=False).tolist()
    images = build_ndigit(load_mnist("test"), digits, numbers, IMAGES[name], keyed(0, Purpose.SEEN))
    items = Items(embedder.embed(images.corrupt(0)), images.labels.numpy(), embedder.match_model)
    said = f"{len(images):,} occluded images of {len(numbers)} numbers, composed of MNIST's test digits"
    write(out / f"{name.removeprefix('hedged:')}.json", name, said, split(items, name))


def measure_photos(run: Path, name: str, out: Path) -> None:
    """Photos of the identities that a run was not trained on: halves of the test ones, and validation against test."""
    config, embedder = Run(run).trained()
    data = build_data(config)
    if data.validation is None:
        raise DataError(f"{run} kept no identities for validation, which are calibrated on: train with some held out")
    known, new = (
        Items(embed_all(embedder, part.clean, len(part)), part.labels.numpy(), embedder.match_model)
        for part in (data.validation, next(iter(data.test.values())))
    )
    said = f"{len(new.labels):,} photos of {len(np.unique(new.labels))} identities that were not trained on"
    whole = as_json(measure(known, new)) | {"identities": len(np.unique(known.labels))}
    model = f"{embedder.architecture.backbone}, trained with config {Run(run).digest}"
    write(out / f"{name}.json", model, said, split(new, name), validation=whole)


def split(items: Items, name: str) -> list[Trial]:
    """The trials on random halves of the identities."""
    trials = []
    with progress(f"splits of {name}", SPLITS) as update:
        for seed, (known, new) in enumerate(halves(items.labels)):
            trials.append(measure(items.of(known), items.of(new), seed))
            update(seed + 1)
    return trials


def write(path: Path, model: str, data: str, trials: list[Trial], **more: Any) -> None:
    """A file of all numbers of a set."""
    content = {
        "command": f"python tools/measure_decisions.py {'photos RUN' if more else 'ndigit'}",
        "model": model,
        "data": data,
        "machine": platform.machine(),
        **summary(trials),
        **more,
        "curves": curves(trials),
        "trials": [as_json(trial) for trial in trials],
    }
    write_json(path, json.loads(json.dumps(content), parse_float=lambda x: round(float(x), 5)))
    print(path)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure decisions on other identities.")
    parser.add_argument("what", choices=["ndigit", "photos", "page"])
    parser.add_argument("run", nargs="?", type=Path, help="a run on photos")
    parser.add_argument("--name", default="dogs", help="of the file of numbers")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    make_folder(given.out)
    if given.what == "ndigit":
        for name in NUMBERS:
            measure_ndigit(name, given.out)
    elif given.what == "photos":
        measure_photos(given.run, given.name, given.out)
    write_page(given.out)


if __name__ == "__main__":
    main()
