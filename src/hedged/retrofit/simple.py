"""The simpler ways that a trained head is compared with: cosine, LDA and PLDA, each as a head of constant evidence.

With one variance for all inputs, and means of one length, the log Bayes factor is a straight line in the cosine. So
each way has a calibrated probability, embeddings, fusion and search as any other head has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hedged.models.evidence.front import Front
from hedged.models.evidence.head import Branch
from hedged.models.evidence.plda import Directions

Floats = NDArray[np.floating[Any]]
COSINE_SLOPE = 20.0  # of log-odds in the cosine, where nothing is known of it; calibration scales it


def cosine(features: int) -> tuple[Front, list[Branch]]:
    """The cosine of the vectors as they are: what a head of it is made of.

    Args:
        features: F, the width of the vectors.
    """
    front = Front(features, features, unit=True)
    front.basis = torch.eye(features)
    return front, [_of_unit_length(np.eye(features), np.zeros(features))]


def lda(found: Directions, dim: int) -> Branch:
    """The cosine of discriminant directions.

    Args:
        found: directions, best first.
        dim: how many of them to take.
    """
    kept = found.first(dim)
    return _of_unit_length(kept.weight, kept.centre)


def wide(found: Directions, dim: int) -> Branch:
    """The cosine of many directions, each weighted by the fourth root of λ/(1 + λ).

    Halfway between LDA, which weighs all alike, and PLDA, which hears little of those that tell little.

    Args:
        found: directions, best first.
        dim: how many of them to take.
    """
    kept = found.first(dim)
    weight = kept.weight * (kept.evidence / (1 + kept.evidence)) ** 0.25
    return _of_unit_length(weight, kept.centre)


def centred_cosine(front: Front, u: Floats, dim: int) -> Branch:
    """The cosine of the vectors themselves, less their mean, on their leading principal axes.

    Args:
        front: what made u of the vectors.
        u: vectors on the principal axes of the front, (n, P).
        dim: how many principal axes of the vectors to take.
    """
    basis, scale = front.basis.double().numpy(), front.scale.double().numpy()
    back = basis.T * scale  # from u to the vectors, but for their lengths
    centre = -(basis.T @ front.centre.double().numpy())
    seen = (u - centre) @ back
    _, axes = np.linalg.eigh(seen.T @ seen)
    return _of_unit_length(back @ axes[:, ::-1][:, :dim], centre)


def _of_unit_length(weight: Floats, centre: Floats) -> Branch:
    """log BF = slope · cosine + constant: the share s = λ/(1 + λ) of each of D dimensions has Ds/(1 − s²) = slope."""
    slope = COSINE_SLOPE
    dim = weight.shape[1]
    share = (np.sqrt(dim**2 + 4 * slope**2) - dim) / (2 * slope)
    branch = Branch(axes=weight.shape[0], dim=dim, groups=1, unit=True)
    branch.weight = torch.tensor(weight.copy()).float()
    branch.centre = torch.tensor(centre.copy()).float()
    branch.log_evidence = torch.full((1,), float(np.log(share) - np.log1p(-share)))
    branch.scale = torch.full((dim,), float(share**-0.5))
    return branch


def plda(found: Directions, dim: int) -> Branch:
    """Two-covariance PLDA, with evidence of its own for every dimension.

    Args:
        found: directions, best first.
        dim: how many of them to take.
    """
    kept = found.first(dim)
    branch = Branch(len(kept.weight), len(kept.evidence), groups=len(kept.evidence), unit=False)
    branch.start_from(kept)
    return branch


def started(
    found: Directions, dim: int, groups: int, unit: bool, hidden: int, seen: int, varied: bool = False
) -> Branch:
    """PLDA but for groups of like evidence, with a network to tell how much an input says: to be trained.

    Args:
        found: directions, best first.
        dim: how many of them to take; fewer if there are fewer, or if groups do not deal them out evenly.
        groups: how many groups of like evidence there are, at most.
        unit: whether projections are brought to one length.
        hidden: hidden units of the network.
        seen: how many leading principal axes it sees.
        varied: whether it tells groups apart.
    """
    dim = min(dim, len(found.evidence))
    groups = min(groups, dim)
    dim -= dim % groups
    branch = Branch(len(found.weight), dim, groups, unit, hidden, seen, varied)
    branch.start_from(found.first(dim))
    return branch
