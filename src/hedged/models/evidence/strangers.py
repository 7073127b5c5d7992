"""How rare an input is, told by strangers: a likelihood ratio averages one over inputs of other identities.

The prior N(0, I) spreads identities evenly. Real ones crowd: there are many dogs of a common breed, and a photo of one
is likely under all of them. Where the ratios BF^κ of an input with strangers average more than one, they promise too
much, and each input of a pair gives back half of it, as far as there is evidence for a match (`Evidence`):

    n(x) = 1/κ · log mean_j BF(x, stranger_j)^κ.
"""

from __future__ import annotations

import math
from typing import final

import torch
from torch import Tensor, nn

from hedged._tracing import is_exporting
from hedged.distributions import Gaussian
from hedged.match._evidence.matrix import log_factors
from hedged.models.evidence.asides import beside

AT_ONCE = 2**22  # ratios held at a time


@final
class Strangers(nn.Module):
    """−n(x)/2, how rare an input is, beside its embedding.

    Args:
        count: how many strangers there are.
        dim: D, the dimensions of their embeddings.
        sharpness: κ, how far a single ratio is trusted.
    """

    mean: Tensor
    variance: Tensor

    def __init__(self, count: int, dim: int, sharpness: float) -> None:
        super().__init__()
        self.sharpness = sharpness
        self.register_buffer("mean", torch.zeros(count, dim))
        self.register_buffer("variance", torch.ones(count, dim))

    @classmethod
    def of(cls, z: Gaussian, sharpness: float) -> Strangers:
        """Strangers by their embeddings.

        Args:
            z: their embeddings.
            sharpness: κ.
        """
        made = cls(len(z), z.dim, sharpness)
        made.mean, made.variance = (t.detach().float().contiguous() for t in z.tensors)
        return made

    def excess(self, z: Gaussian, groups: list[slice]) -> Tensor:
        """n(x), `(N,)`, in double precision: the same for an input in any batch.

        Args:
            z: embeddings of N inputs.
            groups: dimensions that share a variance.
        """
        others = Gaussian._unchecked(self.mean.double(), self.variance.double())
        parts = []
        for some in [z] if is_exporting() else _blocks(z, max(AT_ONCE // max(len(self.mean), 1), 1)):
            factors = log_factors(some.to(torch.float64), others, groups)
            parts.append(((self.sharpness * factors).logsumexp(1) - math.log(len(self.mean))) / self.sharpness)
        return torch.cat(parts) if parts else z.mean.new_zeros(0, dtype=torch.float64)

    def forward(self, z: Gaussian, groups: list[slice]) -> Gaussian:
        """The embeddings with a last dimension more, their rarity."""
        return beside(z, self.excess(z, groups) / -2)


def _blocks(z: Gaussian, step: int) -> list[Gaussian]:
    return [z[start : start + step] for start in range(0, len(z), step)]
