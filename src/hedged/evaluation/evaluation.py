"""How good a trained embedder is: the measurements of section 4 on a clean test set and its corrupt twin."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, final
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hedged.data import Dataset
from hedged.distributions import Distribution
from hedged.evaluation.conditions import CONDITIONS as CONDITIONS
from hedged.evaluation.conditions import GRID as GRID
from hedged.evaluation.conditions import Condition as Condition
from hedged.evaluation.curves import Curves
from hedged.evaluation.strangers import strangers_told
from hedged.match import MatchModel, best_matches, match_logit, self_mismatch
from hedged.metrics import (
    Pairs,
    UncertaintyCurve,
    Vote,
    ap_curve,
    average_precision,
    balanced_pairs,
    knn_correct,
    knn_curve,
    random_pairs,
    score_pairs,
    twin_order,
    uncertainty_auroc,
)
from hedged.models import Embedder, embed_all_with_novelty

Array = NDArray[np.float64]
"""Real numbers, one for each input or pair."""

P = ParamSpec("P")
R = TypeVar("R")


def match_scores(pairs: Pairs, z: Distribution, model: MatchModel) -> Array:
    """The log-odds of a match for each pair.

    Args:
        pairs: Pairs of items of z.
        z: The embeddings.
        model: What makes log-odds of two of them.
    """

    def score(i: NDArray[np.intp], j: NDArray[np.intp]) -> Array:
        with torch.no_grad():
            logits = match_logit(z[torch.from_numpy(i)], z[torch.from_numpy(j)], model)
        return logits.double().numpy()

    return score_pairs(pairs, score)


def _once(method: Callable[Concatenate[Evaluation, P], R]) -> Callable[Concatenate[Evaluation, P], R]:
    """Measure once for each choice of arguments, and remember."""
    signature = inspect.signature(method)

    @wraps(method)
    def remembered(evaluation: Evaluation, /, *args: P.args, **kwargs: P.kwargs) -> R:
        call = signature.bind(evaluation, *args, **kwargs)
        call.apply_defaults()
        key = (method.__name__, *call.args[1:])
        if key not in evaluation._measured:
            evaluation._measured[key] = method(evaluation, *args, **kwargs)
        found: R = evaluation._measured[key]
        return found

    return remembered


@final
@dataclass(frozen=True, eq=False)
class Evaluation:
    """Measurements of one embedder on one test set; each is made when first asked for, and once.

    Args:
        embedder: The model.
        data: The test set.
        seed: Draws the occlusion of the corrupt twin, and the pairs.
        neighbours_each: By how many neighbours a probe is identified.
        progress: Is called with what is about to be measured, in words.
    """

    embedder: Embedder
    data: Dataset
    seed: int = 0
    neighbours_each: int = 5
    progress: Callable[[str], None] = lambda part: None

    @cached_property
    def _measured(self) -> dict[tuple[Any, ...], Any]:
        return {}

    @cached_property
    def _scores(self) -> WeakKeyDictionary[Pairs, dict[Condition, Array]]:
        """Scores of pairs, kept as long as the pairs are."""
        return WeakKeyDictionary()

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        """The class of every input."""
        labels: NDArray[np.int64] = self.data.labels.numpy()
        return labels

    @cached_property
    def _embedded(self) -> dict[Condition, tuple[Distribution, Tensor | None]]:
        """Embeddings and, if it is known, novelty, in one pass of each condition."""
        self.progress("embedding the test set and its corrupt twin")
        clean = embed_all_with_novelty(self.embedder, self.data.clean, len(self.data))
        corrupt = embed_all_with_novelty(self.embedder, partial(self.data.corrupt, self.seed), len(self.data))
        return {"clean": clean, "corrupt": corrupt}

    @cached_property
    def embeddings(self) -> dict[Condition, Distribution]:
        """The test set as the model sees it, clean and corrupt."""
        return {c: z for c, (z, _) in self._embedded.items()}

    @cached_property
    def uncertainty(self) -> dict[Condition, Array]:
        """η(x) of every input."""
        with torch.no_grad():
            return {c: self_mismatch(z, self.embedder.match_model).double().numpy() for c, z in self.embeddings.items()}

    @cached_property
    def novelty(self) -> dict[Condition, Array] | None:
        """How unlike the training inputs each input is; None if the model does not tell it."""
        found = {c: novelty.numpy() for c, (_, novelty) in self._embedded.items() if novelty is not None}
        return found or None

    @cached_property
    def strangers_told(self) -> float | None:
        """AUROC of P(nobody), strangers against the enrolled, half of the classes each; None where they are too few."""
        return strangers_told(self.embeddings["clean"], self.labels, self.embedder.match_model, self.seed)

    def scores(self, pairs: Pairs, condition: Condition) -> Array:
        """The log-odds of a match for each pair.

        Args:
            pairs: Pairs of inputs of the test set.
            condition: That of both inputs.
        """
        known = self._scores.setdefault(pairs, {})
        if condition not in known:
            known[condition] = match_scores(pairs, self.embeddings[condition], self.embedder.match_model)
        return known[condition]

    @cached_property
    def verification_pairs(self) -> Pairs:
        """10,000 pairs, half of them matches."""
        return balanced_pairs(self.labels, seed=self.seed)

    @_once
    def verification_ap(self, condition: Condition) -> float:
        """Average precision over the `verification_pairs`.

        Args:
            condition: That of both inputs.
        """
        return average_precision(self.scores(self.verification_pairs, condition), self.verification_pairs.matches)

    @_once
    def neighbours(self, gallery: Condition, probe: Condition) -> NDArray[np.intp]:
        """The nearest of the gallery to each probe by match probability; never the probe itself or its twin.

        Args:
            gallery: The condition of the inputs that are searched.
            probe: The condition of those that are searched for.
        """
        self.progress(f"ranking the {gallery} gallery for {probe} probes")
        items, probes = self.embeddings[gallery], self.embeddings[probe]
        each = min(self.neighbours_each, len(self.data) - 1)
        nearest: NDArray[np.intp] = best_matches(
            probes, items, self.embedder.match_model, each, exclude_self=True
        ).items.numpy()
        return nearest

    @_once
    def identified(self, gallery: Condition, probe: Condition, vote: Vote = "majority") -> NDArray[np.bool_]:
        """Whether each probe is identified by its neighbours.

        Args:
            gallery: As for `neighbours`.
            probe: As for `neighbours`.
            vote: How neighbours decide: see `hedged.metrics.knn_correct`.
        """
        return knn_correct(self.neighbours(gallery, probe), self.labels, self.labels, vote)

    def knn_accuracy(self, gallery: Condition, probe: Condition = "clean", vote: Vote = "majority") -> float:
        """The share of probes that are identified.

        Args:
            gallery: As for `identified`.
            probe: As for `identified`.
            vote: As for `identified`.
        """
        return float(self.identified(gallery, probe, vote).mean())

    @_once
    def ap_curve(self, condition: Condition) -> UncertaintyCurve:
        """AP in 20 bins of the mean η of random pairs.

        Args:
            condition: That of both inputs.
        """
        return ap_curve(self.uncertainty[condition], self.some_pairs, self.scores(self.some_pairs, condition))

    @cached_property
    def some_pairs(self) -> Pairs:
        """Random pairs, 200,000 or, where classes are many, enough of them for 20 bins with some 100 matches each."""
        classes = self.data.n_classes
        return random_pairs(self.labels, 200_000 if classes <= 200 else 20 * 100 * classes, seed=self.seed)

    @_once
    def knn_curve(self, gallery: Condition, probe: Condition = "clean", vote: Vote = "majority") -> UncertaintyCurve:
        """KNN accuracy in 20 bins of the probe's η.

        Args:
            gallery: As for `identified`.
            probe: As for `identified`.
            vote: As for `identified`.
        """
        return knn_curve(self.uncertainty[probe], self.identified(gallery, probe, vote))

    def metrics(self) -> dict[str, Any]:
        """All of it in plain numbers, as `metrics.json` holds it."""
        return dict(self._measure())

    def _measure(self) -> Iterator[tuple[str, Any]]:
        model, eta = self.embedder.match_model, self.uncertainty
        self.progress("verifying pairs")
        yield "verification_ap", {c: self.verification_ap(c) for c in CONDITIONS}
        yield "knn_accuracy", {gallery: self.knn_accuracy(gallery) for gallery in CONDITIONS}
        yield "knn_plurality", {f"gallery {g}, probe {p}": self.knn_accuracy(g, p, "plurality") for g, p in GRID}
        yield "uncertainty", {c: float(eta[c].mean()) for c in CONDITIONS}
        self.progress("relating uncertainty to performance")
        curves = Curves.measure(self)
        yield "ap_correlation", {c: curves.ap_kendall(c) for c in CONDITIONS}
        yield "knn_correlation", {g: curves.knn_kendall(g) for g in CONDITIONS}
        yield "uncertainty_auroc", uncertainty_auroc(eta["clean"], eta["corrupt"])
        yield "twin_order", twin_order(eta["clean"], eta["corrupt"])
        if new := self.novelty:
            means = {c: float(new[c].mean()) for c in CONDITIONS}
            yield "novelty", {**means, "auroc": uncertainty_auroc(new["clean"], new["corrupt"])}
        if self.strangers_told is not None:
            yield "nobody_auroc", self.strangers_told
        yield model.kind, {**model.settings(), "error_bound": model.error_bound()}
        data = self.data
        about = {"images": len(data), "classes": data.n_classes, "source": data.source, "corruption": data.damage}
        yield "test_set", about
