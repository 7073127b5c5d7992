"""The closed form over all pairs of a batch at once: what training needs, in one compiled pass on a CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from hedged._parallel import share
from hedged.distributions import Distribution
from hedged.match._closed_form.expansion import Terms, arithmetic_dtype, terms_at
from hedged.match._closed_form.loops.limits import FARTHEST, PlainCurve
from hedged.match._closed_form.units import in_units_of, midst, plain

if TYPE_CHECKING:
    from hedged.match.curve import MatchCurve

BLOCKS = 8  # parts of the matrix of pairs, each with sums of its own; at most so many threads
PAIRS_EACH = 16_384  # pairs of components that are worth a thread of their own


def closed_form_pair_costs(z: Distribution, labels: Tensor, curve: MatchCurve) -> Tensor:
    """Σ −log p over the matching pairs of a batch and Σ −log(1 − p) over the others, `(2,)`, in closed form.

    `labels` are int64 `(B,)`. The same numbers and gradients as `ClosedForm` gives pair by pair, up to rounding, but
    for pairs that do not match and whose true p is certainly below 10⁻⁷: they count as nothing, where the closed form
    may give them as much as its certified error.

    >>> from hedged import Gaussian, MatchCurve
    >>> z = Gaussian(torch.tensor([[0.0], [0.0], [1.0]]), torch.full((3, 1), 0.01))
    >>> closed_form_pair_costs(z, torch.tensor([4, 4, 7]), MatchCurve()) > 0
    tensor([True, True])
    """
    terms = terms_at(curve.bias.item())
    with torch.no_grad():  # the function below has their slopes
        units = in_units_of(curve, z, midst(z), arithmetic_dtype(terms, z.dim, z.dtype))
    curves = plain(curve), plain(curve, units[0].dtype)
    costs: Tensor = _PairCosts.apply(*z.parts(), curve.scale, curve.bias, *units, labels, terms, curves)  # type: ignore[no-untyped-call]
    return costs.to(z.dtype)


class _PairCosts(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        mean: Tensor,
        variance: Tensor,
        scale: Tensor,
        bias: Tensor,
        near: Tensor,
        wide: Tensor,
        labels: Tensor,
        terms: Terms,
        curves: tuple[PlainCurve, PlainCurve],
    ) -> Tensor:
        from hedged.match._closed_form.loops.pairs import costs  # late: numba is slow to import

        columns = [x.movedim(0, -1).contiguous() for x in (near, wide)]  # (C, D, B)
        narrow = torch.from_numpy(np.stack(terms[:2])).to(near.dtype)
        results = torch.empty(BLOCKS, 2, 2 + len(terms.weights) + 2 * near.numel(), dtype=torch.float64)
        pairs = max((len(near) * near.shape[1]) ** 2 // 2, 1)
        least = -(-BLOCKS * PAIRS_EACH // pairs)
        share(costs, BLOCKS, least, *columns, labels, narrow, *curves, results)
        sums, to_bias, to_weights, to_units = results.sum(0).tensor_split((1, 2, 2 + len(terms.weights)), 1)
        to_bias += to_weights @ torch.from_numpy(terms.to_weights)[:, None]
        ctx.save_for_backward(to_bias, to_units, *columns, scale)
        ctx.like = mean, bias
        return sums[:, 0].to(near.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """From slopes in a (μ − centre) and a² σ² to those in μ, σ² and a; what was cut has none."""
        mean, bias = ctx.like
        to_bias, to_units, near, wide, scale = ctx.saved_tensors
        a = min(max(scale.item(), 1 / FARTHEST), FARTHEST)
        weights = grads[0].double()
        to_near, to_wide = (weights @ to_units).view(2, *near.shape)
        if near.abs().max() >= FARTHEST or wide.max() >= FARTHEST**2:
            to_near, to_wide = to_near * (near.abs() < FARTHEST), to_wide * (wide < FARTHEST**2)
        to_scale = ((to_near * near).sum() + 2 * (to_wide * wide).sum()) / a * (a == scale.item())
        to_mean, to_variance = ((x * by).movedim(-1, 0).to(mean.dtype) for x, by in ((to_near, a), (to_wide, a * a)))
        to_curve = to_scale.to(scale), (weights @ to_bias)[0].to(bias)
        return to_mean, to_variance, *to_curve, *[None] * 5
