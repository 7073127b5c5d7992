"""Match models as plain numbers: what a program without hedged needs to compare two embeddings.

`MatchModel.portable()` gives one. Its numbers go into an exported file, whose readers work the match probability out of
means and variances (`hedged.runtime`, the browser example); η is worked out here, by operations that can be traced, and
becomes a part of the exported network.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, final

import torch
from torch import Tensor, nn

from hedged.match._evidence.formula import give_way, log_factor
from hedged.match._numbers import within


class PortableMatch(nn.Module, ABC):
    """A match model as numbers, and η(x) of embeddings in operations that can be traced.

    Args:
        numbers: All that is needed to compare two embeddings, as JSON has it; `kind` is the kind of the match model.
    """

    def __init__(self, numbers: Mapping[str, Any]) -> None:
        super().__init__()
        self.numbers = dict(numbers)

    @abstractmethod
    def eta(self, mean: Tensor, variance: Tensor) -> Tensor:
        """η(x), `(B,)`, of components in double precision.

        Args:
            mean: Of the components, `(B, C, D)`.
            variance: Of the components, `(B, C, D)`; 0 of points.
        """

    def forward(self, mean: Tensor, variance: Tensor) -> Tensor:
        """η(x), `(B,)`, of components `(B, C, D)`; single precision, and never rounded to certainty."""
        return self.eta(mean.double(), variance.double()).clamp(*within(torch.float32)).float()


@final
class PortableCurve(PortableMatch):
    """p = Σ_j w_j Π_d (1 + 2c_j s_d)^(−1/2) exp(−c_j m_d² / (1 + 2c_j s_d)), with m = a (μ₁ − μ₂), s = a² (σ₁² + σ₂²).

    It is at least Jensen's bound and at most σ(b), as in `ClosedForm`, and the mean over pairs of components. Jensen's
    bound is the chord of u ↦ σ(b − u) from 0 to `chord_end`, then the curve itself, at u² = Σ_d (m_d² + s_d).

    Args:
        numbers: `scale` a, `bias` b, `widths` c_j, `weights` w_j, `chord_end`, and `error_bound`, how far p may be from
            the exact integral.
    """

    widths: Tensor
    weights: Tensor

    def __init__(self, numbers: Mapping[str, Any]) -> None:
        super().__init__(numbers)
        for name in ("widths", "weights"):
            self.register_buffer(name, torch.tensor(numbers[name], dtype=torch.float64))

    def eta(self, mean: Tensor, variance: Tensor) -> Tensor:
        scale, bias = self.numbers["scale"], self.numbers["bias"]
        squares = (scale * (mean.unsqueeze(2) - mean.unsqueeze(1))).square()  # (B, C, C, D)
        spreads = scale**2 * (variance.unsqueeze(2) + variance.unsqueeze(1))
        stretch = 1 + 2 * self.widths[:, None] * spreads.unsqueeze(-2)  # (B, C, C, J, D)
        exponent = self.widths * (squares.unsqueeze(-2) / stretch).sum(-1) + 0.5 * stretch.log().sum(-1)
        value = (self.weights * (-exponent).exp()).sum(-1)
        p = torch.maximum(value, self._floor((squares + spreads).sum(-1).sqrt())).mean((1, 2))
        uncertain: Tensor = 1 - p.clamp(max=_sigmoid(bias))
        return uncertain

    def _floor(self, reach: Tensor) -> Tensor:
        """Jensen's bound at a·√E‖δ‖²."""
        bias, touch = self.numbers["bias"], self.numbers["chord_end"]
        curve: Tensor = (bias - reach).sigmoid()
        if touch == 0:
            return curve
        share = (reach / touch).clamp(max=1.0)
        chord = _sigmoid(bias) * (1 - share) + _sigmoid(bias - touch) * share
        return torch.where(reach < touch, chord, curve)


@final
class PortableEvidence(PortableMatch):
    """log-odds = c + κ L with L = ½ Σ_d [(σ₂²μ₁² + σ₁²μ₂² − (μ₁ − μ₂)²)/t − log t], t = σ₁² + σ₂² − σ₁²σ₂².

    Of mixtures, e^L is the mean over pairs of components. The last dimensions are none of z where `rarity` or `clarity`
    is there, first the one, then the other: with e = ρ(w₁ + w₂), w the mean of the first, L > 0 becomes L + eL/(L +
    |e|). η has its own c and κ where `self_log_odds` is there, without rarity and with ρ′ times the clarity.

    Args:
        numbers: `log_odds` c, `temper` κ; where they are set, `self_log_odds` and `self_temper`, `rarity` ρ and
            `clarity` ρ′.
    """

    def eta(self, mean: Tensor, variance: Tensor) -> Tensor:
        told = self.numbers
        latent = mean.shape[-1] - ("rarity" in told) - ("clarity" in told)
        factor = self._log_factor(mean[..., :latent], variance[..., :latent])
        if "self_log_odds" in told:
            clarity = told.get("clarity", 0.0) * mean[:, 0, -1]
            log_odds: Tensor = told["self_log_odds"] + told["self_temper"] * factor + clarity
            return (-log_odds).sigmoid()
        if "rarity" in told:
            factor = give_way(factor, 2 * told["rarity"] * mean[:, 0, latent])
        log_odds = told["log_odds"] + told["temper"] * factor
        return (-log_odds).sigmoid()

    def _log_factor(self, mean: Tensor, variance: Tensor) -> Tensor:
        """L of each embedding with itself, `(B,)`."""
        each = log_factor(mean.unsqueeze(2), variance.unsqueeze(2), mean.unsqueeze(1), variance.unsqueeze(1)).flatten(1)
        return each.logsumexp(1) - math.log(each.shape[1]) if each.shape[1] > 1 else each[:, 0]


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > 0 else math.exp(x) / (1 + math.exp(x))
