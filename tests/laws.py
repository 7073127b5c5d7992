"""What every embedding and every estimator is tested with: one batch of each kind, made from a seed."""

from __future__ import annotations

import torch
from torch import Tensor

from hedged.distributions import Distribution, FullGaussian, Gaussian, LowRankGaussian, Mixture, Point
from hedged.match import MatchCurve

COMPONENTS = {"point": 0, "gaussian": 0, "mixture-1": 1, "mixture-2": 2, "mixture-4": 4}
KINDS = list(COMPONENTS)
RANDOM_KINDS = [kind for kind in KINDS if kind != "point"]
TURNED_KINDS = ["full", "low-rank-1", "low-rank-3"]
DTYPES = [torch.float32, torch.float64]


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def embedding(
    kind: str, *batch: int, dim: int = 2, dtype: torch.dtype = torch.float64, seed: int = 0, spread: float = 0.3
) -> Distribution:
    """A batch of one kind: means of about one, standard deviations of about `spread`, all different."""
    generator = seeded(seed)
    components = (COMPONENTS[kind],) if COMPONENTS[kind] else ()
    shape = (*batch, *components, dim)
    mean = torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)
    scale = torch.rand(shape, generator=generator, dtype=torch.float64).to(dtype)
    variance = (spread * (0.5 + scale)).square()
    if kind == "point":
        return Point(mean)
    return Mixture(mean, variance) if components else Gaussian(mean, variance)


def turned(
    kind: str, *batch: int, dim: int = 2, dtype: torch.dtype = torch.float64, seed: int = 0, spread: float = 0.3
) -> FullGaussian | LowRankGaussian:
    """A batch of Gaussians of one kind whose coordinates covary, about as wide as those of `embedding`."""
    generator = seeded(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*batch, *shape, generator=generator, dtype=torch.float64)

    mean, width = normal(dim).to(dtype), spread * (0.5 + torch.rand(*batch, dim, generator=generator).double())
    if kind == "full":
        below = spread * normal(dim, dim).tril(-1)
        return FullGaussian(mean, (below + width.diag_embed()).to(dtype))
    factor = spread * normal(int(kind.rpartition("-")[2]), dim)
    return LowRankGaussian(mean, width.square().to(dtype), factor.to(dtype))


def rebuilt(z: Distribution, *tensors: Tensor) -> Distribution:
    """The same kind of distribution from other tensors, through its public constructor."""
    return type(z)(*tensors)


def with_gradients(z: Distribution) -> Distribution:
    return rebuilt(z, *(t.detach().clone().requires_grad_() for t in z.tensors))


def frozen_curve(scale: float = 2.0, bias: float = 3.0, dtype: torch.dtype = torch.float64) -> MatchCurve:
    return MatchCurve(scale, bias).to(dtype).requires_grad_(False)


def one_at_a_time(z: Distribution) -> list[Distribution]:
    """The members of a batch of shape `(N,)`, cut out without `Distribution.__getitem__`."""
    return [rebuilt(z, *(t[i] for t in z.tensors)) for i in range(z.batch_shape[0])]
