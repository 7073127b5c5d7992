"""Search by match probability, the same for every store, in two stages.

First stage: candidates by the distance of their means, which any engine of plain vectors can find, or by the match
model's `nearness`. Second stage: the match probability of each candidate, in double precision, and their order by it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from hedged._odds import expit
from hedged.errors import ConfigError, ShapeError, ValueRangeError
from hedged.search.rows import Filter, Header, Keys, Packed, pack, stored_novelty
from hedged.search.store import Store

if TYPE_CHECKING:
    from hedged.distributions import Distribution

CANDIDATES = 1000  # of a first stage by means: recall@10 of 0.993 in a million (docs/search.md)
CANDIDATES_BY_NEARNESS = 100  # of one by nearness: recall@10 of 0.999
CANDIDATES_PER_MATCH = 10  # of those asked for, if that is more
EF_SEARCH = 200  # how far a search in a graph looks around by default
MAX_LINKS = 1024  # of a vector in a graph: it has as many neighbours, and they take memory
MAX_EF = 2**31 - 1  # what the engines can count to

Kind = Literal["exact", "hnsw", "ivf"]
Means = NDArray[np.float32]
Logits = NDArray[np.float64]
Etas = NDArray[np.float64]
Places = NDArray[np.int64]  # of rows among the candidates; −1 for none


@final
@dataclass(frozen=True)
class Plan:
    """How the first stage finds candidates.

    Args:
        kind: `exact` looks at all means; a graph (`hnsw`) or lists (`ivf`) look at some, which is faster and misses
            some.
        links: Of a graph, for each vector.
        ef_construction: How far a graph looks around for them.
        lists_searched: How many of the lists are searched for each probe.
    """

    kind: Kind = "exact"
    links: int = 32
    ef_construction: int = 80
    lists_searched: int = 16

    def __post_init__(self) -> None:
        if self.kind not in ("exact", "hnsw", "ivf"):
            raise ConfigError(f"there is no first stage {self.kind!r}: choose exact, hnsw or ivf")
        for name, most in (("links", MAX_LINKS), ("ef_construction", MAX_EF), ("lists_searched", MAX_EF)):
            value = getattr(self, name)
            if not isinstance(value, int) or not 1 <= value <= most:
                raise ConfigError(f"{name} must be at least 1 and at most {most:,}, got {value}")


@final
@dataclass(frozen=True)
class Hit:
    """A row that may match a probe, the best of them at rank 1.

    Args:
        rank: 1 for the best match, 2 for the next.
        id: Of the row.
        label: Of the row, or None.
        match_probability: p(m | probe, row).
        logit: Its log-odds, by which decisions are made.
        uncertainty: η of the row.
        probe_uncertainty: η of the probe.
        metadata: Of the row.
        key: Of the row.
        probe_novelty: How unlike its training inputs the model finds the probe; None if that is not known.
    """

    rank: int
    id: str
    label: str | None
    match_probability: float
    logit: float
    uncertainty: float
    probe_uncertainty: float
    metadata: Mapping[str, Any]
    key: int
    probe_novelty: float | None = None

    @property
    def novelty(self) -> float | None:
        """How unlike its training inputs the model found the row when it was stored; None if that is not known."""
        return stored_novelty(self.metadata)


class Candidates(NamedTuple):
    """What a first stage found for N probes: rows by key `(R,)`, their embeddings `(R, width)`, and who chose which.

    `chosen` `(N, n)` are places in the former two; −1 stands for none.
    """

    keys: Keys
    packed: Packed
    chosen: Places


class Ranking(NamedTuple):
    """The best rows of each probe, best first: places in the candidates and log-odds, `(N, k)`; −1 and −∞ for none."""

    places: Places
    logits: Logits


class Index(ABC):
    """Finds the rows of a store that match a probe best.

    A subclass is a first stage, `_candidates`, which picks rows quickly, such as by the distance of means. The rest is
    here, and the same for all: the match probability of each candidate, and their order by it.
    """

    @property
    def enough(self) -> int:
        """How many candidates a search takes if it is not told, for up to a hundred matches."""
        return CANDIDATES

    @property
    @abstractmethod
    def store(self) -> Store:
        """The store that is searched."""

    @final
    def search(
        self, probes: Distribution, k: int = 10, where: Filter = (), candidates: int | None = None
    ) -> list[list[Hit]]:
        """The k best matches of each probe, best first; fewer if no more rows pass the filter.

        Args:
            probes: N embeddings.
            k: How many matches each probe gets.
            where: The filter that rows pass.
            candidates: How many rows the first stage hands on; with as many as there are rows the result is exact.
                None: as many as its first stage needs (`enough`), or 10 for each match that is asked for if that is
                more.
        """
        import torch

        self._check(probes, k, candidates)
        count = min(max(candidates or max(self.enough, CANDIDATES_PER_MATCH * k), k), MAX_EF)  # more is all there are
        with torch.no_grad(), self.store.reading():
            self.store.check(where)
            return self._hits(probes, self._found(probes, count, k, where), k)

    def _found(self, probes: Distribution, count: int, k: int, where: Filter) -> Candidates:
        """What the first stage found; an engine that ranks by itself may leave out what is not among the k best."""
        return self._candidates(probes, count, where)

    def _hits(self, probes: Distribution, found: Candidates, k: int) -> list[list[Hit]]:
        header = self.store.header
        places, logits = rank(probes, header, found, k)
        used = np.unique(places[places >= 0])
        rows = self.store.describe(found.keys[used].tolist()) if len(used) else {}
        of_rows, own = _uncertainties_of(header, found.packed[used], pack(probes))
        eta = dict(zip(used.tolist(), of_rows, strict=True))
        p = expit(logits).tolist()
        hits: list[list[Hit]] = []
        for n, best in enumerate(places.tolist()):
            pairs = [each for each in zip(best, logits[n].tolist(), p[n], strict=True) if each[0] >= 0]
            keys = [int(found.keys[place]) for place, _, _ in pairs]
            hits.append(
                [
                    Hit(i + 1, *rows[key][:2], likely, logit, eta[place], own[n], rows[key].metadata, key)
                    for i, (key, (place, logit, likely)) in enumerate(zip(keys, pairs, strict=True))
                ]
            )
        return hits

    def _check(self, probes: Distribution, k: int, candidates: int | None) -> None:
        header = self.store.header
        if not header.fits(probes):
            raise ShapeError(
                f"{self.store.name} is searched with lists of {header.kind} embeddings in {header.dim} dimensions, "
                f"got {probes!r}: embed the probes with the model of the store"
            )
        counts = [k] if candidates is None else [k, candidates]
        if not all(isinstance(one, int | np.integer) and one >= 1 for one in counts):
            raise ValueRangeError(
                f"k and candidates must be integers, at least 1, got k={k} and candidates={candidates}"
            )

    @abstractmethod
    def keep(self) -> None:
        """Save what would take long to build again, where it can be saved."""

    @abstractmethod
    def _candidates(self, probes: Distribution, count: int, where: Filter) -> Candidates:
        """At least the `count` rows nearest to each of N probes, or all there are."""


@final
class ScanIndex(Index):
    """Search in any store by comparing every row that passes: exact, without an index, for stores that have none.

    Args:
        store: The store.
        plan: None or an `exact` plan; there are no others here.
    """

    def __init__(self, store: Store, plan: Plan | None = None) -> None:
        if plan is not None and plan.kind != "exact":
            raise ConfigError(f"{store.name} has no first stage {plan.kind}: choose exact")
        self._store = store

    @property
    def store(self) -> Store:
        return self._store

    def keep(self) -> None:
        """Nothing to do: there is nothing but the store."""

    def _candidates(self, probes: Distribution, count: int, where: Filter) -> Candidates:
        batches = list(self._store.batches(where))
        keys = np.concatenate([np.empty(0, np.int64), *(batch.keys for batch in batches)])
        nothing = np.empty((0, self._store.header.width), np.float32)
        packed = np.concatenate([nothing, *(batch.packed for batch in batches)])
        return Candidates(keys, packed, np.broadcast_to(np.arange(len(keys)), (len(probes), len(keys))))


def first_means(probes: Distribution) -> Means:
    """The means that a first stage by means looks for, `(N, C, D)`.

    Args:
        probes: N embeddings.
    """
    import torch

    means: Means = probes.parts()[0].detach().to(torch.float32).numpy()
    return means


def checked_ef_search(ef_search: int | None) -> int:
    """How far a search in a graph looks around: what was asked for, if an engine can do it, or the default.

    Args:
        ef_search: What was asked for; None: the default.

    >>> checked_ef_search(None), checked_ef_search(400)
    (200, 400)
    """
    if ef_search is not None and not 1 <= ef_search <= MAX_EF:
        raise ValueRangeError(f"ef_search must be at least 1 and at most {MAX_EF:,}, got {ef_search}")
    return EF_SEARCH if ef_search is None else ef_search


def rank(probes: Distribution, header: Header, found: Candidates, k: int) -> Ranking:
    """The k candidates of highest p(m | probe, row) for each probe; among equals the one added first.

    Args:
        probes: N embeddings.
        header: Of the store that the candidates come from.
        found: The candidates.
        k: How many to keep for each probe.
    """
    import torch

    chosen = found.chosen
    if header.components * probes.n_components > 1:
        chosen = without_repeats(chosen)
    items = header.unpack(found.packed)
    logits = header.match_model.chosen_logits(probes, items, torch.from_numpy(np.array(chosen))).numpy()
    best = _best(logits, found.keys[chosen], k)
    return Ranking(np.take_along_axis(chosen, best, axis=1), np.take_along_axis(logits, best, axis=1))


def uncertainties(header: Header, packed: Packed) -> Etas:
    """η = 1 − p(m | x, x) of packed embeddings, `(n,)`, in double precision.

    Args:
        header: Of the store that they come from.
        packed: `(n, width)`.
    """
    import torch

    eta: Etas = header.match_model.self_mismatch(header.unpack(packed).to(torch.float64)).numpy()
    return eta


def _uncertainties_of(header: Header, rows: Packed, probes: Packed) -> tuple[list[float], list[float]]:
    """η of rows and of probes: at once, unless probes are mixtures of another number of components."""
    if rows.shape[1] != probes.shape[1]:
        return uncertainties(header, rows).tolist(), uncertainties(header, probes).tolist()
    both: list[float] = uncertainties(header, np.concatenate([rows, probes])).tolist()
    return both[: len(rows)], both[len(rows) :]


def _best(logits: Logits, keys: Keys, k: int) -> Places:
    """Columns of the k highest of each row, the lower key first among equals."""
    if logits.shape[1] > 4 * k:  # sorting is slow: first leave out what is below the k-th
        least = -np.partition(-logits, k - 1, axis=1)[:, k - 1 : k]
        kept = [np.flatnonzero(row) for row in logits >= least]
        best = [one[np.lexsort((keys[i, one], -logits[i, one]))[:k]] for i, one in enumerate(kept)]
    else:
        best = [np.lexsort((keys[i], -logits[i]))[:k] for i in range(len(logits))]
    return np.array(best, dtype=np.int64).reshape(len(logits), -1)


def without_repeats(chosen: Places) -> Places:
    """Each place once in a row, −1 instead of the others: a mixture is found by each of its components.

    Args:
        chosen: `(N, n)`.

    >>> without_repeats(np.array([[3, 1, 3], [-1, 2, -1]]))
    array([[ 3,  1, -1],
           [-1,  2, -1]])
    """
    order = chosen.argsort(axis=1, kind="stable")
    ordered = np.take_along_axis(chosen, order, axis=1)
    repeated = np.zeros(chosen.shape, dtype=bool)
    np.put_along_axis(repeated, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    return np.where(repeated, -1, chosen)
