"""The best matches of probes in a gallery, without the matrix of all pairs."""

from __future__ import annotations

import torch

from hedged._tracing import untraced
from hedged.distributions import Distribution
from hedged.errors import ShapeError, ValueRangeError
from hedged.match._checks import require_lists
from hedged.match._pairs import Matches
from hedged.match.model import MatchModel


@untraced
def best_matches(
    probes: Distribution, gallery: Distribution, model: MatchModel, k: int = 5, *, exclude_self: bool = False
) -> Matches:
    """The k gallery items of highest p(m | x_i, x_j) for each probe, the first among equals, none of them missed.

    p is that of `match_probability` up to rounding.

    Args:
        probes: N embeddings.
        gallery: M embeddings.
        model: When two embeddings match, such as a `MatchCurve`.
        k: How many matches each probe gets.
        exclude_self: Whether probe i and gallery item i are one image, and never each other's match.

    >>> from hedged import Gaussian, MatchCurve
    >>> z = Gaussian(torch.tensor([[0.0], [0.1], [3.0], [3.2]]), torch.full((4, 1), 1e-4))
    >>> best_matches(z, z, MatchCurve(), k=1, exclude_self=True).items.flatten()
    tensor([1, 0, 3, 2])
    """
    _check(probes, gallery, k, exclude_self)
    with torch.no_grad():
        return model.nearest(probes, gallery, k, exclude_self)


def _check(probes: Distribution, gallery: Distribution, k: int, exclude_self: bool) -> None:
    require_lists("best_matches", probes, gallery)
    for name, z in (("probes", probes), ("gallery", gallery)):
        if not len(z):
            raise ShapeError(f"best_matches takes at least one embedding as {name}, got {z!r}")
    if exclude_self and len(probes) != len(gallery):
        raise ShapeError(
            f"{len(probes)} probes cannot be the same items as a gallery of {len(gallery)}: pass exclude_self=False"
        )
    if not 1 <= k <= len(gallery) - exclude_self:
        most = len(gallery) - exclude_self
        raise ValueRangeError(f"k is {k}; a gallery of {len(gallery)} has 1 to {most} matches for each probe")
