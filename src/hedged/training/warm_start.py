"""From points to evidence, in the midst of a run: the warm start of `loss.kind = "evidence"`.

While a network is wrong, what it says of an identity misleads, and saying nothing is the nearest minimum: trained by
evidence from a random start, an embedding falls silent. So it is first trained as points, which a match curve compares.
Then two-covariance PLDA of these points, in closed form, makes a posterior of each, and training goes on from there.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hedged.match import Evidence
from hedged.models import PointHead, PosteriorHead, channels_last
from hedged.models.evidence.plda import directions
from hedged.training.build import Parts, build_evidence_loss
from hedged.training.config import Config

LOOKED_AT = 100  # batches that PLDA is fitted to: the last ones of the first stage


def by_evidence(config: Config, parts: Parts, blank: bool = False) -> Parts:
    """The parts of the second stage of a run: the same network, its points made posteriors that evidence compares.

    Args:
        config: All settings.
        parts: Of the first stage.
        blank: Whether to leave out PLDA, since a checkpoint is going to fill the head.
    """
    points = parts.embedder.head
    assert isinstance(points, PointHead)  # as `build_parts` made it
    head, evidence = PosteriorHead(points.features, points.dim), Evidence()
    if not blank:
        of_points = config.loss.directions == "points"
        x, y = _looked_at(config, parts, of_points)
        head.start_from(directions(x, y, ridge=0.0, count=head.dim), points.mean if of_points else None)
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
    evidence.log_odds -= math.log(w) - math.log1p(-w)


@torch.no_grad()
def _looked_at(config: Config, parts: Parts, as_points: bool) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Points or features of training inputs, as training augments them, and their classes, numbered without gaps."""
    embedder, last = parts.embedder.eval(), config.evidence_from or 0
    batches = [parts.batches.batch(step) for step in range(max(last - LOOKED_AT, 0), last)]
    features = torch.cat([embedder.backbone(channels_last(batch.images)) for batch in batches])
    x = embedder.head(features).mean if as_points else features
    labels = torch.cat([batch.labels for batch in batches])
    return x.double().numpy(), np.unique(labels.numpy(), return_inverse=True)[1]
