"""Σ_j w_j E[exp(−c_j ‖v‖²)] for many Gaussians v at once: the inner loop of the closed form.

For v ~ N(m, diag s),  E[exp(−c‖v‖²)] = Π_d (1 + 2c s_d)^(−1/2) exp(−c m_d² / (1 + 2c s_d)).

Value and gradient visit one term j after the other, so that no tensor has both the pairs and the terms as axes. The
dimensions come first, `(D, ...)`, because sums over a leading axis run at the speed of memory.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def expected_gaussians(squares: Tensor, spreads: Tensor, widths: Tensor, weights: Tensor) -> Tensor:
    """Σ_j w_j E[exp(−c_j ‖v‖²)], `(...)`, from m² and s as `(D, ...)`, c and w as `(J,)`; differentiable in all four.

    >>> one = torch.ones(1, 3)
    >>> expected_gaussians(0 * one, 4 * one, torch.tensor([1.0]), torch.tensor([3.0]))  # 3 / √(1 + 2·4)
    tensor([1., 1., 1.])
    """
    result: Tensor = _ExpectedGaussians.apply(squares, spreads, widths, weights)  # type: ignore[no-untyped-call]
    return result


def _term(squares: Tensor, spreads: Tensor, width: float) -> tuple[Tensor, Tensor, Tensor]:
    """E[exp(−c‖v‖²)] as `(...)`, and the two quantities its gradient needs: 1 + 2cs and m²/(1 + 2cs), `(D, ...)`."""
    stretch = (spreads * (2 * width)).add_(1)
    ratio = squares / stretch
    # An overflow of the product is a term of zero, which is right: it would be below 1e-19.
    term = ratio.sum(0).mul_(-width).exp_().mul_(stretch.prod(0).rsqrt_())
    return term, stretch, ratio


class _ExpectedGaussians(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, squares: Tensor, spreads: Tensor, widths: Tensor, weights: Tensor) -> Tensor:
        ctx.save_for_backward(squares, spreads, widths, weights)
        total = torch.zeros_like(squares[0])
        for width, weight in zip(widths.tolist(), weights.tolist(), strict=True):
            total.add_(_term(squares, spreads, width)[0], alpha=weight)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        (grad,) = grads
        squares, spreads, widths, weights = ctx.saved_tensors
        to_squares, to_spreads = torch.zeros_like(squares), torch.zeros_like(spreads)
        to_widths, to_weights = torch.zeros_like(widths), torch.zeros_like(weights)
        for j, (width, weight) in enumerate(zip(widths.tolist(), weights.tolist(), strict=True)):
            term, stretch, ratio = _term(squares, spreads, width)
            term.mul_(grad)
            to_weights[j] = term.sum()
            slope = term.mul_(weight) / stretch  # (D, ...): −∂/∂m_d² = c · slope_d
            to_squares.sub_(slope, alpha=width)
            if ctx.needs_input_grad[2]:
                to_widths[j] = -(slope * (ratio + spreads)).sum()
            to_spreads.add_(slope.mul_(ratio.mul_(2 * width).sub_(1)), alpha=width)
        return to_squares, to_spreads, to_widths, to_weights
