"""What an embedding says beside z: last dimensions of variance one, whose means are numbers about the input itself.

They travel with the embedding through stores and files. `Evidence` knows them; to all else they say nothing, since a
variance of one is the prior, and their means are too small to be seen by distances.
"""

from __future__ import annotations

import torch
from torch import Tensor

from hedged.distributions import Gaussian

ASIDE = 100.0  # ρ: what is said is so many times smaller in the embedding


def beside(z: Gaussian, said: Tensor) -> Gaussian:
    """The embeddings with a last dimension more, which holds said/ρ.

    Args:
        z: embeddings of N inputs.
        said: a number about each, (N,).

    >>> z = beside(Gaussian(torch.zeros(2, 3), torch.full((2, 3), 0.5)), torch.tensor([1.0, 2.0]))
    >>> z.dim, z.mean[:, -1], z.variance[:, -1]
    (4, tensor([0.0100, 0.0200]), tensor([1., 1.]))
    """
    last = (said / ASIDE).to(z.dtype)[:, None]
    return Gaussian(torch.cat([z.mean, last], dim=1), torch.cat([z.variance, torch.ones_like(last)], dim=1))
