"""Which items show one identity? Clusters grow by average linkage of log-odds, as far as the odds expect to be right.

The two clusters are merged next whose pairs of items have the highest mean log-odds of a match. Only clusters that hold
near neighbours are merged, so memory grows with the number of items, not with its square.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hedged._odds import expit
from hedged.distributions import Distribution
from hedged.match import MatchModel
from hedged.search.identify import LogOdds

Places = NDArray[np.int64]
Sums = NDArray[np.float64]
MOST_AT_ONCE = 4_000_000  # pairs that are compared at a time


@final
class Comparison(NamedTuple):
    """Which items are compared, and how.

    Args:
        z: n embeddings.
        model: When two embeddings match.
        calibrated: From the model's log-odds, where half of all pairs match, to calibrated ones.
        prior: Log-odds that two items show one identity, before anything is seen of them.
    """

    z: Distribution
    model: MatchModel
    calibrated: LogOdds
    prior: float

    def sums(self, items: Places, groups: Sequence[Places]) -> tuple[Sums, Sums]:
        """Log-odds of each item's pairs with a group, where half of all match, and their probabilities, summed up.

        Args:
            items: Places of m items.
            groups: Places of the items of G groups, none empty.

        Returns:
            Both `(m, G)`.
        """
        others = np.concatenate(groups)
        starts = np.cumsum([0, *map(len, groups[:-1])])
        rows = max(MOST_AT_ONCE // len(others), 1)
        parts = [self._pairs(items[k : k + rows], others, starts) for k in range(0, len(items), rows)]
        return np.concatenate([odds for odds, _ in parts]), np.concatenate([matches for _, matches in parts])

    def with_neighbours(self, neighbours: Places) -> tuple[Sums, Sums]:
        """Log-odds of each item and its neighbours, where half of all pairs match, and their probabilities.

        Args:
            neighbours: Places of k items for each of n, `(n, k)`.

        Returns:
            Both `(n, k)`.
        """
        return self._both(self.model.chosen_logits(self.z, self.z, torch.from_numpy(neighbours)))

    def with_itself(self, items: Places) -> Sums:
        """The probability of each item's pair with itself, `(m,)`.

        Args:
            items: Places of m items.
        """
        z = self.z.take(torch.from_numpy(items))
        return self._both(self.model.logit(z, z))[1]

    def _pairs(self, items: Places, others: Places, starts: Places) -> tuple[Sums, Sums]:
        z1, z2 = self.z.take(torch.from_numpy(items)), self.z.take(torch.from_numpy(others))
        log_odds, matches = self._both(self.model.matrix(z1, z2))
        return np.add.reduceat(log_odds, starts, axis=1), np.add.reduceat(matches, starts, axis=1)

    def _both(self, logits: Tensor) -> tuple[Sums, Sums]:
        log_odds = np.asarray(self.calibrated(logits.double().numpy()), dtype=np.float64)
        return log_odds, expit(log_odds + self.prior)


class _Link(NamedTuple):
    """What all pairs of items of two clusters sum up to."""

    log_odds: float
    matches: float

    def with_(self, other: _Link) -> _Link:
        return _Link(self.log_odds + other.log_odds, self.matches + other.matches)


@final
class Merging:
    """Clusters that grow, from one of each item, by merging the two whose pairs have the highest mean log-odds.

    Of all partitions on the way, that one is taken which has the highest F1 of pairs, as the probabilities expect it.
    Each item is together with itself, so where nothing matches all stay alone.

    Args:
        comparison: Of n items.
        neighbours: For each item the places of others that it may be merged with, `(n, k)`.
        matching: How many of all pairs match.
    """

    def __init__(self, comparison: Comparison, neighbours: Places, matching: float) -> None:
        self._comparison, self._matching = comparison, matching
        self._members: list[Places] = [np.array([i]) for i in range(len(neighbours))]
        self._versions = [0] * len(neighbours)  # how often the cluster of this place has changed
        self._links: list[dict[int, _Link]] = [{} for _ in neighbours]
        self._queue: list[tuple[float, int, int, int, int]] = []
        self._link_items(neighbours)

    def run(self) -> Places:
        """The first item of the cluster of each, `(n,)`."""
        merged: list[tuple[int, int]] = []
        count = len(self._members)
        together, expected, best, taken = 0, 0.0, count / (count + self._matching), 0
        while self._queue:
            _, a, a_version, b, b_version = heapq.heappop(self._queue)
            if (self._versions[a], self._versions[b]) != (a_version, b_version):
                continue
            merged.append((int(self._members[a][0]), int(self._members[b][0])))
            together += len(self._members[a]) * len(self._members[b])
            expected += self._links[a][b].matches
            self._merge(a, b)
            f1 = (count + 2 * expected) / (count + together + self._matching)
            if f1 > best:
                best, taken = f1, len(merged)
        return _united(count, merged[:taken])

    def _link_items(self, neighbours: Places) -> None:
        log_odds, matches = self._comparison.with_neighbours(neighbours)
        for i, others in enumerate(neighbours.tolist()):
            for k, j in enumerate(others):
                if j not in self._links[i]:
                    self._link(i, j, _Link(float(log_odds[i, k]), float(matches[i, k])))

    def _merge(self, a: int, b: int) -> None:
        """Cluster b becomes a part of cluster a."""
        links = [{j: link for j, link in self._links[k].items() if j not in (a, b)} for k in (a, b)]
        both = links[0].keys() | links[1].keys()
        whole = [each | self._compared(k, both - each.keys()) for k, each in zip((a, b), links, strict=True)]
        for k in (a, b):
            for j in self._links[k]:
                del self._links[j][k]
            self._links[k] = {}
            self._versions[k] += 1
        self._members[a] = np.concatenate([self._members[a], self._members[b]])
        self._members[b] = np.empty(0, np.int64)
        for j in both:
            self._link(a, j, whole[0][j].with_(whole[1][j]))

    def _compared(self, a: int, others: set[int]) -> dict[int, _Link]:
        """Links of cluster a with others that it had none with."""
        if not others:
            return {}
        chosen = sorted(others)
        sums = self._comparison.sums(self._members[a], [self._members[j] for j in chosen])
        log_odds, matches = (each.sum(0).tolist() for each in sums)
        return {j: _Link(*both) for j, *both in zip(chosen, log_odds, matches, strict=True)}

    def _link(self, a: int, b: int, link: _Link) -> None:
        """Link two clusters, and queue them if their pairs rather match than not."""
        self._links[a][b] = self._links[b][a] = link
        mean = link.log_odds / (len(self._members[a]) * len(self._members[b]))
        if mean > 0:
            heapq.heappush(self._queue, (-mean, a, self._versions[a], b, self._versions[b]))


def _united(count: int, merged: list[tuple[int, int]]) -> Places:
    """The first item of each item's group, after pairs of items were put into one group each, in order."""
    first = np.arange(count)

    def of(i: int) -> int:
        while first[i] != i:
            first[i] = first[first[i]]
            i = int(first[i])
        return i

    for pair in merged:
        i, j = sorted(map(of, pair))
        first[j] = i
    return np.array([of(i) for i in range(count)])
