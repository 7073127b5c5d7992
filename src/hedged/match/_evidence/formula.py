"""The log Bayes factor of two Gaussians, term by term: what `Evidence` and its exported form are made of."""

from __future__ import annotations

import torch
from torch import Tensor


def log_factor(mean1: Tensor, spread1: Tensor, mean2: Tensor, spread2: Tensor) -> Tensor:
    """½ Σ_d [(σ₂²μ₁² + σ₁²μ₂² − (μ₁ − μ₂)²)/t − log t], t = σ₁² + (1 − σ₁²)σ₂²; a sum of terms that do not cancel."""
    t = spread1 + (1 - spread1) * spread2
    terms = (spread2 * mean1.square() + spread1 * mean2.square() - (mean1 - mean2).square()) / t - t.log()
    return 0.5 * terms.sum(-1)


def give_way(factor: Tensor, excess: Tensor) -> Tensor:
    """L + eL/(L + |e|) where L > 0, L elsewhere: rising in L, and of its sign."""
    known, size = factor.clamp(min=0), excess.abs()
    share = (known + (size + excess)) / (known + size + torch.finfo(factor.dtype).tiny)  # no difference cancels
    return torch.where(factor > 0, factor * share, factor)
