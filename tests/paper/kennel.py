"""Photos of dogs that were never born: each dog a slight pattern of its own, each photo of it in another light."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

SIDE = 36
DOGS, TESTED = 20, (5, 10, 15, 20)
PHOTOS, TEST_PHOTOS = 5, 40  # of a dog; many of a tested one, so that every bin of pairs has matches enough

TINY_PETS: dict[str, dict[str, Any]] = {
    "data": {
        "source": "images",
        "path": "photos",
        "split": "pattern",
        "test_pattern": "[05]$",
        "validation_share": 0.25,
        "size": 32,
        "cached_size": SIDE,
    },
    "model": {"backbone": "mobilenet", "width": 0.1, "dim": 3},
    "loss": {"positive_weight": 0.2, "scale": 2.0, "bias": 4.0},
    # So many steps that a network in use normalises as it does in training: before, all photos look the same to it.
    "train": {"steps": 40, "warmup": 1, "batch_size": 16, "classes_per_batch": 4, "images_per_class": 3},
}


def write_dogs(folder: Path) -> Path:
    """A folder for each dog, named by its number. Uncertainty is to tell photos apart, not dogs: so they look alike."""
    generator = np.random.default_rng(0)
    for dog in range(1, DOGS + 1):
        place = folder / str(dog)
        place.mkdir(parents=True)
        face = 128 + generator.uniform(-20, 20, (6, 6, 3)).repeat(SIDE // 6, 0).repeat(SIDE // 6, 1)
        for photo in range(TEST_PHOTOS if dog in TESTED else PHOTOS):
            lit = face + generator.uniform(-80, 80) + generator.normal(0, generator.uniform(5, 40), face.shape)
            Image.fromarray(lit.clip(0, 255).astype(np.uint8)).save(place / f"{dog}.{photo}.png")
    return folder
