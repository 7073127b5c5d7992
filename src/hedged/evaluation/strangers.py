"""Does P(nobody) tell strangers? Half of the classes of a test set are enrolled, the others are strangers to them."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from hedged.distributions import Distribution
from hedged.errors import ShapeError
from hedged.match import MatchModel, best_matches
from hedged.metrics import roc_auc

LEAST_CLASSES = 4
MOST_PROBES = 2_000  # of somebody enrolled, and as many of strangers


def strangers_told(z: Distribution, labels: NDArray[np.int64], model: MatchModel, seed: int = 0) -> float | None:
    """AUROC of P(nobody), of strangers against somebody enrolled; None if fewer than four classes have two inputs.

    Of each enrolled class, half of the inputs are fused into one template, and the others are probes. P(nobody) falls
    with the match of the best template, which is all that its AUROC depends on: no other share of strangers changes it.

    Args:
        z: Embeddings of a test set, N.
        labels: The class of each, (N,).
        model: When two embeddings match.
        seed: Of who is enrolled.
    """
    rng = np.random.default_rng(seed)
    _, y, counts = np.unique(labels, return_inverse=True, return_counts=True)
    several = rng.permutation(np.flatnonzero(counts > 1))
    if len(several) < LEAST_CLASSES:
        return None
    enrolled = np.isin(y, several[: len(several) // 2])
    order = rng.permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    is_odd = np.empty(len(y), dtype=bool)
    is_odd[order] = (np.arange(len(y)) - np.searchsorted(y[order], y[order])) % 2 == 1
    templates, known, strangers = (np.flatnonzero(rows) for rows in (enrolled & ~is_odd, enrolled & is_odd, ~enrolled))
    known, strangers = (rng.permutation(rows)[:MOST_PROBES] for rows in (known, strangers))
    with torch.no_grad():
        owner = torch.from_numpy(np.unique(y[templates], return_inverse=True)[1].reshape(-1))
        try:
            fused = model.fuse(z[torch.from_numpy(templates)], owner)
        except ShapeError:  # evidence of mixtures is not fused, so no gallery of theirs has a P(nobody)
            return None
        probes = z[torch.from_numpy(np.concatenate([known, strangers]))]
        best = best_matches(probes, fused, model, 1).logits[:, 0].double().numpy()
    return float(roc_auc(-best, np.arange(len(best)) >= len(known)))
