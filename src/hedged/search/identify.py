"""Who is it? A probe against a gallery of identities with several images each; "none of these" is an answer too."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np
import torch
from torch import Tensor

from hedged._odds import expit
from hedged.decisions import CandidateRule, Decider, Verdict
from hedged.distributions import Distribution
from hedged.errors import DataError, ShapeError, ValueRangeError
from hedged.match import MatchModel, self_mismatch
from hedged.search.fusion import Fusion, ProductFusion
from hedged.search.rows import Filter
from hedged.search.store import Store
from hedged.search.trials import hold_out
from hedged.search.unknowns import Scores, learn

LogOdds = Callable[[Any], Any]  # from a model's log-odds of a match to calibrated ones
PROBES_PER_CHUNK = 256
LIKELY = 0.5  # an identity is accepted from this probability on


class Identities(NamedTuple):
    """Identities of several images each.

    Args:
        labels: The G names.
        images: M embeddings.
        owner: Whose each of them is, int64 `(M,)` in 0 … G − 1.
        match_model: When two embeddings match.
    """

    labels: list[str]
    images: Distribution
    owner: Tensor
    match_model: MatchModel

    @classmethod
    def read(cls, store: Store, where: Filter = ()) -> Identities:
        """The rows of a store that have a label.

        Args:
            store: The store.
            where: The filter that rows pass.
        """
        batches = list(store.batches(where))
        named = [row.label for batch in batches for row in batch.described]
        rows = [i for i, label in enumerate(named) if label is not None]
        if not rows:
            which = f"no row of {store.name} that passes the filter" if where else f"no row of {store.name}"
            raise DataError(
                f"{which} has a label, so there is nobody to identify: add images with "
                "labels (`hedged index build --folder-labels`, or a table with --metadata)"
            )
        labels = sorted({label for label in named if label is not None})
        places = {label: i for i, label in enumerate(labels)}
        packed = np.concatenate([batch.packed for batch in batches])[rows]
        owner = torch.tensor([places[named[i] or ""] for i in rows])
        return cls(labels, store.header.unpack(packed), owner, store.header.match_model)


class Identity(NamedTuple):
    """One that a probe may show.

    Args:
        label: Its name.
        probability: That the probe shows it.
        logit: The log-odds that the probe matches its images.
        images: How many images of it there are.
    """

    label: str
    probability: float
    logit: float
    images: int


class CandidateSet(NamedTuple):
    """A set that holds the right answer with a promised probability; it may be empty.

    Args:
        labels: The identities in it, the most probable first.
        nobody: Whether "none of these" is in it.
        coverage: What was promised.
    """

    labels: list[str]
    nobody: bool
    coverage: float


@final
@dataclass(frozen=True)
class Identified:
    """Who a probe shows.

    Args:
        label: The most probable identity; None if that is "none of these".
        probability: Of this answer.
        none_probability: Of "none of these"; with those of all identities it adds up to one.
        uncertainty: η of the probe.
        best: The most probable identities, best first.
        candidates: A set that holds the right answer with the coverage that was asked for, if one was.
        novelty: How unlike its training inputs the model finds the probe; None if that is not known.
    """

    label: str | None
    probability: float
    none_probability: float
    uncertainty: float
    best: list[Identity]
    candidates: CandidateSet | None = None
    novelty: float | None = None

    def verdict(self, decider: Decider) -> Verdict:
        """What to do about the best identity, by thresholds for pairs.

        It is accepted only if it is also more likely than all others and nobody together: where many identities pass a
        threshold for pairs, the best of them has done no more than that.

        Args:
            decider: The calibration.
        """
        found = decider.answer(self.best[0].logit).verdict
        is_clear = self.label is not None and self.probability >= LIKELY
        return Verdict.ABSTAIN if found is Verdict.ACCEPT and not is_clear else found


@final
class Identifier:
    """Finds which of several identities a probe shows, or that it shows none of them.

    P(none | x) is learned from the identities' own images (hedged.search.unknowns). The rest is divided among the
    identities in proportion to their odds of a match. Where there are too few images to learn from, the odds decide
    alone: P(none) = u / (u + (1 − u)/G · Σ_j odds_j) with u = `none_prior`.

    Args:
        identities: Whom a probe may show, such as `Identities.read(store)`.
        fusion: How the images of an identity are taken together; None: as a product.
        none_prior: The share of probes that show none of them.
        calibrated: From the model's log-odds of a match to calibrated ones, such as `decider.calibrator.log_odds`.
        coverage: The share of candidate sets that shall hold the right answer, such as 0.95; None: no sets. It takes
            ⌈1/(1 − coverage)⌉ − 1 identities of several images each, or is refused.
    """

    def __init__(
        self,
        identities: Identities,
        fusion: Fusion | None = None,
        none_prior: float = 0.1,
        calibrated: LogOdds | None = None,
        coverage: float | None = None,
    ) -> None:
        _check_prior(none_prior)
        self._prior = none_prior
        self._learned = _Learned(identities, fusion or ProductFusion(), calibrated or (lambda logits: logits))
        self._rule = None if coverage is None else self._candidate_rule(coverage)

    def asked_for(self, none_prior: float, coverage: float | None = None) -> Identifier:
        """The same with other settings, in a moment: what was learned from the images is not learned again.

        Args:
            none_prior: The share of probes that show none of them.
            coverage: The share of candidate sets that shall hold the right answer; None: no sets.
        """
        _check_prior(none_prior)
        found = copy(self)
        found._prior = none_prior
        found._rule = None if coverage is None else found._candidate_rule(coverage)
        return found

    @property
    def rule(self) -> CandidateRule | None:
        """Who stays a candidate, if a coverage was asked for."""
        return self._rule

    @torch.no_grad()
    def identify(self, probes: Distribution, top: int = 5) -> list[Identified]:
        """Who each of a list of probes shows.

        Args:
            probes: N embeddings.
            top: How many of the most probable identities each answer lists.
        """
        known = self._learned.identities
        if len(probes.batch_shape) != 1 or probes.dim != known.images.dim:
            raise ShapeError(f"probes must be a list of embeddings in {known.images.dim} dimensions, got {probes!r}")
        if top < 1:
            raise ValueRangeError(f"top must be at least 1, got {top}")
        found = []
        for start in range(0, len(probes), PROBES_PER_CHUNK):
            some = probes[start : start + PROBES_PER_CHUNK]
            logits = self._learned.logits(some).double().numpy()
            etas = self_mismatch(some, known.match_model).tolist()
            found += [self._answer(row, eta, top) for row, eta in zip(logits, etas, strict=True)]
        return found

    def posteriors(self, logits: Scores) -> tuple[Scores, Scores]:
        """P(j | x) of G identities, `(N, G)`, and P(none | x), `(N,)`, of N probes.

        Args:
            logits: Log-odds that each probe matches each identity, `(N, G)`.
        """
        seen, shares = self._learned.seen(logits)
        none = self._none(seen)
        p: Scores = (1 - none)[:, None] * shares
        return p, none

    def _candidate_rule(self, coverage: float) -> CandidateRule:
        """Learned from the gallery: one image of each identity, once as somebody known and once as a stranger."""
        tried = self._learned.tried
        return CandidateRule.find((1 - self._none(tried.known)) * tried.right, self._none(tried.strangers), coverage)

    def _answer(self, logits: Scores, eta: float, top: int) -> Identified:
        """The answer for one probe, given its log-odds of matching each identity, `(G,)`."""
        labels = self._learned.identities.labels
        each, nobody = self.posteriors(logits[None])
        p, none = each[0], float(nobody[0])
        order = np.lexsort((-logits, -p))
        best = [Identity(labels[i], float(p[i]), float(logits[i]), self._learned.images[i]) for i in order[:top]]
        candidates = None
        if self._rule is not None:
            kept = [labels[i] for i in order[self._rule.kept(p[order])]]
            candidates = CandidateSet(kept, self._rule.keeps_nobody(none), self._rule.coverage)
        if none >= best[0].probability:
            return Identified(None, none, none, eta, best, candidates)
        return Identified(best[0].label, best[0].probability, none, eta, best, candidates)

    def _none(self, seen: _Seen) -> Scores:
        """P(none), `(N,)`, of N probes."""
        prior = math.log(self._prior) - math.log1p(-self._prior)
        if self._learned.openness is not None:
            none: Scores = expit(prior - self._learned.openness.log_odds(seen.best))
        else:
            none = expit(prior + math.log(len(self._learned.identities.labels)) - seen.total)
        return none


class _Seen(NamedTuple):
    """What P(none) of N probes depends on.

    Args:
        best: The log-odds of the best identity, `(N,)`.
        total: The log of the sum of all calibrated odds, `(N,)`.
    """

    best: Scores
    total: Scores


class _Tried(NamedTuple):
    """Images of the identities themselves as probes.

    Args:
        right: Of those whose identity has others: the share of its odds in all.
        known: The same ones.
        strangers: All of them, with their identities left out.
    """

    right: Scores
    known: _Seen
    strangers: _Seen


@final
class _Learned:
    """What takes long to learn of identities, whatever is then asked for."""

    def __init__(self, identities: Identities, fusion: Fusion, calibrated: LogOdds) -> None:
        self.identities, self._fusion, self._calibrated = identities, fusion, calibrated
        with torch.no_grad():
            known = identities.images, identities.owner
            self.openness = learn(*known, fusion, identities.match_model)
            self.logits = fusion.against(*known, identities.match_model)
        self.images = identities.owner.bincount().tolist()

    def seen(self, logits: Scores) -> tuple[_Seen, Scores]:
        """What N probes show, and the share of each identity in the odds of all, `(N, G)`."""
        odds = np.asarray(self._calibrated(logits), dtype=np.float64)
        total = np.logaddexp.reduce(odds, axis=1)
        shares: Scores = np.exp(odds - total[:, None])
        return _Seen(logits.max(axis=1), total), shares

    @cached_property
    def tried(self) -> _Tried:
        """One image of each identity, tried once as somebody known and once as a stranger."""
        known = self.identities
        tried = hold_out(known.images, known.owner, self._fusion, known.match_model)
        rows = np.flatnonzero(tried.has_others)
        seen, shares = self.seen(tried.known[rows])
        return _Tried(shares[np.arange(len(rows)), tried.owner[rows]], seen, self.seen(tried.strangers)[0])


def _check_prior(none_prior: float) -> None:
    if not 0 < none_prior < 1:
        raise ValueRangeError(
            f"none_prior, the share of probes that show nobody in the gallery, must lie in (0, 1), got {none_prior}"
        )
