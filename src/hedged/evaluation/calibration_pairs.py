"""Labelled pairs to calibrate a model on: of the inputs that its run kept for validation, or of a list."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hedged.data import Dataset, PairList
from hedged.decisions import ScoredPairs, identities_of_list
from hedged.decisions.pairs import LEAST_IDENTITIES
from hedged.distributions import Distribution
from hedged.errors import DataError
from hedged.evaluation.evaluation import Condition, match_scores
from hedged.evaluation.verification import decide_listed
from hedged.match import MatchModel, self_mismatch
from hedged.metrics import balanced_pairs
from hedged.models import Embedder, embed_all
from hedged.training import RunConfig, build_data

PAIRS = 200_000  # that are drawn of a data set

logger = logging.getLogger("hedged")


@final
@dataclass(frozen=True, eq=False)
class Inputs:
    """Embedded inputs of several identities.

    Args:
        z: n embeddings.
        owner: Whose each is, int64 `(n,)` in 0 … G − 1.
        names: The G names of the identities.
    """

    z: Distribution
    owner: Tensor
    names: list[str]


def statistics(z: Distribution, model: MatchModel) -> dict[str, NDArray[np.float64]]:
    """What can be told of inputs without labels, `(n,)` each: their uncertainty η, and the length of their mean.

    Args:
        z: n embeddings.
        model: When two of them match.
    """
    with torch.no_grad():
        eta, length = self_mismatch(z, model), z.mean.norm(dim=-1)
    return {"uncertainty": eta.double().numpy(), "length": length.double().numpy()}


@final
@dataclass(frozen=True, eq=False)
class Source:
    """Pairs to calibrate on.

    Args:
        pairs: The pairs, scored by the model.
        words: Where they come from, for people.
        inputs: What the pairs were drawn from; None: a list of pairs is all there is.
    """

    pairs: ScoredPairs
    words: str
    inputs: Inputs | None = None


def scored_pairs(embedder: Embedder, data: Dataset, condition: Condition = "clean", seed: int = 0) -> ScoredPairs:
    """Pairs of a data set to calibrate on, half of them matches, with its classes as identities.

    Args:
        embedder: The model that scores them.
        data: Inputs that the model was not trained on.
        condition: Whether to take them clean, or their corrupt twins.
        seed: Draws the pairs, and the corruption.
    """
    return _pairs_among(_embedded(embedder, data, condition, seed), data, embedder, seed)


def _embedded(embedder: Embedder, data: Dataset, condition: Condition, seed: int) -> Distribution:
    logger.info("embedding %s %s", f"{len(data):,}", data.inputs)
    inputs = data.clean if condition == "clean" else partial(data.corrupt, seed)
    return embed_all(embedder, inputs, len(data))


def _pairs_among(z: Distribution, data: Dataset, embedder: Embedder, seed: int) -> ScoredPairs:
    labels = data.labels.numpy()
    pairs = balanced_pairs(labels, PAIRS, seed)
    scores = match_scores(pairs, z, embedder.match_model)
    return ScoredPairs.of(scores, labels[pairs.first], labels[pairs.second])


def pairs_of_run(config: RunConfig, embedder: Embedder, condition: Condition = "clean") -> Source:
    """Pairs of the validation part of a run; if it kept none, of its first test set, with a warning.

    Args:
        config: The settings of the run.
        embedder: Its model.
        condition: As for `scored_pairs`.
    """
    splits = build_data(config)
    name, data = "validation", splits.validation
    if data is None:
        name, data = splits.first_test
        logger.warning(
            "this run kept no %s for validation, so it is calibrated on its test set (%s); to measure calibration, "
            "give other pairs with --pairs, or train with some %s held out",
            data.inputs,
            name,
            data.inputs,
        )
    _require_identities(config, name, data, splits.train)
    z = _embedded(embedder, data, condition, seed=0)
    classes, owner = np.unique(data.labels.numpy(), return_inverse=True)
    inputs = Inputs(z, torch.from_numpy(owner), [data.name(label) for label in classes.tolist()])
    again = ", with repetition," if len(data) * (len(data) - 1) // 2 < PAIRS else ""
    words = f"drawn{again} from {len(data):,} {condition} {name} {data.inputs} of {data.source}"
    return Source(_pairs_among(z, data, embedder, seed=0), words, inputs)


def _require_identities(config: RunConfig, name: str, data: Dataset, train: Dataset) -> None:
    """Refuse too few identities before they are embedded, with the key of the config to change."""
    if data.n_classes < LEAST_IDENTITIES:
        more = config.data.more_validation(LEAST_IDENTITIES, data.n_classes + train.n_classes)
        raise DataError(
            f"{data.n_classes} {name} identities are too few to calibrate on, {LEAST_IDENTITIES} are needed: {more} "
            "and train again (a retrofit: fit again, with --validation-share and --force); or give pairs of others "
            "with --pairs"
        )


def pairs_of_list(listed: PairList, embedder: Embedder, name: str) -> Source:
    """The pairs of a list, scored; identities follow from which of them match. Broken files are reported.

    Args:
        listed: The pairs.
        embedder: The model that scores them.
        name: What the list is called, for people.
    """
    found = decide_listed(embedder, listed)
    identities = identities_of_list(found.pairs.first, found.pairs.second, found.pairs.matches)
    return Source(ScoredPairs.of(found.scores, *identities), f"listed in {name}")
