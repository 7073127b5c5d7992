"""Novelty is fitted to the features of what a model was made from, once its weights are found."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from hedged.data import Batch
from hedged.models import Embedder, channels_last
from hedged.novelty import Novelty


@torch.no_grad()
def fit_novelty(embedder: Embedder, seen: Iterable[Batch], seed: int = 0) -> Novelty:
    """The novelty of a model, in one pass over inputs that it was made from.

    Args:
        embedder: the model, trained; it is left in evaluation mode.
        seen: the inputs with their identities, such as `config.seen(train)`.
        seed: which identities are held out together.
    """
    embedder.eval()
    like = next(embedder.parameters(), torch.zeros(0))
    features, labels = [], []
    for batch in seen:
        features.append(embedder.backbone(channels_last(batch.images.to(like))).float().cpu())
        labels.append(batch.labels)
    return Novelty.fitted(torch.cat(features), torch.cat(labels), seed)
