"""Vectors of made-up identities, as a good model would give them: near their own centre, far from the others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

IDENTITIES, EACH, SIZE = 30, 8, 12


def made_up(spread: float = 0.3, seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.str_]]:
    """Vectors (240, 12) and whose they are; the first feature falls the more they spread, as sharpness would."""
    random = np.random.default_rng(seed)
    whose = np.repeat(np.arange(IDENTITIES), EACH)
    centres = np.random.default_rng(9).normal(size=(IDENTITIES, SIZE))
    vectors = 3 * (centres[whose] + spread * random.normal(size=(len(whose), SIZE))) + 7
    vectors[:, 0] -= 10 * spread
    return vectors.astype(np.float32), np.array([f"id{i:02}" for i in whose])


def write_vectors(folder: Path) -> Path:
    """A file with vectors and labels, a file of the same seen worse, and a config of a short run on them."""
    vectors, labels = made_up()
    np.savez(folder / "vectors.npz", features=vectors, labels=labels)
    np.savez(folder / "worse.npz", features=made_up(spread=0.9, seed=1)[0], labels=labels)
    config = folder / "vectors.toml"
    config.write_text(f"""
[data]
source = "features"
path = "{folder / "vectors.npz"}"
corrupt_path = "{folder / "worse.npz"}"
size = {SIZE}
[model]
dim = 4
[loss]
beta = 0.01
scale = 5.0
positive_weight = 0.2
[train]
steps = 150
warmup = 10
batch_size = 64
classes_per_batch = 8
images_per_class = 4
checkpoint_every = 40
""")
    return config
