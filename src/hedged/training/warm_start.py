"""From the match curve to evidence, in the midst of a run: the warm start of `loss.kind = "evidence"`.

While a network is wrong, what it says of an identity misleads, and saying nothing is the nearest minimum: trained by
evidence from a random start, an embedding falls silent. So a match curve trains it first, as points or as Gaussians.
Points become posteriors by two-covariance PLDA in closed form, Gaussians by standardising them; then training goes on.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hedged.match import Evidence
from hedged.models import Embedder, GaussianHead, PointHead, PosteriorHead, channels_last
from hedged.models.evidence.plda import directions
from hedged.training.build import Parts, build_evidence_loss
from hedged.training.config import Config

LOOKED_AT = 100  # batches that a start is fitted to: the last ones of the first stage


def by_evidence(config: Config, parts: Parts, blank: bool = False) -> Parts:
    """The parts of the second stage of a run: the same network, with posteriors that evidence compares.

    Args:
        config: All settings.
        parts: Of the first stage.
        blank: Whether to leave the head unstarted, since a checkpoint is going to fill it.
    """
    first = parts.embedder.head
    head, evidence = PosteriorHead(first.features, first.dim), Evidence()
    if not blank:
        _start(head, config, parts)
    embedder = parts.embedder.with_head(head, evidence, config.architecture)
    return parts._replace(embedder=embedder, loss=build_evidence_loss(config.loss, evidence, parts.generator))


@torch.no_grad()
def as_if_half_match(parts: Parts) -> None:
    """Shift the prior log-odds of a trained embedder to pairs of which half match, exactly, by Bayes' rule.

    Matching pairs weighed w in training, so what was learnt are log-odds of pairs of which a share w matches.

    Args:
        parts: Of the second stage, after its last step.
    """
    evidence, w = parts.embedder.match_model, parts.loss.positive_weight
    assert isinstance(evidence, Evidence)  # as `by_evidence` made it
    evidence.log_odds.sub_(math.log(w) - math.log1p(-w))


@torch.no_grad()
def _start(head: PosteriorHead, config: Config, parts: Parts) -> None:
    features, labels = _looked_at(config, parts)
    first = parts.embedder.head
    if isinstance(first, GaussianHead):
        means = first.mean(features)
        head.start_from_gaussians(first, means.mean(0), means.std(0))
        return
    assert isinstance(first, PointHead)  # as `build_parts` made it
    layer = first.mean if config.loss.warm_start == "points" else None
    x = features if layer is None else layer(features)
    head.start_from_plda(directions(x.double().numpy(), labels, ridge=0.0, count=head.dim), layer)


def _looked_at(config: Config, parts: Parts) -> tuple[Tensor, NDArray[Any]]:
    """Features of training inputs, as training augments them, and their classes, numbered from 0 without gaps."""
    embedder: Embedder = parts.embedder.eval()
    last = config.evidence_from or 0
    batches = [parts.batches.batch(step) for step in range(max(last - LOOKED_AT, 0), last)]
    features = torch.cat([embedder.backbone(channels_last(batch.images)) for batch in batches])
    return features, np.unique(torch.cat([batch.labels for batch in batches]).numpy(), return_inverse=True)[1]
