"""Search by match probability, the same for every store: candidates by their means, then ranked by p."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

import numpy as np
import torch
from scipy.special import expit

from hedged.distributions import Distribution
from hedged.errors import ShapeError, ValueRangeError
from hedged.search.first_stage import Means
from hedged.search.rerank import Candidates, rank, uncertainties
from hedged.search.results import Hit
from hedged.search.rows import KINDS, pack
from hedged.search.store import Store
from hedged.search.where import Filter

CANDIDATES = 1000  # of the first stage: recall@10 of 0.993 in a million (docs/search.md)
EF_SEARCH = 200  # how far a search in a graph looks around, unless told
OF_EACH = 10  # candidates for each match that is asked for, if that is more


class Index(ABC):
    """Finds the rows of a store that match a probe best.

    A first stage, `_candidates`, picks rows by the distance of means: any engine of plain vectors can do that. The rest
    is here, and the same for all: the exact match probability of each candidate, and their order by it.
    """

    @property
    @abstractmethod
    def store(self) -> Store: ...

    @final
    @torch.no_grad()
    def search(
        self, probes: Distribution, k: int = 10, where: Filter = (), candidates: int | None = None
    ) -> list[list[Hit]]:
        """The k best matches of each probe among the rows that pass a filter, best first; fewer if there are no more.

        With as many `candidates` as rows, nothing is left to the first stage and the result is exact.
        """
        self._check(probes, k, candidates)
        count = max(candidates or max(CANDIDATES, OF_EACH * k), k)
        with self.store.reading():
            self.store.check(where)
            means = probes.parts()[0].to(torch.float32).numpy()
            found = self._candidates(means, count, where)
            return self._hits(probes, found, k)

    def _hits(self, probes: Distribution, found: Candidates, k: int) -> list[list[Hit]]:
        header = self.store.header
        places, logits = rank(probes, header, found, k)
        used = np.unique(places[places >= 0])
        told = self.store.describe(found.keys[used].tolist()) if len(used) else {}
        eta = dict(zip(used.tolist(), uncertainties(header, found.packed[used]).tolist(), strict=True))
        own = uncertainties(header, pack(probes)).tolist()
        hits: list[list[Hit]] = []
        for n, row in enumerate(places.tolist()):
            best = [(place, logit) for place, logit in zip(row, logits[n].tolist(), strict=True) if place >= 0]
            keys = [int(found.keys[place]) for place, _ in best]
            hits.append(
                [
                    Hit(i + 1, *told[key][:2], float(expit(logit)), logit, eta[place], own[n], told[key].metadata, key)
                    for i, (key, (place, logit)) in enumerate(zip(keys, best, strict=True))
                ]
            )
        return hits

    def _check(self, probes: Distribution, k: int, candidates: int | None) -> None:
        header = self.store.header
        if len(probes.batch_shape) != 1 or type(probes) is not KINDS[header.kind] or probes.dim != header.dim:
            raise ShapeError(
                f"{self.store.name} is searched with lists of {header.kind} embeddings in {header.dim} dimensions, "
                f"got {probes!r}"
            )
        if k < 1 or (candidates is not None and candidates < 1):
            raise ValueRangeError(f"k and candidates are at least 1, got k={k} and candidates={candidates}")

    @abstractmethod
    def keep(self) -> None:
        """Keep on disk what would take long to build again, where it can be kept."""

    @abstractmethod
    def _candidates(self, means: Means, count: int, where: Filter) -> Candidates:
        """At least the `count` rows nearest to each probe's means `(N, C, D)`, or all there are."""
