"""For all tests: one thread a process, since two processes share two cores; no deadlines; MNIST; a tiny recipe."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import settings

from hedged.data import Digits, load_mnist
from hedged.errors import DataError

os.environ["OMP_NUM_THREADS"] = "1"  # for the processes that tests start
torch.set_num_threads(1)

settings.register_profile("hedged", settings(deadline=None, derandomize=True))  # the same examples each time
settings.load_profile("hedged")

TINY_RECIPE: dict[str, dict[str, Any]] = {
    "data": {"source": "offline", "split": "number", "train_images": 2000, "test_images": 400, "per_class": 20},
    "model": {"channels": [2, 4], "hidden": 16},
    "loss": {"beta": 1e-4},
    "train": {"steps": 3, "warmup": 1, "batch_size": 32, "classes_per_batch": 4, "images_per_class": 4},
}


@pytest.fixture(scope="module")
def tiny_recipe() -> Iterator[None]:
    """All models of the paper by a recipe that takes a moment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hedged.paper.recipe._file", lambda: TINY_RECIPE)
        yield


@pytest.fixture(scope="session")
def mnist() -> tuple[Digits, Digits]:
    """MNIST's training and test digits, fetched if need be; HEDGED_REQUIRE_MNIST=1 makes their absence a failure."""
    try:
        return load_mnist("train"), load_mnist("test")
    except DataError as error:
        if os.environ.get("HEDGED_REQUIRE_MNIST") == "1":
            raise
        pytest.skip(f"needs MNIST: {error}")
