"""Σ_j w_j E[exp(−c_j ‖v‖²)] for many Gaussians v at once: the inner loop of the closed form.

For v ~ N(m, diag s),  E[exp(−c‖v‖²)] = Π_d (1 + 2c s_d)^(−1/2) exp(−c m_d² / (1 + 2c s_d)).

Value and gradient visit a few terms j at a time, few enough that what they hold stays in the cache; no tensor has all
pairs and all terms as axes. The dimensions come before the pairs, `(D, ...)`, because sums over a leading axis run at
the speed of memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

BLOCK = 2**16  # numbers an intermediate result may hold before terms are visited one at a time


def expected_gaussians(squares: Tensor, spreads: Tensor, widths: Tensor, weights: Tensor) -> Tensor:
    """Σ_j w_j E[exp(−c_j ‖v‖²)], `(...)`, from m² and s as `(D, ...)`, c and w as `(J,)`; differentiable in all four.

    >>> one = torch.ones(1, 3)
    >>> expected_gaussians(0 * one, 4 * one, torch.tensor([1.0]), torch.tensor([3.0]))  # 3 / √(1 + 2·4)
    tensor([1., 1., 1.])
    """
    result: Tensor = _ExpectedGaussians.apply(squares, spreads, widths, weights)  # type: ignore[no-untyped-call]
    return result


def _terms_at_once(pairs: Tensor, widths: Tensor, weights: Tensor) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Slices of the J terms, with their c and w shaped to broadcast over `(j, ...)`."""
    count = max(1, BLOCK // max(pairs.numel(), 1))
    shape = (-1, *(1 for _ in pairs.shape[1:]))
    for start in range(0, len(widths), count):
        some = slice(start, start + count)
        yield some, widths[some].view(shape), weights[some].view(shape)


def _terms(squares: Tensor, spreads: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """E[exp(−c‖v‖²)] as `(j, ...)`, and what its gradient needs: 1 + 2cs and m²/(1 + 2cs), `(j, D, ...)`."""
    stretch = (spreads * (2 * c).unsqueeze(1)).add_(1)
    ratio = squares / stretch
    # An overflow of the product is a term of zero, which is right: it would be below 1e-19.
    value = ratio.sum(1).mul_(-c).exp_().mul_(stretch.prod(1).rsqrt_())
    return value, stretch, ratio


class _ExpectedGaussians(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, squares: Tensor, spreads: Tensor, widths: Tensor, weights: Tensor) -> Tensor:
        ctx.save_for_backward(squares, spreads, widths, weights)
        total = torch.zeros_like(squares[0])
        for _, c, w in _terms_at_once(squares, widths, weights):
            total.add_(_terms(squares, spreads, c)[0].mul_(w).sum(0))
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        (grad,) = grads
        squares, spreads, widths, weights = ctx.saved_tensors
        to_squares, to_spreads = torch.zeros_like(squares), torch.zeros_like(spreads)
        to_widths, to_weights = torch.zeros_like(widths), torch.zeros_like(weights)
        for some, c, w in _terms_at_once(squares, widths, weights):
            value, stretch, ratio = _terms(squares, spreads, c)
            value.mul_(grad)
            to_weights[some] = value.flatten(1).sum(1)
            slope = value.mul_(w).unsqueeze(1) / stretch  # (j, D, ...): −∂/∂m_d² = c · slope_d
            if ctx.needs_input_grad[2]:
                to_widths[some] = -(slope * (ratio + spreads)).flatten(1).sum(1)
            slope.mul_(c.unsqueeze(1))
            to_squares.sub_(slope.sum(0))
            to_spreads.add_(slope.mul_(ratio.mul_((2 * c).unsqueeze(1)).sub_(1)).sum(0))
        return to_squares, to_spreads, to_widths, to_weights
