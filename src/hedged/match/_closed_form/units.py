"""Embeddings in the units of a match curve, in which p(m | r) = σ(b − r): what the compiled loops work on."""

from __future__ import annotations

import torch
from torch import Tensor

from hedged.distributions import Distribution
from hedged.match.curve import MatchCurve

FARTHEST = 1e15  # distances and scales beyond are cut, so that their squares have gradients even in float32


def in_units_of(curve: MatchCurve, z: Distribution, centre: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """a (μ − centre) and a² σ², `(..., C, D)` each, with gradients.

    Only differences count, and they are more exact near the origin: `centre`, `(D,)`, is anything in the midst.

    >>> from hedged import Gaussian
    >>> z = Gaussian(torch.tensor([[3.0]]), torch.tensor([[0.5]]))
    >>> in_units_of(MatchCurve(scale=2.0).requires_grad_(False), z, torch.ones(1), torch.float32)
    (tensor([[[4.]]]), tensor([[[2.]]]))
    """
    mean, variance = (part.to(dtype) for part in z.parts())
    scale = curve.scale.to(dtype).clamp(1 / FARTHEST, FARTHEST)
    near = ((mean - centre.to(dtype)) * scale).clamp(-FARTHEST, FARTHEST)
    return near, (variance * scale.square()).clamp(max=FARTHEST**2)


def midst(z: Distribution) -> Tensor:
    """The mean of all means, `(D,)`."""
    return z.parts()[0].detach().flatten(0, -2).mean(0)


def curve_ends(b: float, end: float) -> Tensor:
    """b, the end of the curve's chord (`MatchCurve.chord_end`), and p at both its ends, `(4,)`."""
    ends = torch.tensor([b, end, b, b - end], dtype=torch.float64)
    ends[2:].sigmoid_()
    return ends


def within(dtype: torch.dtype) -> tuple[float, float]:
    """The least and the greatest number within (0, 1): a probability does not round to certainty."""
    return torch.finfo(dtype).tiny, 1 - torch.finfo(dtype).eps / 2
