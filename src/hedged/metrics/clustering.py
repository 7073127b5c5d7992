"""Clusters against identities: do items that show one identity lie in one cluster, and no others with them?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hedged.metrics._arrays import FloatArray, check_same_length, vector


class _Shared(NamedTuple):
    """How many items identities and clusters share: of each pair that shares any, of its identity, of its cluster."""

    both: FloatArray
    of_identity: FloatArray
    of_cluster: FloatArray


def adjusted_rand_index(identities: ArrayLike, clusters: ArrayLike) -> float:
    """(t − e)/(½(a + b) − e), e = a·b/m: agreement on pairs; 1 for the same partition, 0 on average by chance.

    Of m pairs of items, a show one identity, b lie in one cluster, and t do both.

    Args:
        identities: Whom each item shows, `(n,)`.
        clusters: The cluster of each item, `(n,)`; the names of clusters do not matter.

    >>> adjusted_rand_index(["a", "a", "b", "b"], [7, 7, 8, 8]), adjusted_rand_index(["a", "a", "b", "b"], [0, 0, 0, 1])
    (1.0, 0.0)
    """
    both, same_identity, same_cluster, pairs = _pair_counts(identities, clusters)
    expected = same_identity * same_cluster / pairs if pairs else 0.0
    most = (same_identity + same_cluster) / 2
    return (both - expected) / (most - expected) if most != expected else 1.0


def pairwise_f1(identities: ArrayLike, clusters: ArrayLike) -> float:
    """2t/(a + b): the harmonic mean of precision and recall of pairs; large identities count most.

    a pairs of items show one identity, b lie in one cluster, and t do both. 1 if there is no pair to be found.

    Args:
        identities: Whom each item shows, `(n,)`.
        clusters: The cluster of each item, `(n,)`; the names of clusters do not matter.

    >>> pairwise_f1(["a", "a", "b", "b"], [0, 0, 0, 1])
    0.4
    """
    both, same_identity, same_cluster, _ = _pair_counts(identities, clusters)
    return 2 * both / (same_identity + same_cluster) if same_identity + same_cluster else 1.0


def bcubed_f1(identities: ArrayLike, clusters: ArrayLike) -> float:
    """2PR/(P + R) with P = (1/n) Σ_i |K_i ∩ C_i|/|C_i| and R = (1/n) Σ_i |K_i ∩ C_i|/|K_i|: every item counts alike.

    C_i are the items of the cluster of item i, K_i those of its identity, i among both (B-cubed).

    Args:
        identities: Whom each item shows, `(n,)`.
        clusters: The cluster of each item, `(n,)`; the names of clusters do not matter.

    >>> round(bcubed_f1(["a", "a", "b", "b"], [0, 0, 0, 1]), 3)
    0.706
    """
    found = _shared(identities, clusters)
    count = found.both.sum()
    precision = float((found.both**2 / found.of_cluster).sum() / count)
    recall = float((found.both**2 / found.of_identity).sum() / count)
    return 2 * precision * recall / (precision + recall)


def _pair_counts(identities: ArrayLike, clusters: ArrayLike) -> tuple[float, float, float, float]:
    """Pairs that show one identity and lie in one cluster, that do the former, the latter, and all."""
    names, groups = vector("identities", identities), vector("clusters", clusters)
    sizes = (_shared(names, groups).both, *(np.unique(v, return_counts=True)[1] for v in (names, groups)))
    both, same_identity, same_cluster = (float((n * (n - 1.0)).sum() / 2) for n in sizes)
    return both, same_identity, same_cluster, len(names) * (len(names) - 1) / 2


def _shared(identities: ArrayLike, clusters: ArrayLike) -> _Shared:
    names, groups = vector("identities", identities), vector("clusters", clusters)
    check_same_length(identities=names, clusters=groups)
    identity, cluster = (np.unique(v, return_inverse=True)[1].reshape(-1) for v in (names, groups))
    pairs, both = np.unique(np.stack([identity, cluster]), axis=1, return_counts=True)
    sizes = [np.bincount(v)[column] for v, column in zip((identity, cluster), pairs, strict=True)]
    return _Shared(both.astype(np.float64), *(size.astype(np.float64) for size in sizes))
