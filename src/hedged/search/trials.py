"""Images of a gallery tried as probes, one an identity: as somebody known, and as a stranger.

What they come to is what promises about later probes are made from (hedged.decisions.guarantees).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hedged.distributions import Distribution
from hedged.errors import DataError
from hedged.match import MatchModel
from hedged.search.fusion import Fusion, ProductFusion

Logits = NDArray[np.float64]
MOST_TRIED = 2000  # identities: a rate of 0.001 can be promised, and more would take long


class HeldOut(NamedTuple):
    """Log-odds of n images of a gallery, one an identity, and its G identities; −∞ stands for nothing to compare with.

    Args:
        owner: Whose each image is, `(n,)`.
        known: With the image left out, `(n, G)`.
        strangers: With all images of its identity left out, `(n, G)`.
    """

    owner: NDArray[np.int64]
    known: Logits
    strangers: Logits

    @property
    def has_others(self) -> NDArray[np.bool_]:
        """Whether the identity of each image has other images, `(n,)`."""
        others: NDArray[np.bool_] = np.isfinite(self.known[np.arange(len(self.owner)), self.owner])
        return others


@torch.no_grad()
def hold_out(images: Distribution, owner: Tensor, fusion: Fusion, model: MatchModel, seed: int = 0) -> HeldOut:
    """Try one image of each identity, drawn at random.

    Args:
        images: M embeddings.
        owner: Whose each of them is, int64 `(M,)` in 0 … G − 1.
        fusion: How the images of an identity are taken together.
        model: When two embeddings match.
        seed: Draws the images, and the identities if there are very many.
    """
    tried = torch.from_numpy(one_each(owner.numpy(), seed))
    whose = owner[tried]
    known, strangers = fusion.held_out(images, owner, tried, model)
    return HeldOut(whose.numpy(), known.double().numpy(), strangers.double().numpy())


def one_each(owner: NDArray[np.int64], seed: int = 0) -> NDArray[np.int64]:
    """A random place of each identity in a list, in random order; at most 2,000.

    Args:
        owner: The identity at each place, `(M,)`.
        seed: The seed.

    >>> one_each(np.array([7, 7, 7, 9]), seed=0)
    array([2, 3])
    """
    order = np.random.default_rng(seed).permutation(len(owner))
    _, first = np.unique(owner[order], return_index=True)
    return order[np.sort(first)][:MOST_TRIED]


@torch.no_grad()
def best_scores_within(images: Distribution, owner: Tensor, model: MatchModel, seed: int = 0) -> Logits:
    """The score of the best identity for an image of each, were it a stranger to the others: `(n,)`.

    Args:
        images: M embeddings.
        owner: Whose each of them is, int64 `(M,)` in 0 … G − 1.
        model: When two embeddings match.
        seed: Draws the images.
    """
    if int(owner.max()) < 1:
        raise DataError("one identity has nobody to be compared with: give images of at least two")
    best: Logits = hold_out(images, owner, ProductFusion(), model, seed).strangers.max(axis=1)
    return best


@torch.no_grad()
def best_scores(probes: Distribution, images: Distribution, owner: Tensor, model: MatchModel) -> Logits:
    """The score of the best identity of a gallery for each probe, `(N,)`.

    Args:
        probes: N embeddings.
        images: M embeddings of the gallery.
        owner: Whose each of them is, int64 `(M,)` in 0 … G − 1.
        model: When two embeddings match.
    """
    best: Logits = ProductFusion().logits(probes, images, owner, model).double().numpy().max(axis=1)
    return best
