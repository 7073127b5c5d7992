"""Which items show one identity? Clusters are merged, the likeliest first, while it is likelier that they are one.

Two clusters are compared as `Identifier` compares a probe and an identity: each is one embedding, in the match model's
own way (`MatchModel.fuse`), and the log-odds of the two are those of a match. Only clusters that hold near neighbours
are compared, so memory grows with the number of items, not with its square.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hedged.distributions import Distribution
from hedged.match import MatchModel
from hedged.search.identify import LogOdds

Places = NDArray[np.int64]
Logits = NDArray[np.float64]


class Comparison(NamedTuple):
    """Log-odds that two templates show one identity, calibrated and with the prior.

    Args:
        model: When two embeddings match.
        calibrated: From the model's log-odds, where half of all pairs match, to calibrated ones.
        prior: Log-odds that two show one identity, before anything is seen of them.
    """

    model: MatchModel
    calibrated: LogOdds
    prior: float

    def log_odds(self, logits: Tensor) -> Logits:
        """The log-odds that count, from those of the model.

        Args:
            logits: Of any shape.
        """
        return np.asarray(self.calibrated(logits.double().numpy()), dtype=np.float64) + self.prior


@final
class Merging:
    """Clusters that grow, from one of each item, by merging the two that are likeliest one identity.

    Args:
        z: n embeddings.
        neighbours: For each item the places of others that it may be merged with, `(n, k)`.
        comparison: When two templates show one identity.
    """

    def __init__(self, z: Distribution, neighbours: Places, comparison: Comparison) -> None:
        self._z, self._comparison = z, comparison
        count = len(z)
        fused = comparison.model.fuse(z, torch.arange(count))
        self._templates = type(fused)(*(t.clone() for t in fused.tensors))  # of the cluster that has this place
        self._members = [[i] for i in range(count)]
        self._versions = [0] * count  # how often the cluster of this place has changed
        self._links: list[set[int]] = [set() for _ in range(count)]
        for i, others in enumerate(neighbours.tolist()):
            for j in others:
                self._links[i].add(j)
                self._links[j].add(i)
        self._queue: list[tuple[float, int, int, int, int]] = []

    def run(self) -> Places:
        """Merge until no two clusters are likelier one than two: the first item of the cluster of each, `(n,)`."""
        for i in range(len(self._members)):
            self._compare(i, [j for j in self._links[i] if j < i])
        while self._queue:
            _, a, a_version, b, b_version = heapq.heappop(self._queue)
            if (self._versions[a], self._versions[b]) == (a_version, b_version):
                self._merge(a, b)
        found = np.empty(len(self._members), np.int64)
        for members in self._members:
            found[members] = min(members, default=0)
        return found

    def _merge(self, a: int, b: int) -> None:
        """Cluster b becomes a part of cluster a."""
        if len(self._links[a]) < len(self._links[b]):
            a, b = b, a
        self._members[a] += self._members[b]
        self._members[b] = []
        self._versions[a] += 1
        self._versions[b] += 1
        members = torch.tensor(self._members[a])
        fused = self._comparison.model.fuse(self._z.take(members), torch.zeros(len(members), dtype=torch.int64))
        for all_of_them, one in zip(self._templates.tensors, fused.tensors, strict=True):
            all_of_them[a] = one[0]
        for j in self._links[b]:
            self._links[j].discard(b)
            self._links[j].add(a)
        self._links[a] |= self._links[b]
        self._links[a] -= {a, b}
        self._links[b] = set()
        self._compare(a, list(self._links[a]))

    def _compare(self, a: int, others: list[int]) -> None:
        """Queue those of the others that are likelier one with a than not."""
        if not others:
            return
        templates = self._templates
        logits = self._comparison.model.logit(templates[a : a + 1], templates.take(torch.tensor(others)))
        log_odds = self._comparison.log_odds(logits)
        for j, gain in zip(others, log_odds.tolist(), strict=True):
            if gain > 0:
                heapq.heappush(self._queue, (-gain, a, self._versions[a], j, self._versions[j]))
