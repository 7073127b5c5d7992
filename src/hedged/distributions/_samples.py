"""Noise, and what is estimated from samples."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from hedged.distributions.base import Distribution


def sampled_kl(z: Distribution, samples: int, generator: torch.Generator | None) -> Tensor:
    """E_p[log p(z) − log r(z)] over samples of p, r = N(0, I)."""
    drawn = z.sample(samples, generator)
    log_r = -0.5 * (drawn.square() + math.log(2 * math.pi)).sum(-1)
    return (z.log_prob(drawn) - log_r).mean(0)


def noise(shape: tuple[int, ...], like: Tensor, generator: torch.Generator | None) -> Tensor:
    """ε ~ N(0, I), of the dtype and on the device of another tensor."""
    return torch.randn(shape, dtype=like.dtype, device=like.device, generator=generator)
