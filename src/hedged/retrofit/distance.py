"""Novelty: how far a vector is from those of training, as a rank among held-out training vectors."""

from __future__ import annotations

from typing import Any, Self, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Floats = NDArray[np.floating[Any]]
MOST_KEPT = 2000  # training vectors that are kept
NEIGHBOUR = 5  # the nearest training vector that is looked at
BLOCK = 4096  # vectors compared at a time


@final
class NeighbourDistance(nn.Module):
    """1 − cos(x, its k-th nearest training vector), on centred vectors.

    It tells vectors of another kind from those of training; new identities are no novelty, nor are poor inputs meant
    to be, though they look a little like it: read it together with the uncertainty.

    Args:
        features: F, the width of the vectors.
        kept: how many training vectors are remembered.
    """

    mean: Tensor
    known: Tensor

    def __init__(self, features: int, kept: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("known", torch.zeros(kept, features))

    @classmethod
    def fitted(cls, x: Floats, seed: int) -> Self:
        """Remember vectors.

        Args:
            x: training vectors, (n, F).
            seed: which of them are kept, if there are more than enough.
        """
        rows = np.sort(np.random.default_rng(seed).permutation(len(x))[:MOST_KEPT])
        found = cls(x.shape[1], len(rows))
        found.mean = torch.as_tensor(x.mean(0)).float()
        found.known = _directions(torch.as_tensor(x[rows]).float() - found.mean)
        return found

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        """(n,): in [0, 2], higher is less like the training vectors."""
        k = min(NEIGHBOUR, len(self.known))
        parts = [_directions(x[i : i + BLOCK] - self.mean) @ self.known.T for i in range(0, len(x), BLOCK)]
        nearest = [part.topk(k, dim=1).values[:, -1] for part in parts]
        return 1 - torch.cat(nearest) if nearest else x.new_zeros(0)


def _directions(x: Tensor) -> Tensor:
    return x / (x.square().sum(1, keepdim=True).sqrt() + 1e-12)
