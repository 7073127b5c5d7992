"""All pairs in plain torch, from the log-odds of one: the defaults of `MatchModel`, and oracles of what is faster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from hedged.distributions import Distribution

VALUES_PER_BLOCK = 2**20  # of each intermediate result: what a core's cache holds

Logit = Callable[[Distribution, Distribution], Tensor]
PairCost = Callable[[Distribution, Distribution, Tensor], Tensor]
"""The cost of each pair, from its first embeddings, its second ones, and whether they match."""


class Matches(NamedTuple):
    """The best matches of each probe, best first.

    Args:
        logits: Their log-odds, `(N, k)`.
        items: Their places in the gallery, `(N, k)`.
    """

    logits: Tensor
    items: Tensor


class BatchPairs(NamedTuple):
    """Pairs of distinct items of one batch.

    Args:
        first: The place of one item of each pair, `(P,)`.
        second: The place of the other, after the first, `(P,)`.
        match: Whether they match, `(P,)`.
    """

    first: Tensor
    second: Tensor
    match: Tensor


def values_per_pair(z1: Distribution, z2: Distribution) -> int:
    """C₁ · C₂ · D, four times: what a difference of means, its square and two variances take; twice for each factor."""
    first, second = (z.tensors[0].shape[len(z.batch_shape) :].numel() for z in (z1, z2))  # C · D each
    return max((4 + 2 * (z1.rank + z2.rank)) * first * second // z1.dim, 1)


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


def pairs_of(labels: Tensor) -> BatchPairs:
    """All pairs of distinct items of a batch.

    Args:
        labels: The classes of the items, `(B,)`.
    """
    first, second = torch.triu_indices(len(labels), len(labels), offset=1, device=labels.device)
    return BatchPairs(first, second, labels[first] == labels[second])


def pair_costs(cost: PairCost, z: Distribution, labels: Tensor) -> Tensor:
    """The summed costs of all matching pairs of a batch and of all others, `(2,)`, pair by pair.

    Args:
        cost: The cost of each pair, from its first embeddings, its second ones, and whether they match.
        z: B embeddings.
        labels: Their classes, `(B,)`.
    """
    first, second, match = pairs_of(labels)
    costs = cost(z.take(first), z.take(second), match)
    return torch.stack([torch.where(mask, costs, 0).sum() for mask in (match, ~match)])
