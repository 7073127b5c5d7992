"""Who is it? A probe against a gallery of identities with several images each; "none of these" is an answer too."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
import torch
from scipy.special import expit, logsumexp
from torch import Tensor

from hedged.distributions import Distribution
from hedged.errors import DataError, ShapeError, ValueRangeError
from hedged.match import MatchModel, self_mismatch
from hedged.search.fusion import Fusion, ProductFusion
from hedged.search.store import Store
from hedged.search.unknowns import Scores, learn
from hedged.search.where import Filter

LogOdds = Callable[[Any], Any]  # from a model's log-odds of a match to calibrated ones
CHUNK = 256  # probes at a time


class Gallery(NamedTuple):
    """Identities by name, images of them, and whose each image is, `(M,)` in 0 … G − 1."""

    labels: list[str]
    images: Distribution
    owner: Tensor
    match_model: MatchModel

    @classmethod
    def read(cls, store: Store, where: Filter = ()) -> Gallery:
        """The rows of a store that have a label."""
        batches = list(store.batches(where))
        named = [row.label for batch in batches for row in batch.described]
        rows = [i for i, label in enumerate(named) if label is not None]
        if not rows:
            raise DataError(
                f"no row of {store.name} that passes has a label, so there is nobody to identify: add images with "
                "labels (`hedged index build --folder-labels`, or a table with --metadata)"
            )
        labels = sorted({label for label in named if label is not None})
        places = {label: i for i, label in enumerate(labels)}
        packed = np.concatenate([batch.packed for batch in batches])[rows]
        owner = torch.tensor([places[named[i] or ""] for i in rows])
        return cls(labels, store.header.unpack(packed), owner, store.header.match_model)


class Identity(NamedTuple):
    """One of those that a probe may be of: how probable it is, the log-odds that the probe matches it, its images."""

    label: str
    probability: float
    logit: float
    images: int


@dataclass(frozen=True)
class Identified:
    """Who a probe is of: the most probable answer, `label` None if that is "none of these".

    The probabilities of all identities of the gallery and `none_probability` add up to one; `best` has the first few.
    """

    label: str | None
    probability: float
    none_probability: float
    uncertainty: float  # η of the probe
    best: list[Identity]


@final
class Identifier:
    """Tells of which identity of a gallery a probe is, or that it is of none.

    P(none | x) is learnt from the gallery (hedged.search.unknowns), with `none_prior` the share of probes that are of
    nobody there. The rest is shared among the identities in proportion to their odds of a match. Where the gallery is
    too small to learn from, the odds do it alone: P(none) = u / (u + (1 − u)/G · Σ_j odds_j).
    """

    def __init__(
        self,
        gallery: Gallery,
        fusion: Fusion | None = None,
        none_prior: float = 0.1,
        calibrated: LogOdds | None = None,
    ) -> None:
        if not 0 < none_prior < 1:
            raise ValueRangeError(f"the share of probes of nobody in the gallery lies in (0, 1), got {none_prior}")
        self._gallery, self._fusion = gallery, fusion or ProductFusion()
        self._prior, self._calibrated = none_prior, calibrated or (lambda logits: logits)
        with torch.no_grad():
            self._openness = learn(gallery.images, gallery.owner, self._fusion, gallery.match_model)

    @torch.no_grad()
    def identify(self, probes: Distribution, top: int = 5) -> list[Identified]:
        """Who each of a list of probes is of, with the `top` most probable identities."""
        gallery = self._gallery
        if len(probes.batch_shape) != 1 or probes.dim != gallery.images.dim:
            raise ShapeError(f"probes are a list of embeddings in {gallery.images.dim} dimensions, got {probes!r}")
        if top < 1:
            raise ValueRangeError(f"at least one identity is told, got top={top}")
        found = []
        for start in range(0, len(probes), CHUNK):
            some = probes[start : start + CHUNK]
            logits = self._fusion.logits(some, gallery.images, gallery.owner, gallery.match_model).double().numpy()
            etas = self_mismatch(some, gallery.match_model).tolist()
            found += [self._told(row, eta, top) for row, eta in zip(logits, etas, strict=True)]
        return found

    def _told(self, logits: Scores, eta: float, top: int) -> Identified:
        """The answer for one probe, given its log-odds of matching each identity, `(G,)`."""
        odds = np.asarray(self._calibrated(logits), dtype=np.float64)
        total = float(logsumexp(odds))
        none = self._none(float(logits.max()), total)
        p = (1 - none) * np.exp(odds - total)
        order = np.lexsort((-logits, -p))[:top]
        images = self._gallery.owner.bincount().tolist()
        best = [Identity(self._gallery.labels[i], float(p[i]), float(logits[i]), images[i]) for i in order]
        if none >= best[0].probability:
            return Identified(None, none, none, eta, best)
        return Identified(best[0].label, best[0].probability, none, eta, best)

    def _none(self, score: float, total: float) -> float:
        """P(none), from the log-odds of the best identity and the log of the sum of all calibrated odds."""
        prior = math.log(self._prior) - math.log1p(-self._prior)
        if self._openness is not None:
            return float(expit(prior - self._openness.log_odds(np.array(score))))
        return float(expit(prior + math.log(len(self._gallery.labels)) - total))
