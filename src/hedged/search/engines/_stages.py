"""First stages of an SQLite store: the rows that a probe may match best, by means or by means and variances."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from hedged._startup import needs_loops
from hedged.search.engines._codes import Codes
from hedged.search.engines._first_stage import FirstStage
from hedged.search.index import CANDIDATES, CANDIDATES_BY_NEARNESS, Places, Plan, first_means
from hedged.search.rows import Header, Packed

if TYPE_CHECKING:
    from hedged.distributions import Distribution

TERMS = 2  # of plain torch take as long as one number of a cost in NumPy
MOST_NEW = 0.1  # of the rows, from which on codes are made anew if many lie outside


class Stage(ABC):
    """Finds rows at positions that count from 0."""

    enough: int
    """How many candidates it takes to find the best ten."""
    max_removed: float
    """The share of removed rows before it is made anew."""

    @abstractmethod
    def add(self, packed: Packed) -> None:
        """Add rows after all others.

        Args:
            packed: `(n, width)`.
        """

    def saved(self) -> FirstStage | None:
        """What is worth a place in the index file, if anything is."""
        return None

    @abstractmethod
    def nearest(
        self, probes: Distribution, packed: Packed, count: int, allowed: NDArray[np.bool_] | None, ef_search: int
    ) -> Places:
        """Positions of the rows nearest to each probe, `(N, n)`, some of them twice; −1 for none.

        Args:
            probes: N embeddings.
            packed: All rows, `(M, width)`.
            count: How many to find.
            allowed: Which rows may be found, `(M,)`; None: all.
            ef_search: How far a graph looks around.
        """


@final
class ByMeans(Stage):
    """The rows of which a component's mean is nearest to one of the probe's, by FAISS.

    Args:
        plan: How means are searched.
        header: Of the store.
        means: FAISS with the means of all rows.
    """

    enough = CANDIDATES

    def __init__(self, plan: Plan, header: Header, means: FirstStage) -> None:
        self._header, self._means = header, means
        self.max_removed = 0.0 if plan.kind == "exact" else 0.2

    def add(self, packed: Packed) -> None:
        self._means.add(self._header.means(packed))

    def saved(self) -> FirstStage:
        return self._means

    def nearest(
        self, probes: Distribution, packed: Packed, count: int, allowed: NDArray[np.bool_] | None, ef_search: int
    ) -> Places:
        components, means = self._header.components, first_means(probes)
        passing = None if allowed is None else np.repeat(allowed, components)
        found = self._means.nearest(means.reshape(-1, means.shape[-1]), count * components, passing, ef_search)
        return np.where(found >= 0, found // components, -1).reshape(len(means), -1)


@final
class ByNearness(Stage):
    """The rows of least cost by the match model's own `nearness`: means and variances, without log-odds.

    All rows are looked at: by their codes, which are made at the first search. A command that has started quickly looks
    at a few as they are, until that has taken as long as loading the loops over codes would.

    Args:
        header: Of the store.
    """

    enough, max_removed = CANDIDATES_BY_NEARNESS, 0.2

    def __init__(self, header: Header) -> None:
        self._header, self._built = header, 0
        self._codes: Codes | None = None

    def add(self, packed: Packed) -> None:
        """Nothing yet: a search takes in what was added.

        Args:
            packed: `(n, width)`.
        """

    def nearest(
        self, probes: Distribution, packed: Packed, count: int, allowed: NDArray[np.bool_] | None, ef_search: int
    ) -> Places:
        near, components = self._header.match_model.nearness(probes), self._header.components
        assert near is not None  # as `stage_for` has asked
        passing = None if allowed is None else np.repeat(allowed, components)
        if needs_loops(TERMS * near.centre.size * len(packed) * components):
            found = self._coded(packed).nearest(near, count * components, passing)
        else:
            found = _by_sorting(near.costs(*self._parts(packed)), count * components, passing)
        return np.where(found >= 0, found // components, -1)

    def _coded(self, packed: Packed) -> Codes:
        """The codes of all rows: those of new ones are added, unless so many are new that they may reach farther."""
        components, codes = self._header.components, self._codes
        grown = len(packed) - self._built
        if codes is None or grown > self._built or (grown > MOST_NEW * self._built and codes.are_outgrown):
            codes, self._built = Codes(*self._parts(packed)), len(packed)
        elif len(codes) < len(packed) * components:
            codes.add(*self._parts(packed[len(codes) // components :]))
        self._codes = codes
        return codes

    def _parts(self, packed: Packed) -> tuple[Packed, Packed]:
        """Means and variances of all components of rows, one after the other, `(n · C, D)`."""
        mean, variance = self._header.unpack(packed).parts()
        dim = self._header.dim
        return mean.reshape(-1, dim).numpy(), variance.expand_as(mean).reshape(-1, dim).numpy()


def stage_for(plan: Plan, header: Header, packed: Packed, kept: FirstStage | None = None) -> Stage:
    """The first stage of a plan with rows in it: by nearness where all rows are looked at and the match model has one.

    Args:
        plan: How candidates are found.
        header: Of the store.
        packed: The rows, `(M, width)`.
        kept: FAISS with their means, if it is there already.
    """
    like = header.unpack(np.ones((1, header.width), np.float32))
    if plan.kind == "exact" and header.match_model.nearness(like) is not None:
        return ByNearness(header)
    return ByMeans(plan, header, kept or FirstStage(plan, header.means(packed)))


def _by_sorting(costs: NDArray[np.float64], count: int, allowed: NDArray[np.bool_] | None) -> Places:
    """The `count` rows of least cost for each component of each probe, `(N, C · n)`."""
    if allowed is not None:
        costs = np.where(allowed, costs, np.inf)
    count = min(count, costs.shape[-1])
    best = np.argsort(costs, axis=-1, kind="stable")[..., :count]
    best = np.where(np.isfinite(np.take_along_axis(costs, best, axis=-1)), best, -1)
    return best.reshape(len(costs), -1)
