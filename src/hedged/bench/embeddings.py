"""Embeddings to measure on: clusters, as trained models give them, so few that many pairs match."""

from __future__ import annotations

import torch

from hedged.distributions import Gaussian, LowRankGaussian, Mixture

CLUSTERS = 4  # of equal size: a quarter of all pairs is near, more than a fifth at p > 0.01


def clustered(
    count: int, dim: int, components: int = 1, seed: int = 0, clusters: int = CLUSTERS, one_variance: bool = False
) -> Gaussian | Mixture:
    """So many embeddings around a few centres that are far apart; most are narrow, some are wide.

    >>> clustered(8, dim=2)
    Gaussian(batch=(8,), dim=2, dtype=torch.float32)

    Args:
        count: How many embeddings.
        dim: Their dimensions.
        components: One for Gaussians, more for mixtures.
        seed: Of the random numbers.
        clusters: How many centres; with one, no pair is far apart.
        one_variance: Whether each embedding is as wide in all dimensions.
    """
    generator = torch.Generator().manual_seed(seed)
    centres = 3 * torch.randn(clusters, 1, dim, generator=torch.Generator().manual_seed(0))
    shape = (count, components, dim)
    which = torch.randint(clusters, (count,), generator=generator)
    means = centres[which] + 0.2 / dim**0.5 * torch.randn(shape, generator=generator)
    variances = (
        5e-3
        / dim
        * torch.exp(torch.randn((*shape[:-1], 1) if one_variance else shape, generator=generator)).expand(shape)
    )
    return Gaussian(means[:, 0], variances[:, 0]) if components == 1 else Mixture(means, variances)


def turned(count: int, dim: int, seed: int = 0) -> LowRankGaussian:
    """The same Gaussians, half of each variance shared with all other coordinates: covariances of rank one.

    >>> turned(8, dim=2)
    LowRankGaussian(batch=(8,), dim=2, dtype=torch.float32)

    Args:
        count: How many embeddings.
        dim: Their dimensions.
        seed: Of the random numbers.
    """
    mean, variance = clustered(count, dim, seed=seed).parts()
    signs = torch.randn(count, 1, dim, generator=torch.Generator().manual_seed(seed + 1)).sign()
    return LowRankGaussian(mean[:, 0], variance[:, 0] / 2, (variance / 2).sqrt() * signs)
