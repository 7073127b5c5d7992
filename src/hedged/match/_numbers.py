"""Distances, log-odds and probabilities as numbers: exact at both ends, finite, never rounded to certainty."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus

from hedged.match._closed_form.loops.limits import FARTHEST


def distance(x1: Tensor, x2: Tensor) -> Tensor:
    """‖x₁ − x₂‖ over the last axis, finite however far apart; where both coincide its gradient is zero.

    Args:
        x1: The first points, `(..., D)`.
        x2: The second points, `(..., D)`.
    """
    difference = x1 - x2
    farthest = min(FARTHEST, torch.finfo(difference.dtype).max)
    norm: Tensor = torch.linalg.vector_norm(difference.clamp(-farthest, farthest), dim=-1)
    return norm


def log_odds(log_p: Tensor) -> Tensor:
    """log p/(1 − p) from log p, exact at both ends.

    Args:
        log_p: log p, below 0.
    """
    return log_p - torch.log(-torch.expm1(log_p))


def probability(logits: Tensor, in_place: bool = False) -> Tensor:
    """p from log-odds; it never rounds to 0 or 1. In place where a copy may not fit."""
    p = logits.sigmoid_() if in_place else logits.sigmoid()
    low, high = within(p.dtype)
    return p.clamp_(low, high) if in_place else p.clamp(low, high)


def within(dtype: torch.dtype) -> tuple[float, float]:
    """The least and the greatest number within (0, 1): a probability does not round to certainty."""
    return torch.finfo(dtype).tiny, 1 - torch.finfo(dtype).eps / 2


def cross_entropy(logits: Tensor, match: Tensor) -> Tensor:
    """−log p where the pair matches, −log(1 − p) where not; finite and with a gradient at any logit.

    Args:
        logits: The log-odds of a match of each pair.
        match: Whether each pair matches.
    """
    return softplus(torch.where(match, -logits, logits))
