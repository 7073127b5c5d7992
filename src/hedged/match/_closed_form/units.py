"""Embeddings and curves in the units of the curve, in which p(m | r) = σ(b − r): what the compiled loops work on.

Scaling, cutting and what counts as too small are decided here and in `loops/limits.py`, once for all paths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from hedged.distributions import Distribution
from hedged.match._closed_form.loops.limits import FARTHEST, TOO_SMALL, PlainCurve

if TYPE_CHECKING:
    from hedged.match.curve import MatchCurve


def unit(curve: MatchCurve, dtype: torch.dtype) -> Tensor:
    """a, cut where its square would leave the range of float32."""
    return curve.scale.to(dtype).clamp(1 / FARTHEST, FARTHEST)


def in_units(curve: MatchCurve, lengths: Tensor) -> Tensor:
    """a · length, cut at `FARTHEST`, with gradients."""
    return (lengths * unit(curve, lengths.dtype)).clamp(-FARTHEST, FARTHEST)


def in_square_units(curve: MatchCurve, variances: Tensor) -> Tensor:
    """a² · variance, cut at `FARTHEST`², with gradients."""
    return (variances * unit(curve, variances.dtype).square()).clamp(max=FARTHEST**2)


def in_units_of(curve: MatchCurve, z: Distribution, centre: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """a (μ − centre) and a² σ², `(..., C, D)` each, with gradients.

    Only differences count, and they are more exact near the origin: `centre`, `(D,)`, is anything in the midst.

    >>> from hedged import Gaussian, MatchCurve
    >>> z = Gaussian(torch.tensor([[3.0]]), torch.tensor([[0.5]]))
    >>> in_units_of(MatchCurve(scale=2.0).requires_grad_(False), z, torch.ones(1), torch.float32)
    (tensor([[[4.]]]), tensor([[[2.]]]))
    """
    mean, variance = (part.to(dtype) for part in z.parts())
    return in_units(curve, mean - centre.to(dtype)), in_square_units(curve, variance)


def midst(z: Distribution) -> Tensor:
    """The mean of all means, `(D,)`."""
    return z.parts()[0].detach().flatten(0, -2).mean(0)


def too_small(dtype: torch.dtype) -> float:
    """Below this, a sum of terms has no logarithm worth taking: terms that were left out would be missed."""
    return TOO_SMALL * torch.finfo(dtype).tiny


def plain(curve: MatchCurve, dtype: torch.dtype = torch.float64) -> PlainCurve:
    """A curve as plain numbers of one dtype, as the compiled loops take it."""
    b, end = curve.bias.item(), curve.chord_end()
    numbers = torch.tensor([b, end, b, b - end], dtype=torch.float64)
    numbers[2:].sigmoid_()
    return PlainCurve(*numbers.to(dtype).numpy())
