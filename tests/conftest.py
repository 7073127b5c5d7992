"""Settings for all tests: one thread a process, since two processes share two cores; no deadlines; MNIST."""

from __future__ import annotations

import os

import pytest
import torch
from hypothesis import settings

from hedged.data import Digits, load_mnist
from hedged.errors import DataError

os.environ["OMP_NUM_THREADS"] = "1"  # for the processes that tests start
torch.set_num_threads(1)

settings.register_profile("hedged", settings(deadline=None, derandomize=True))  # the same examples each time
settings.load_profile("hedged")


@pytest.fixture(scope="session")
def mnist() -> tuple[Digits, Digits]:
    """MNIST's training and test digits, fetched if need be; HEDGED_REQUIRE_MNIST=1 makes their absence a failure."""
    try:
        return load_mnist("train"), load_mnist("test")
    except DataError as error:
        if os.environ.get("HEDGED_REQUIRE_MNIST") == "1":
            raise
        pytest.skip(f"needs MNIST: {error}")
