"""All pairs in plain torch, from the log-odds of one: the defaults of `MatchModel`, and oracles of what is faster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import softplus

from hedged.distributions import Distribution
from hedged.match._closed_form.loops.limits import FARTHEST

VALUES_PER_BLOCK = 2**20  # of each intermediate result: what a core's cache holds

Logit = Callable[[Distribution, Distribution], Tensor]


class Matches(NamedTuple):
    """The best matches of each probe, best first: log-odds and places in the gallery, both `(N, k)`."""

    logits: Tensor
    items: Tensor


def distance(x1: Tensor, x2: Tensor) -> Tensor:
    """‖x₁ − x₂‖ over the last axis, finite however far apart; where both coincide its gradient is zero."""
    difference = x1 - x2
    farthest = min(FARTHEST, torch.finfo(difference.dtype).max)
    norm: Tensor = torch.linalg.vector_norm(difference.clamp(-farthest, farthest), dim=-1)
    return norm


def log_odds(log_p: Tensor) -> Tensor:
    """log p/(1 − p) from log p, exact at both ends."""
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
    """−log p where the pair matches, −log(1 − p) where not; finite and with a gradient at any logit."""
    return softplus(torch.where(match, -logits, logits))


def values_per_pair(z1: Distribution, z2: Distribution) -> int:
    """C₁ · C₂ · D, four times: what a difference of means, its square and two variances take."""
    first, second = (z.tensors[0].shape[len(z.batch_shape) :].numel() for z in (z1, z2))  # C · D each
    return max(4 * first * second // z1.dim, 1)


def blocks(height: int, width: int, pairs: int) -> Iterator[tuple[slice, slice]]:
    """Parts of a matrix, rows and columns, that hold at most so many pairs each, or one."""
    across = max(min(width, pairs), 1)
    down = max(pairs // across, 1)
    for top in range(0, height, down):
        for left in range(0, width, across):
            yield slice(top, top + down), slice(left, left + across)


@torch.no_grad()
def matrix(logit: Logit, z1: Distribution, z2: Distribution, values: int) -> Tensor:
    """The log-odds of all pairs, `(N, M)`, from `logit` of blocks of them, given the numbers that a pair takes."""
    out = torch.empty(len(z1), len(z2), dtype=torch.promote_types(z1.dtype, z2.dtype), device=z1.device)
    for rows, columns in blocks(len(z1), len(z2), VALUES_PER_BLOCK // values):
        out[rows, columns] = logit(z1[rows].unsqueeze(1), z2[columns].unsqueeze(0))
    return out


@torch.no_grad()
def nearest(all_logits: Logit, z: Distribution, gallery: Distribution, k: int, exclude_self: bool) -> Matches:
    """The k best of each probe, from matrices of some probes and the whole gallery."""
    found = []
    rows = max(VALUES_PER_BLOCK // max(len(gallery), 1), 1)
    for start in range(0, len(z), rows):
        logits = all_logits(z[start : start + rows], gallery)
        if exclude_self:
            own = torch.arange(len(logits), device=logits.device)
            logits[own, own + start] = -torch.inf
        found.append(best(logits, k))
    return Matches(*(torch.cat(column) for column in zip(*found, strict=True)))


def best(scores: Tensor, k: int) -> Matches:
    """The k highest of each row, the first among equals. `scores` is overwritten.

    Argmax, k times: `topk` does not promise that order, and sorting is slower.
    """
    found = []
    for _ in range(k):
        items = scores.argmax(dim=1, keepdim=True)
        found.append((scores.gather(1, items), items))
        scores.scatter_(1, items, -torch.inf)
    return Matches(*(torch.cat(column, dim=1) for column in zip(*found, strict=True)))


@torch.no_grad()
def chosen_logits(logit: Logit, z: Distribution, items: Distribution, chosen: Tensor, values: int) -> Tensor:
    """The log-odds of each probe and the items chosen for it, float64 `(N, n)`; −∞ where `chosen` is −1."""
    out = torch.full(chosen.shape, -torch.inf, dtype=torch.float64)
    probes = z.to(torch.float64)
    for rows, columns in blocks(chosen.shape[0], chosen.shape[1], VALUES_PER_BLOCK // values):
        part = chosen[rows, columns]
        logits = logit(probes[rows].unsqueeze(1), items[part.clamp(min=0)].to(torch.float64))
        out[rows, columns] = torch.where(part >= 0, logits, -torch.inf)
    return out


def pair_costs(logit: Logit, z: Distribution, labels: Tensor) -> Tensor:
    """Σ −log p over the matching pairs of distinct items and Σ −log(1 − p) over the others, `(2,)`."""
    first, second = torch.triu_indices(len(labels), len(labels), offset=1, device=labels.device)
    match = labels[first] == labels[second]
    costs = cross_entropy(logit(z.take(first), z.take(second)), match)
    return torch.stack([torch.where(mask, costs, 0).sum() for mask in (match, ~match)])
