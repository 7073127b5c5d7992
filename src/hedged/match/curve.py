"""p(m | r) = σ(−a r + b): from a distance to the probability of a match (equation 2 of the paper)."""

from __future__ import annotations

import math
from typing import final

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from hedged.errors import ValueRangeError
from hedged.match._closed_form.expansion import ROUNDING, certified_error


@final
class MatchCurve(nn.Module):
    """p(m | r) = σ(−a r + b), with a > 0 and b learnable.

    `scale` is a and `bias` is b. The scale is held as log a, so that no step of an optimiser can make it negative.

    >>> curve = MatchCurve(scale=10.0, bias=3.0)
    >>> curve(torch.tensor([0.0, 0.3, 1.0]))
    tensor([9.5257e-01, 5.0000e-01, 9.1105e-04], grad_fn=<SigmoidBackward0>)
    """

    def __init__(self, scale: float = 10.0, bias: float = 3.0) -> None:
        super().__init__()
        if not (math.isfinite(scale) and scale > 0):
            raise ValueRangeError(f"the scale a of a match curve is positive and finite, got {scale}")
        if not math.isfinite(bias):
            raise ValueRangeError(f"the bias b of a match curve is finite, got {bias}")
        self.log_scale = nn.Parameter(torch.tensor(math.log(scale)))
        self.bias = nn.Parameter(torch.tensor(float(bias)))

    @property
    def scale(self) -> Tensor:
        """a = exp(log a), a scalar."""
        return self.log_scale.exp()

    def logit(self, distance: Tensor) -> Tensor:
        """log p/(1 − p) = b − a r, of the shape of `distance`."""
        return self.bias - self.scale * distance

    def forward(self, distance: Tensor) -> Tensor:
        """p(m | r), of the shape of `distance`."""
        return self.logit(distance).sigmoid()

    def error_bound(self, dtype: torch.dtype | None = None) -> float:
        """The certified sup error of `ClosedForm` for this curve, whatever the embeddings are.

        It covers the curve's expansion between and beyond all grid points, the arithmetic, and the rounding of the
        result to `dtype` (by default the dtype of the curve). At most 1e-3 for b in [−4, 8]; larger, and still true,
        beyond.

        >>> MatchCurve(scale=10.0, bias=3.0).error_bound() < 2e-4
        True
        """
        return certified_error(self.bias.item()) + ROUNDING + torch.finfo(dtype or self.bias.dtype).eps

    def log_floor(self, reach: Tensor) -> Tensor:
        """log of a lower bound on E[σ(b − a‖δ‖)], given `reach` = a·√E‖δ‖², of the shape of `reach`.

        The largest convex function below u ↦ σ(b − u) is its chord from 0 to a point u*, then the curve itself. By
        Jensen's inequality its value at E[u] ≤ reach bounds the expectation from below. In the tail, where p is
        smaller than any absolute error, this bound is what ranks and what gives gradients.
        """
        touch = self.chord_end()
        bias = self.bias.to(reach.dtype)
        if touch == 0.0:
            return logsigmoid(bias - reach)
        share = (reach / touch).clamp(max=1.0)  # by optimality of u*, ∂/∂u* is zero: it may be held constant
        chord = bias.sigmoid() * (1 - share) + (bias - touch).sigmoid() * share
        return torch.where(reach < touch, chord.log(), logsigmoid(bias - reach.clamp(min=touch)))

    def chord_end(self) -> float:
        """u*, up to which `log_floor` is a chord; 0 if the curve is convex throughout."""
        return _chord_end(self.bias.item())

    def extra_repr(self) -> str:
        return f"scale={self.scale.item():g}, bias={self.bias.item():g}"


def _chord_end(bias: float) -> float:
    """u*, where the chord from (0, σ(b)) touches u ↦ σ(b − u); 0 if the curve is convex throughout (b ≤ 0)."""
    if bias <= 0:
        return 0.0

    start = 1 / (1 + math.exp(-bias))

    def gap(u: float) -> float:  # tangent minus chord, times u: negative before u*, positive after
        odds = math.exp(bias - u)
        p = odds / (1 + odds)
        return start - p - u * p * (1 - p)

    low, high = bias, 2 * bias + 10
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if gap(middle) < 0 else (low, middle)
    return high
