"""The closed form over all pairs of a batch at once: what training needs, in one compiled pass on a CPU."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from hedged.curve import MatchCurve
from hedged.distributions import Distribution
from hedged.expansion import arithmetic_dtype, expand
from hedged.threads import share
from hedged.units import curve_ends, in_units_of, midst

BLOCKS = 8  # parts of the matrix of pairs, each with sums of its own; at most so many threads


def summed_costs(z: Distribution, labels: Tensor, curve: MatchCurve) -> Tensor:
    """Σ −log p over the matching pairs of a batch and Σ −log(1 − p) over the others, `(2,)`, in closed form.

    `labels` are int64 `(B,)`. The same numbers and gradients as `ClosedForm` gives pair by pair, up to rounding, but
    for pairs that do not match and whose true p is certainly below 10⁻⁷: they count as nothing, where the closed form
    may give them as much as its certified error.

    >>> from hedged import Gaussian
    >>> z = Gaussian(torch.tensor([[0.0], [0.0], [1.0]]), torch.full((3, 1), 0.01))
    >>> summed_costs(z, torch.tensor([4, 4, 7]), MatchCurve()) > 0
    tensor([True, True])
    """
    terms = expand(curve.bias)
    wide = arithmetic_dtype(terms, z.dim, z.dtype)
    mean, variance = in_units_of(curve, z, midst(z), wide)
    end = curve.chord_end()
    costs: Tensor = _SummedCosts.apply(
        mean, variance, terms.weights.to(wide), curve.bias, terms.widths.detach().to(wide), labels, end
    )  # type: ignore[no-untyped-call]
    return costs.to(z.dtype)


class _SummedCosts(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        mean: Tensor,
        variance: Tensor,
        weights: Tensor,
        bias: Tensor,
        widths: Tensor,
        labels: Tensor,
        end: float,
    ) -> Tensor:
        from hedged.compiled.pairs import costs  # late: numba is slow to import

        curve = curve_ends(bias.item(), end)
        columns = [x.movedim(0, -1).contiguous() for x in (mean, variance)]  # (C, D, B)
        shapes = [(), columns[0].shape, columns[0].shape, weights.shape, ()]
        results = [torch.empty(BLOCKS, 2, *shape, dtype=torch.float64) for shape in shapes]
        share(costs, BLOCKS, 1, *columns, labels, torch.stack([widths, weights]), curve, *results)
        sums, *slopes = (x.sum(0) for x in results)
        ctx.save_for_backward(*slopes)
        ctx.dtypes = mean.dtype, bias.dtype
        return sums.to(mean.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        wide, narrow = ctx.dtypes
        slopes = (torch.tensordot(grads[0].double(), slope, 1) for slope in ctx.saved_tensors)
        to_mean, to_variance, to_weights, to_bias = slopes
        by_item = (x.movedim(-1, 0).to(wide) for x in (to_mean, to_variance))
        return *by_item, to_weights.to(wide), to_bias.to(narrow), None, None, None
