"""Which labels are wrong? Items against their own identity and all others, identities against their own two halves."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from hedged._odds import expit
from hedged.search.identify import Identities, LogOdds

Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

FOLDS = 10  # of an identity; an item is compared with those that are not of its fold
ROUNDS = 2  # the second compares with identities without the items that the first took out
CHUNK = 512  # items that are compared with all identities at a time
LEAST_DIVIDED = 4  # items of an identity that may be two, of two each
MOST_DIVIDED = 200  # items of an identity that are looked at


class Doubts(NamedTuple):
    """What is thought of the labels of n items.

    Args:
        wrong: The probability that the label is wrong, `(n,)`.
        likelier: The other identity that matches best, `(n,)`.
        likelier_probability: That it is this one, `(n,)`.
    """

    wrong: Floats
    likelier: Numbers
    likelier_probability: Floats


def doubt_labels(gallery: Identities, wrong_share: float, calibrated: LogOdds) -> Doubts:
    """P(wrong | x) = ρ·B / (ρ·B + (1 − ρ)·odds_own), B = 1 + Σ odds_j / G over the other identities.

    The odds of a match compare the item with the other items of its own identity, or with all of another one. With the
    share ρ of labels that are wrong, an item shows any of the others, or nobody of them: the 1 in B. An item alone in
    its identity says nothing of it, and has odds of one.

    Args:
        gallery: The items and their labels.
        wrong_share: ρ.
        calibrated: From the model's log-odds of a match to calibrated ones.
    """
    owner = gallery.owner.numpy()
    kept = np.ones(len(owner), dtype=bool)
    for _ in range(ROUNDS):
        own = calibrated(_own_log_odds(gallery, kept))
        best, highest, total = _others(gallery, kept, calibrated)
        alternatives = np.logaddexp(0, total - math.log(len(gallery.labels)))
        shift = math.log(wrong_share) - math.log1p(-wrong_share)
        wrong = expit(shift + alternatives - np.where(np.isfinite(own), own, 0.0))
        kept = wrong < 0.5
    return Doubts(wrong, best, wrong * np.exp(highest - math.log(len(gallery.labels)) - alternatives))


def _own_log_odds(gallery: Identities, kept: Flags) -> Floats:
    """Log-odds of each item and the rest of its identity, `(n,)`; −∞ where there is none."""
    images, owner, model = gallery.images, gallery.owner.numpy(), gallery.match_model
    found = np.full(len(owner), -np.inf)
    order = np.argsort(owner, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(owner[order])) + 1):
        folds = np.arange(len(members)) % min(len(members), FOLDS)
        fold, row = np.nonzero((folds[None, :] != np.arange(folds.max() + 1)[:, None]) & kept[members][None, :])
        left, numbered = np.unique(fold, return_inverse=True)
        if not len(left):
            continue
        rests = model.fuse(images.take(torch.from_numpy(members[row])), torch.from_numpy(numbered))
        place = np.searchsorted(left, folds)
        has_rest = (place < len(left)) & (left[np.minimum(place, len(left) - 1)] == folds)
        mine = torch.from_numpy(members[has_rest])
        logits = model.logit(images.take(mine), rests.take(torch.from_numpy(place[has_rest])))
        found[members[has_rest]] = logits.double().numpy()
    return found


def _others(gallery: Identities, kept: Flags, calibrated: LogOdds) -> tuple[Numbers, Floats, Floats]:
    """The best identity but its own of each item, its calibrated log-odds, and the log of the sum of all such odds."""
    images, owner, model = gallery.images, gallery.owner.numpy(), gallery.match_model
    best, highest, total = np.zeros(len(owner), np.int64), np.full(len(owner), -np.inf), np.full(len(owner), -np.inf)
    if not kept.any():
        return best, highest, total
    left, numbered = np.unique(owner[kept], return_inverse=True)
    templates = model.fuse(images.take(torch.from_numpy(np.flatnonzero(kept))), torch.from_numpy(numbered))
    for start in range(0, len(owner), CHUNK):
        part = slice(start, start + CHUNK)
        odds = np.asarray(calibrated(model.matrix(images[part], templates).double().numpy()), dtype=np.float64)
        odds[owner[part][:, None] == left] = -np.inf
        best[part], highest[part] = left[odds.argmax(1)], odds.max(1)
        total[part] = np.logaddexp.reduce(odds, axis=1)
    return best, highest, total


class Halves(NamedTuple):
    """An identity as two: the places of the items of each, the larger first, and the probability that it is two."""

    identity: int
    first: Numbers
    second: Numbers
    probability: float


def divide_identities(gallery: Identities, wrong_share: float, calibrated: LogOdds) -> list[Halves]:
    """P(two) = ρ/S / (ρ/S + (1 − ρ)·odds(A, B)): each identity cut where its items match least, if both have two.

    A and B are the two groups that average linkage of the log-odds of all pairs ends with, and S = 2^{n−1} is the
    number of ways to cut n items in two, of which they are the best. Where the items of a group do not match each
    other, it is no identity: their labels are wrong one by one.

    Args:
        gallery: The items and their labels.
        wrong_share: ρ, the share of identities that are two.
        calibrated: From the model's log-odds of a match to calibrated ones.
    """
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    owner, model = gallery.owner.numpy(), gallery.match_model
    shift, found = math.log(wrong_share) - math.log1p(-wrong_share), []
    order = np.argsort(owner, kind="stable")
    for group in np.split(order, np.flatnonzero(np.diff(owner[order])) + 1):
        members = group[np.linspace(0, len(group) - 1, min(len(group), MOST_DIVIDED)).round().astype(int)]
        if len(members) < LEAST_DIVIDED:
            continue
        items = gallery.images.take(torch.from_numpy(members))
        logits = model.matrix(items, items).double().numpy()
        distances = logits.max() - (logits + logits.T) / 2
        np.fill_diagonal(distances, 0)
        side = fcluster(linkage(squareform(distances, checks=False), "average"), 2, "maxclust") - 1
        sizes = np.bincount(side, minlength=2)
        if sizes.min() < 2 or not all(_is_one(logits[np.ix_(side == k, side == k)], calibrated) for k in (0, 1)):
            continue
        halves = model.fuse(items, torch.from_numpy(side.astype(np.int64)))
        odds = float(np.asarray(calibrated(model.logit(halves[:1], halves[1:]).double().numpy()))[0])
        cuts = (len(members) - 1) * math.log(2)
        probability = float(expit(shift - odds - cuts))
        larger = int(sizes[1] > sizes[0])
        found.append(Halves(int(owner[members[0]]), members[side == larger], members[side != larger], probability))
    return found


def _is_one(logits: Floats, calibrated: LogOdds) -> bool:
    """Whether items match each other more than not, by the mean log-odds of their pairs, `(n, n)`."""
    return bool(np.mean(np.asarray(calibrated(logits[~np.eye(len(logits), dtype=bool)]))) > 0)
