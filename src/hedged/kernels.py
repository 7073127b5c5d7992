"""Σ_j w_j E[exp(−κ_j ‖δ‖²)] for many Gaussians δ at once: the inner loop of the closed form.

For δ ~ N(m, diag s),  E[exp(−κ‖δ‖²)] = Π_d (1 + 2κ s_d)^(−1/2) exp(−κ m_d² / (1 + 2κ s_d)).

Value and gradient visit one term j after the other, so that no tensor has both the pairs and the terms as axes. The
dimensions come first, `(D, ...)`, because sums over a leading axis run at the speed of memory.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def expected_gaussians(squares: Tensor, spreads: Tensor, rates: Tensor, weights: Tensor) -> Tensor:
    """Σ_j w_j E[exp(−κ_j ‖δ‖²)], `(...)`, from m² and s as `(D, ...)`, κ and w as `(J,)`; differentiable in all four.

    >>> one = torch.ones(1, 3)
    >>> expected_gaussians(0 * one, 4 * one, torch.tensor([1.0]), torch.tensor([3.0]))  # 3 / √(1 + 2·4)
    tensor([1., 1., 1.])
    """
    result: Tensor = _ExpectedGaussians.apply(squares, spreads, rates, weights)  # type: ignore[no-untyped-call]
    return result


def _term(squares: Tensor, spreads: Tensor, rate: float) -> tuple[Tensor, Tensor, Tensor]:
    """E[exp(−κ‖δ‖²)] as `(...)`, and the two quantities its gradient needs: 1 + 2κs and m²/(1 + 2κs), `(D, ...)`."""
    stretch = (spreads * (2 * rate)).add_(1)
    ratio = squares / stretch
    # An overflow of the product is a term of zero, which is right: it would be below 1e-19.
    term = ratio.sum(0).mul_(-rate).exp_().mul_(stretch.prod(0).rsqrt_())
    return term, stretch, ratio


class _ExpectedGaussians(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, squares: Tensor, spreads: Tensor, rates: Tensor, weights: Tensor) -> Tensor:
        ctx.save_for_backward(squares, spreads, rates, weights)
        total = torch.zeros_like(squares[0])
        for rate, weight in zip(rates.tolist(), weights.tolist(), strict=True):
            total.add_(_term(squares, spreads, rate)[0], alpha=weight)
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        (grad,) = grads
        squares, spreads, rates, weights = ctx.saved_tensors
        to_squares, to_spreads = torch.zeros_like(squares), torch.zeros_like(spreads)
        to_rates, to_weights = torch.zeros_like(rates), torch.zeros_like(weights)
        for j, (rate, weight) in enumerate(zip(rates.tolist(), weights.tolist(), strict=True)):
            term, stretch, ratio = _term(squares, spreads, rate)
            term.mul_(grad)
            to_weights[j] = term.sum()
            slope = term.mul_(weight) / stretch  # (D, ...): −∂/∂m_d² = κ · slope_d
            to_squares.sub_(slope, alpha=rate)
            to_rates[j] = -(slope * (ratio + spreads)).sum()
            to_spreads.add_(slope.mul_(ratio.mul_(2 * rate).sub_(1)), alpha=rate)
        return to_squares, to_spreads, to_rates, to_weights
