"""Items under two names that are one, and items that match everybody."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from hedged._odds import expit
from hedged.match import best_matches
from hedged.search.identify import Identities, LogOdds

Floats = NDArray[np.float64]

MOST_OTHERS = 500  # items that each is held against, to see whether it matches everybody
NEARLY = 0.5  # log-odds that a near-duplicate falls short of the item itself
CHUNK = 512  # items that are held against them at a time


class Twins(NamedTuple):
    """Two items, by place, and the probability that they show one identity."""

    first: int
    second: int
    probability: float


def find_duplicates(gallery: Identities, wrong_share: float, calibrated: LogOdds) -> list[Twins]:
    """Items of two labels that match each other best, and as well as themselves: the same photo, or nearly.

    P(one identity) = σ(log ρ/(n(1 − ρ)) + log-odds of a match − log s). With the share ρ of labels wrong, an item has a
    twin among n others with probability ρ. Only a share s of the pairs that do show one identity are as near as that,
    which different photos of one identity seldom are, and those of two identities more seldom still.

    Args:
        gallery: The items and their labels.
        wrong_share: ρ.
        calibrated: From the model's log-odds of a match to calibrated ones.
    """
    images, owner, model = gallery.images, gallery.owner.numpy(), gallery.match_model
    if len(owner) < 2:
        return []
    itself = model.logit(images, images).double().numpy()
    found = best_matches(images, images, model, 1, exclude_self=True)
    nearest, logits = found.items.numpy()[:, 0], found.logits.double().numpy()[:, 0]
    here = np.arange(len(owner))
    is_near = logits >= np.minimum(itself, itself[nearest]) - NEARLY
    twins = here[is_near & (nearest[nearest] == here) & (owner[nearest] != owner) & (here < nearest)]
    share = _share_as_near(gallery, itself)
    shift = math.log(wrong_share) - math.log1p(-wrong_share) - math.log(len(owner) - 1) - math.log(share)
    p = expit(np.asarray(calibrated(logits[twins]), dtype=np.float64) + shift)
    return [Twins(int(i), int(nearest[i]), float(q)) for i, q in zip(twins, p, strict=True)]


def _share_as_near(gallery: Identities, itself: Floats) -> float:
    """The share of pairs of one label that match as well as their items match themselves; one more than are counted."""
    order = np.argsort(gallery.owner.numpy(), kind="stable")
    owner = gallery.owner.numpy()[order]
    first = np.flatnonzero(owner[1:] == owner[:-1])  # each item and the next of its label
    pairs = order[first], order[first + 1]
    one, other = (gallery.images.take(torch.from_numpy(side)) for side in pairs)
    logits = gallery.match_model.logit(one, other).double().numpy()
    is_near = logits >= np.minimum(itself[pairs[0]], itself[pairs[1]]) - NEARLY
    return float((1 + is_near.sum()) / (1 + len(is_near)))


def match_with_strangers(gallery: Identities, calibrated: LogOdds) -> Floats:
    """The mean probability that each item matches items of other labels, `(n,)`, where half of all pairs match.

    Args:
        gallery: The items and their labels.
        calibrated: From the model's log-odds of a match to calibrated ones.
    """
    images, owner = gallery.images, gallery.owner.numpy()
    some = np.linspace(0, len(owner) - 1, min(len(owner), MOST_OTHERS)).round().astype(int)
    others, found = images.take(torch.from_numpy(some)), np.zeros(len(owner))
    for start in range(0, len(owner), CHUNK):
        part = slice(start, start + CHUNK)
        p = expit(calibrated(gallery.match_model.matrix(images[part], others).double().numpy()))
        is_other = owner[part][:, None] != owner[some]
        found[part] = (p * is_other).sum(1) / np.maximum(is_other.sum(1), 1)
    return found
