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
from hedged.search.merging import Comparison, Merging
from hedged.search.rows import Filter
from hedged.search.store import Store

NEIGHBOURS = 30  # of each item, that it may be merged with
MOST_COMPARED = 3000  # items whose pairs tell how many pairs match
MOST_STEPS = 200  # of EM
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
        probability: That the item shows whom the others of its cluster show, `(n,)`; of an item alone, that it belongs
            to no other.
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

    Clusters start with one item each. Those two are merged next whose pairs of items have the highest mean log-odds of
    a match, while it is above zero. Of all partitions on the way, the one with the highest expected F1 of pairs is
    taken, p with the base rate, each item and itself a pair: (n + 2 Σ p) / (n + pairs together + matching pairs), the
    sum over pairs that are together.

    The probability that an item belongs to a cluster is the mean p of its pairs with the others in it: the share of
    them that shows whom it shows.

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
    if len(z) == 1:
        nothing = np.full(1, -1)
        return Clusters(names, np.zeros(1, np.int64), np.ones(1), nothing, np.zeros(1), [], rate)
    near = best_matches(z, z, model, min(NEIGHBOURS, len(z) - 1), exclude_self=True).items.numpy()
    comparison = Comparison(z, model, calibrated, math.log(rate) - math.log1p(-rate))
    numbers = _numbered(Merging(comparison, near, rate * len(z) * (len(z) - 1) / 2).run())
    return _described(names, near, numbers, comparison, rate)


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


def _described(ids: list[str], near: Numbers, numbers: Numbers, comparison: Comparison, rate: float) -> Clusters:
    """The clusters with all their probabilities."""
    count = len(numbers)
    members = np.split(np.argsort(numbers, kind="stable"), np.cumsum(np.bincount(numbers))[:-1])
    own, elsewhere, best = np.zeros(count), np.full(count, -1), np.zeros(count)
    alike: dict[tuple[int, int], float] = {}
    for k, items in enumerate(members):
        others = np.setdiff1d(numbers[near[items]], [k])
        groups = [items, *(members[j] for j in others.tolist())]
        sizes = np.array([max(len(items) - 1, 1), *map(len, groups[1:])])
        matches = comparison.sums(items, groups)[1]
        matches[:, 0] -= comparison.with_itself(items)
        means = np.clip(matches / sizes, 0, 1)
        if len(others):
            elsewhere[items], best[items] = others[means[:, 1:].argmax(1)], means[:, 1:].max(1)
        own[items] = means[:, 0] if len(items) > 1 else 1 - best[items]
        alike |= {
            (min(k, j), max(k, j)): p for j, p in zip(others.tolist(), means[:, 1:].mean(0).tolist(), strict=True)
        }
    likely = sorted((Alike(*pair, p) for pair, p in alike.items() if p >= LEAST_PROBABILITY), key=_likeliest_first)
    return Clusters(ids, numbers, own, elsewhere, best, likely, rate)


def _likeliest_first(pair: Alike) -> tuple[float, int, int]:
    return -pair.probability, pair.first, pair.second
