"""The closed form of pairs that broadcast, with gradients: log-odds, and the sum of terms they are made of.

For v ~ N(m, diag s),  E[exp(−c‖v‖²)] = Π_d (1 + 2c s_d)^(−1/2) exp(−c m_d² / (1 + 2c s_d)).

Value and gradient visit one term after the other, in buffers that are used again: no tensor has the pairs and the terms
as axes, and what is worked on stays in the cache. The dimensions come before the pairs, `(D, ...)`, so that each is one
stretch of memory. On a CPU the loops are compiled (hedged._compiled); elsewhere, and where that does not pay
(hedged._startup), they are plain torch.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import logsigmoid

from hedged._parallel import share
from hedged._startup import needs_loops
from hedged.distributions import Distribution
from hedged.match._closed_form.expansion import Expansion, arithmetic_dtype, expand
from hedged.match._closed_form.units import in_square_units, in_units, too_small
from hedged.match._numbers import log_odds

if TYPE_CHECKING:
    from hedged.match.curve import MatchCurve

STRIPS_EACH = 32  # strips of pairs that are worth a thread of their own


def closed_form_logit(z1: Distribution, z2: Distribution, curve: MatchCurve) -> Tensor:
    """log p/(1 − p) of pairs, broadcast over the batch dimensions `(...)`, with gradients."""
    dtype = torch.promote_types(z1.dtype, z2.dtype)
    terms = expand(curve.bias)
    wide = arithmetic_dtype(terms, z1.dim, dtype)
    log_p = _log_expectation(z1.to(wide), z2.to(wide), curve, terms)
    return log_odds(torch.minimum(log_p, logsigmoid(curve.bias.to(wide)))).to(dtype)


def _log_expectation(z1: Distribution, z2: Distribution, curve: MatchCurve, terms: Expansion) -> Tensor:
    """log E[σ(b − a‖δ‖)] over δ = z₁ − z₂, `(...)`."""
    (mean1, variance1), (mean2, variance2) = (map(_axes_first, z.parts()) for z in (z1, z2))
    squares = in_units(curve, mean1.unsqueeze(2) - mean2.unsqueeze(1)).square()  # (D, C₁, C₂, ...)
    variance1, variance2 = (in_square_units(curve, v) for v in (variance1, variance2))
    spreads = variance1.unsqueeze(2) + variance2.unsqueeze(1)
    log_p = _log_expected_curve(squares, spreads, curve, terms).flatten(0, 1)
    return log_p.logsumexp(0) - math.log(len(log_p)) if len(log_p) > 1 else log_p[0]


def _axes_first(x: Tensor) -> Tensor:
    """`(..., C, D)` as `(D, C, ...)`, the layout of `expected_gaussians`."""
    return x.movedim((-1, -2), (0, 1)).contiguous()


def _log_expected_curve(squares: Tensor, spreads: Tensor, curve: MatchCurve, terms: Expansion) -> Tensor:
    """log E[σ(b − ‖v‖)] for v ~ N(m, diag s), given m² and s as `(D, ...)`; the result is `(...)`."""
    dtype = squares.dtype
    value = expected_gaussians(squares, spreads, terms.widths.to(squares), terms.weights.to(squares))
    tiny = too_small(dtype)
    log_value = torch.where(value > tiny, value.clamp(min=tiny).log(), -torch.inf)
    return torch.maximum(log_value, curve.log_floor((squares + spreads).sum(0).clamp(min=tiny).sqrt()))


def expected_gaussians(squares: Tensor, spreads: Tensor, widths: Tensor, weights: Tensor) -> Tensor:
    """Σ_j w_j E[exp(−c_j ‖v‖²)], `(...)`, from m² and s as `(D, ...)`, c and w as `(J,)`; differentiable in all four.

    >>> one = torch.ones(1, 3)  # 3 / √(1 + 2·4) = 1
    >>> expected_gaussians(0 * one, 4 * one, torch.tensor([1.0]), torch.tensor([3.0])).round(decimals=5)
    tensor([1., 1., 1.])
    """
    result: Tensor = _ExpectedGaussians.apply(squares, spreads, widths, weights)  # type: ignore[no-untyped-call]
    return result


def _exp_(x: Tensor) -> Tensor:
    """exp(x) in place for x ≤ 0, and exactly 0 where it is next to nothing: subnormal numbers are ten times slower."""
    smallest = math.log(torch.finfo(x.dtype).tiny) + 7
    return torch.threshold_(x.clamp_(min=smallest - 1).exp_(), math.exp(smallest), 0.0)


def is_compiled(x: Tensor) -> bool:
    """Whether there are compiled loops for such a tensor."""
    return x.dtype in (torch.float32, torch.float64) and x.device.type == "cpu"


def _compiled_value(squares: Tensor, spreads: Tensor, widths: Tensor, weights: Tensor) -> Tensor:
    from hedged.match._closed_form.loops.gaussians import STRIP, expected  # late: numba is slow to import

    out = torch.empty_like(squares[0], memory_format=torch.contiguous_format)
    strips = -(-out.numel() // STRIP)
    share(expected, strips, STRIPS_EACH, *_flat(squares, spreads), widths, weights, out.view(-1))
    return out


def _compiled_gradients(
    squares: Tensor, spreads: Tensor, widths: Tensor, weights: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor, None, Tensor]:
    from hedged.match._closed_form.loops.gaussians import STRIP, gradients

    to_squares, to_spreads = (torch.empty(x.shape, dtype=x.dtype) for x in (squares, spreads))
    strips = -(-grad.numel() // STRIP)
    to_weights = torch.empty(strips, len(weights), dtype=weights.dtype)
    given = (*_flat(squares, spreads), widths, weights, grad.contiguous().view(-1))
    share(gradients, strips, STRIPS_EACH, *given, *_flat(to_squares, to_spreads), to_weights)
    return to_squares, to_spreads, None, to_weights.sum(0)


def _flat(*tensors: Tensor) -> tuple[Tensor, ...]:
    """`(D, ...)` as `(D, P)`."""
    return tuple(x.contiguous().view(len(x), -1) for x in tensors)


class _ExpectedGaussians(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, squares: Tensor, spreads: Tensor, widths: Tensor, weights: Tensor) -> Tensor:
        ctx.save_for_backward(squares, spreads, widths, weights)
        if is_compiled(squares) and needs_loops(squares.numel() * len(widths)):
            return _compiled_value(squares, spreads, widths, weights)
        total, one = torch.zeros_like(squares[0]), squares.new_ones(())
        exponent, volume, stretch, ratio = (torch.empty_like(total) for _ in range(4))
        for c, w in zip(widths.tolist(), weights.tolist(), strict=True):
            exponent.zero_()
            volume.fill_(1)
            for square, spread in zip(squares, spreads, strict=True):
                torch.add(one, spread, alpha=2 * c, out=stretch)
                exponent.add_(torch.div(square, stretch, out=ratio))
                volume.mul_(stretch)  # if it overflows, the term is zero, as it should be: it is below 1e-19
            total.add_(_exp_(exponent.mul_(-c)).mul_(volume.rsqrt_()), alpha=w)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
        (grad,) = grads
        squares, spreads, widths, weights = ctx.saved_tensors
        if is_compiled(squares) and not ctx.needs_input_grad[2] and needs_loops(squares.numel() * len(widths)):
            return _compiled_gradients(squares, spreads, widths, weights, grad)
        to_squares, to_spreads = torch.zeros_like(squares), torch.zeros_like(spreads)
        to_widths, to_weights = torch.zeros_like(widths), torch.zeros_like(weights)
        stretch, ratio = torch.empty_like(squares), torch.empty_like(squares)
        slope, one = torch.empty_like(grad), squares.new_ones(())
        for j, (c, w) in enumerate(zip(widths.tolist(), weights.tolist(), strict=True)):
            torch.add(one, spreads, alpha=2 * c, out=stretch)
            torch.div(squares, stretch, out=ratio)
            term = _exp_(ratio.sum(0).mul_(-c)).mul_(stretch.prod(0).rsqrt_()).mul_(grad)
            to_weights[j] = term.sum()
            term.mul_(w * c)
            if ctx.needs_input_grad[2]:
                to_widths[j] = -(term / stretch * (ratio + spreads)).sum() / c
            for d in range(len(squares)):
                torch.div(term, stretch[d], out=slope)  # −∂/∂m_d²
                to_squares[d].sub_(slope)
                to_spreads[d].add_(slope.mul_(ratio[d].mul_(2 * c).sub_(1)))
        return to_squares, to_spreads, to_widths, to_weights
