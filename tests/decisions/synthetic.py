"""Pairs whose truth is known: embeddings drawn from a law, and scores whose probabilities are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedged.decisions import ScoredPairs
from hedged.metrics import balanced_pairs


def embedded_pairs(seed: int, identities: int = 40, each: int = 8, pairs: int = 6_000) -> ScoredPairs:
    """Pairs of points about centres of their own, some identities more scattered than others; scores are −distance."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(identities, 1, 4)) * np.exp(0.4 * rng.normal(size=(identities, 1, 1)))
    points = (centres + 0.4 * rng.normal(size=(identities, each, 4))).reshape(-1, 4)
    labels = np.repeat(np.arange(identities), each)
    chosen = balanced_pairs(labels, pairs, rng)
    distance = np.linalg.norm(points[chosen.first] - points[chosen.second], axis=1)
    return ScoredPairs.of(-3 * distance, labels[chosen.first], labels[chosen.second])


def logistic_pairs(seed: int, count: int = 20_000, identities: int = 60, temperature: float = 2.0) -> ScoredPairs:
    """Pairs whose true log-odds, where half match, are score / temperature + 1.

    Drawn from N(±2, 4), a number is its own log-odds: what a temperature can express exactly.
    """
    rng = np.random.default_rng(seed)
    matches = np.arange(count) < count // 2
    log_odds = np.where(matches, 2.0, -2.0) + 2.0 * rng.normal(size=count)
    first = rng.integers(identities, size=count)
    second = np.where(matches, first, (first + rng.integers(1, identities, size=count)) % identities)
    return ScoredPairs.of((log_odds - 1) * temperature, first, second)


def of_base_rate(pairs: ScoredPairs, base_rate: float, seed: int = 0) -> NDArray[np.intp]:
    """Rows of which a share of `base_rate` matches."""
    matches, others = (np.flatnonzero(pairs.matches == kind) for kind in (True, False))
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.choice(matches, int(len(others) * base_rate / (1 - base_rate)), replace=False), others])
