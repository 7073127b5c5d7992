"""Tiny evaluations of untrained embedders, with variances at random, on the offline digits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch

from hedged import Architecture, Embedder
from hedged.data import build_ndigit, offline_digits
from hedged.evaluation import Evaluation
from hedged.novelty import Novelty

Evaluate = Callable[..., Evaluation]


@pytest.fixture(scope="session")
def evaluate() -> Evaluate:
    """An evaluation of `each` images of these numbers of two digits; by default enough for every panel."""

    def make(
        head: str = "gaussian",
        dim: int = 2,
        components: int = 1,
        numbers: Sequence[int] = range(0, 100, 10),
        each: int = 6,
        novelty: bool = False,
    ) -> Evaluation:
        architecture = Architecture.model_validate({"head": head, "dim": dim, "components": components})
        data = build_ndigit(offline_digits("test"), 2, numbers, each, np.random.default_rng(0))
        embedder, generator = Embedder.new(architecture, seed=0), torch.Generator().manual_seed(0)
        for parameter in embedder.head.parameters():  # before training, all variances are the same
            parameter.data += 0.02 * torch.randn(parameter.shape, generator=generator)
        if novelty:
            features = embedder.backbone(data.clean()[:, None] / 255).detach()
            embedder.novelty_model = Novelty.fitted(features, data.labels)
        return Evaluation(embedder, data)

    return make
