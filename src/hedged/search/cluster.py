"""Who is the same among items that nobody has named? Clusters, with probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray

from hedged._odds import expit
from hedged.distributions import Distribution
from hedged.errors import DataError, ShapeError, ValueRangeError
from hedged.match import MatchModel, best_matches
from hedged.search.identify import LogOdds
from hedged.search.index import without_repeats
from hedged.search.merging import Comparison, Merging
from hedged.search.rows import Filter
from hedged.search.store import Store

NEIGHBOURS = 30  # of each item, that it may be merged with
FOLDS = 10  # of a cluster; an item is compared with the members that are not of its fold
MOST_COMPARED = 3000  # items whose pairs tell how many pairs match
MOST_STEPS = 200  # of EM
MOST_SWEEPS = 5  # in which items move to where they most likely belong
MEMBERSHIP_TEMPER = 0.2  # how far the odds of membership are trusted: chosen on validation identities (docs/search.md)
LEAST_PROBABILITY = 0.01  # that two clusters are one, to be worth telling

Numbers = NDArray[np.int64]
Probabilities = NDArray[np.float64]


class Alike(NamedTuple):
    """Two clusters that may show one identity.

    Args:
        first: The number of the one.
        second: The number of the other, which is higher.
        probability: That they show one identity.
    """

    first: int
    second: int
    probability: float


@final
@dataclass(frozen=True, eq=False)
class Clusters:
    """Which of n items show one identity.

    Args:
        ids: The n ids.
        numbers: The cluster of each item, `(n,)`, from 0, the largest first.
        probability: That the item belongs to its cluster, `(n,)`; of an item alone, that it belongs to no other.
        elsewhere: The likeliest other cluster of each item, `(n,)`; −1 where none is near.
        elsewhere_probability: That the item belongs there, `(n,)`.
        alike: Clusters that may be one, the likeliest first.
        base_rate: The share of all pairs that show one identity, as given or as the items tell.
    """

    ids: list[str]
    numbers: Numbers
    probability: Probabilities
    elsewhere: Numbers
    elsewhere_probability: Probabilities
    alike: list[Alike]
    base_rate: float

    def __len__(self) -> int:
        """How many clusters there are, those of one item included."""
        return int(self.numbers.max()) + 1

    @property
    def sizes(self) -> Numbers:
        """How many items each cluster has, `(len(self),)`."""
        return np.bincount(self.numbers)


@torch.no_grad()
def find_clusters(
    z: Distribution,
    model: MatchModel,
    base_rate: float | None = None,
    ids: Sequence[str] | None = None,
    calibrated: LogOdds | None = None,
) -> Clusters:
    """Items that show one identity, by the log-odds of a match that identification uses.

    Clusters start with one item each. Those two are merged next whose log-odds of being one are highest,
    log π/(1 − π) + log-odds(m | A, B) with each cluster fused into one embedding, until all are below zero. Then items
    move, a few times over, to where they most likely belong.

    P(i ∈ C) = odds_C^τ / (1 + Σ odds^τ) over the clusters near item i, compared with their members without it; the 1
    stands for an identity of its own. The odds are tempered, τ = 0.2: of clusters that hold a few strangers, they are
    too sure of themselves.

    Args:
        z: n embeddings.
        model: When two of them match, where half of all pairs do.
        base_rate: π, the share of pairs that show one identity; None: as the items themselves make likeliest.
        ids: A name for each item; None: numbers from 0.
        calibrated: From the model's log-odds of a match to calibrated ones, such as `decider.calibrator.log_odds`.

    >>> from hedged import Evidence, Gaussian
    >>> z = Gaussian(torch.tensor([[1.5], [1.6], [-1.4], [1.4], [-1.6], [0.0]]), torch.full((6, 1), 0.01))
    >>> found = find_clusters(z, Evidence(), base_rate=0.3)
    >>> found.numbers.tolist(), len(found), bool((found.probability > 0.5).all())
    ([0, 0, 1, 0, 1, 2], 3, True)
    """
    names = [str(i) for i in range(len(z))] if ids is None and z.batch_shape else list(ids or ())
    _check(z, names, base_rate)
    calibrated = calibrated or (lambda logits: logits)
    rate = _likeliest_base_rate(z, model, calibrated) if base_rate is None else base_rate
    comparison = Comparison(model, calibrated, math.log(rate) - math.log1p(-rate))
    if len(z) == 1:
        nothing = np.full(1, -1)
        return Clusters(names, np.zeros(1, np.int64), np.ones(1), nothing, np.zeros(1), [], rate)
    near = best_matches(z, z, model, min(NEIGHBOURS, len(z) - 1), exclude_self=True).items.numpy()
    numbers = _settled(z, near, _numbered(Merging(z, near, comparison).run()), comparison)
    return _described(names, z, near, numbers, comparison, rate)


def read_clusters(
    store: Store, where: Filter = (), base_rate: float | None = None, calibrated: LogOdds | None = None
) -> Clusters:
    """The clusters of the rows of a store, whatever their labels.

    Args:
        store: The store.
        where: The filter that rows pass.
        base_rate: The share of pairs that show one identity; None: as the rows themselves make likeliest.
        calibrated: From the model's log-odds of a match to calibrated ones.
    """
    batches = list(store.batches(where))
    if not batches:
        raise DataError(
            f"no row of {store.name} passes, so there is nothing to cluster: add rows, or change the filter"
        )
    header = store.header
    z = header.unpack(np.concatenate([batch.packed for batch in batches]))
    ids = [row.id for batch in batches for row in batch.described]
    return find_clusters(z, header.match_model, base_rate, ids, calibrated)


def _check(z: Distribution, ids: list[str], base_rate: float | None) -> None:
    if len(z.batch_shape) != 1 or not len(z):
        raise ShapeError(f"a list of at least one embedding is clustered, got {z!r}")
    if len(ids) != len(z):
        raise ShapeError(f"got {len(ids)} ids for {len(z)} embeddings: give one for each")
    if base_rate is not None and not 0 < base_rate < 1:
        raise ValueRangeError(f"a base rate is the share of pairs that match, between 0 and 1, got {base_rate:g}")


def _likeliest_base_rate(z: Distribution, model: MatchModel, calibrated: LogOdds) -> float:
    """argmax_π Σ log(1 − π + π·LR) over pairs of items, by EM: π ← mean of P(m | pair) where a share π matches."""
    some = z.take(torch.linspace(0, len(z) - 1, min(len(z), MOST_COMPARED)).round().long())
    first, second = np.triu_indices(len(some), 1)
    ratios = np.asarray(calibrated(model.matrix(some, some).double().numpy()[first, second]))
    least, rate = 1 / (len(ratios) + 2), 0.1
    for _ in range(MOST_STEPS):
        shift = math.log(rate) - math.log1p(-rate)
        before, rate = rate, float(np.clip(expit(ratios + shift).mean(), least, 1 - least)) if len(ratios) else 0.5
        if abs(math.log(rate / before)) < 1e-3:
            break
    return rate


def _numbered(groups: Numbers) -> Numbers:
    """Groups by number, from 0: the largest first, among equals the one whose first item comes first."""
    _, first, group, sizes = np.unique(groups, return_index=True, return_inverse=True, return_counts=True)
    places = np.empty(len(sizes), np.int64)
    places[np.lexsort((first, -sizes))] = np.arange(len(sizes))
    return places[group.reshape(-1)]


class _Membership(NamedTuple):
    """Log-odds that n items belong to clusters: their own, without them, `(n,)`, and others that are near, `(n, m)`.

    Log-odds of −∞ stand for no cluster: an item alone, or a place in `others` whose number is −1.
    """

    own: Probabilities
    others: Probabilities
    numbers: Numbers

    @property
    def best(self) -> tuple[Numbers, Probabilities]:
        """The likeliest other cluster of each item, −1 for none, and its log-odds, `(n,)` each."""
        rows, best = np.arange(len(self.own)), self.others.argmax(1)
        return self.numbers[rows, best], self.others[rows, best]

    @property
    def total(self) -> Probabilities:
        """log(1 + Σ odds), `(n,)`."""
        nobody = np.zeros(len(self.own))
        return np.asarray(np.logaddexp.reduce(np.column_stack([nobody, self.own, self.others]), axis=1))


def _membership(z: Distribution, near: Numbers, numbers: Numbers, comparison: Comparison) -> _Membership:
    model = comparison.model
    singles, templates = model.fuse(z, torch.arange(len(z))), model.fuse(z, torch.from_numpy(numbers))
    chosen = without_repeats(np.where(numbers[near] == numbers[:, None], -1, numbers[near]))
    chosen = -np.sort(-chosen, axis=1)[:, : max(int((chosen >= 0).sum(1).max()), 1)]
    others = comparison.log_odds(model.chosen_logits(singles, templates, torch.from_numpy(chosen)))
    return _Membership(_own_log_odds(z, singles, numbers, comparison), np.where(chosen < 0, -np.inf, others), chosen)


def _settled(z: Distribution, near: Numbers, numbers: Numbers, comparison: Comparison) -> Numbers:
    """Clusters in which each item is where it most likely belongs: some move, a few times over."""
    for _ in range(MOST_SWEEPS):
        found = _membership(z, near, numbers, comparison)
        best, elsewhere = found.best
        stays = found.own >= np.maximum(elsewhere, 0)
        leaves = ~stays & (elsewhere <= 0)
        moved = np.where(stays, numbers, best)
        moved[leaves] = numbers.max() + 1 + np.arange(leaves.sum())
        moved = _numbered(moved)
        if np.array_equal(moved, numbers):
            break
        numbers = moved
    return numbers


def _described(
    ids: list[str], z: Distribution, near: Numbers, numbers: Numbers, comparison: Comparison, rate: float
) -> Clusters:
    """The clusters with all their probabilities."""
    found = _membership(z, near, numbers, comparison)
    found = _Membership(MEMBERSHIP_TEMPER * found.own, MEMBERSHIP_TEMPER * found.others, found.numbers)
    best, elsewhere = found.best
    is_alone = np.bincount(numbers)[numbers] == 1
    return Clusters(
        ids,
        numbers,
        np.exp(np.where(is_alone, 0.0, found.own) - found.total),
        np.where(np.isfinite(elsewhere), best, -1),
        np.exp(elsewhere - found.total),
        _alike(z, numbers, found.numbers, comparison),
        rate,
    )


def _own_log_odds(z: Distribution, singles: Distribution, numbers: Numbers, comparison: Comparison) -> Probabilities:
    """Log-odds of each item and the rest of its cluster, `(n,)`; −∞ for an item alone.

    A cluster has ten folds, or as many as members; the rest are the members of all other folds.
    """
    found = np.full(len(z), -np.inf)
    order = np.argsort(numbers, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1):
        if len(members) == 1:
            continue
        folds = np.arange(len(members)) % min(len(members), FOLDS)
        fold, row = np.nonzero(folds[None, :] != np.arange(folds.max() + 1)[:, None])
        rests = comparison.model.fuse(z.take(torch.from_numpy(members[row])), torch.from_numpy(fold))
        logits = comparison.model.logit(singles.take(torch.from_numpy(members)), rests.take(torch.from_numpy(folds)))
        found[members] = comparison.log_odds(logits)
    return found


def _alike(z: Distribution, numbers: Numbers, near: Numbers, comparison: Comparison) -> list[Alike]:
    """Pairs of clusters that may be one, the likeliest first; `near` are the clusters near each item, `(n, m)`."""
    templates = comparison.model.fuse(z, torch.from_numpy(numbers))
    first, second = np.repeat(numbers, near.shape[1]), near.reshape(-1)
    pairs = np.unique(np.sort(np.stack([first, second])[:, second >= 0], axis=0), axis=1)
    if not pairs.shape[1]:
        return []
    probes, chosen = templates.take(torch.from_numpy(pairs[0])), torch.from_numpy(pairs[1])
    p = expit(comparison.log_odds(comparison.model.chosen_logits(probes, templates, chosen[:, None])[:, 0]))
    order = [i for i in np.argsort(-p, kind="stable").tolist() if p[i] >= LEAST_PROBABILITY]
    return [Alike(int(pairs[0, i]), int(pairs[1, i]), float(p[i])) for i in order]
