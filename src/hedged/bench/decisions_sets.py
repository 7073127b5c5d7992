"""The sets that decisions are measured on: occluded digits with two models that ship, and the photos of a run."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from hedged._progress import progress
from hedged.bench.decisions import BASELINES, CHOICES, SPLITS, Items, Trial, as_json, curves, halves, measure, summary
from hedged.bench.timing import Line
from hedged.data import build_ndigit, load_mnist
from hedged.data.random import Purpose, keyed
from hedged.errors import DataError
from hedged.models import Embedder, embed_all
from hedged.training import Run, build_data

COMMAND = "hedged bench decisions --out results/decisions"
NUMBERS = {"ndigit-2d": 100, "ndigit-3d": 400}  # numbers of which images are made, drawn by the seed, for each model
IMAGES = {"ndigit-2d": 100, "ndigit-3d": 25}  # of each number
PHOTOS = "dogs"  # the name of the set of photos


def measure_digits(name: str) -> dict[str, Any]:
    """Measure on MNIST's test digits, all of them occluded; identities are the numbers that they show.

    Args:
        name: A model that ships, one of `NUMBERS`.
    """
    embedder = Embedder.load(f"hedged:{name}")
    digits = embedder.architecture.shape[2] // 28
    numbers = keyed(0, Purpose.CLASSES).choice(10**digits, NUMBERS[name], replace=False).tolist()
    images = build_ndigit(load_mnist("test"), digits, numbers, IMAGES[name], keyed(0, Purpose.SEEN))
    items = Items(embedder.embed(images.corrupt(0)), images.labels.numpy(), embedder.match_model)
    data = f"{len(images):,} occluded images of {len(numbers)} numbers, composed of MNIST's test digits"
    return _content(COMMAND, f"hedged:{name}", data, _trials(items, name))


def measure_photos(run: Run) -> dict[str, Any]:
    """Measure on photos of identities that a run was not trained on.

    Halves of the test identities against each other, and validation identities against all test ones.

    Args:
        run: A finished run on photos that kept identities for validation.
    """
    config, embedder = run.trained()
    splits = build_data(config)
    if splits.validation is None:
        raise DataError("the run kept no identities for validation, which are calibrated on: train with some held out")
    known, new = (
        Items(embed_all(embedder, part.clean, len(part)), part.labels.numpy(), embedder.match_model)
        for part in (splits.validation, next(iter(splits.test.values())))
    )
    data = f"{len(new.labels):,} photos of {len(np.unique(new.labels))} identities that were not trained on"
    validation = as_json(measure(known, new)) | {"identities": len(np.unique(known.labels))}
    model = f"{embedder.architecture.backbone}, trained with config {run.digest}"
    return _content(f"{COMMAND} --run RUN", model, data, _trials(new, PHOTOS), validation=validation)


def _trials(items: Items, name: str) -> list[Trial]:
    """The trials on random halves of the identities."""
    trials = []
    with progress(f"splits of {name}", SPLITS) as update:
        for seed, (known, new) in enumerate(halves(items.labels)):
            trials.append(measure(items.of(known), items.of(new), seed))
            update(seed + 1)
    return trials


def _content(command: str, model: str, data: str, trials: list[Trial], **more: Any) -> dict[str, Any]:
    return {
        "command": command,
        "model": model,
        "data": data,
        "machine": platform.machine(),
        **summary(trials),
        **more,
        "curves": curves(trials),
        "trials": [as_json(trial) for trial in trials],
    }


def lines(name: str, content: Mapping[str, Any]) -> Iterator[Line]:
    """What was asked of the decisions on a set, and whether it holds.

    Args:
        name: The set.
        content: What was measured on it.
    """
    left, inside = content["error_after_abstaining"], content["false_match_rate_inside"]
    yield Line(f"{name}: calibration error, calibrated on other identities", content["ece"], 0.02, at_most=True)
    yield Line(f"{name}: share of splits with the false-match rate in its interval", inside / content["splits"], 0.85)
    ratio = left[CHOICES[0]] / min(left[baseline] for baseline in BASELINES)
    yield Line(f"{name}: error left when 20 % are not decided / the best baseline's", ratio, 1.0, at_most=True)
