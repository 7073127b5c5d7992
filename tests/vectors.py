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
    """A file with vectors and labels, and beside it, as worse.npz, one of the same seen worse."""
    vectors, labels = made_up()
    np.savez(folder / "vectors.npz", features=vectors, labels=labels)
    np.savez(folder / "worse.npz", features=made_up(spread=0.9, seed=1)[0], labels=labels)
    return folder / "vectors.npz"
