"""The closed form over all pairs of a batch at once: what training needs, in one compiled pass on a CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from hedged.curve import MatchCurve
from hedged.distributions import Distribution
from hedged.expansion import Terms, arithmetic_dtype, terms_at
from hedged.threads import share
from hedged.units import curve_ends, in_units_of, midst

BLOCKS = 8  # parts of the matrix of pairs, each with sums of its own; at most so many threads
PAIRS_EACH = 16_384  # pairs of components that are worth a thread of their own


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
    terms = terms_at(curve.bias.item())
    mean, variance = in_units_of(curve, z, midst(z), arithmetic_dtype(terms, z.dim, z.dtype))
    costs: Tensor = _SummedCosts.apply(mean, variance, curve.bias, labels, terms, curve.chord_end())  # type: ignore[no-untyped-call]
    return costs.to(z.dtype)


class _SummedCosts(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, mean: Tensor, variance: Tensor, bias: Tensor, labels: Tensor, terms: Terms, end: float
    ) -> Tensor:
        from hedged.compiled.pairs import costs  # late: numba is slow to import

        columns = [x.movedim(0, -1).contiguous() for x in (mean, variance)]  # (C, D, B)
        narrow = torch.from_numpy(np.stack(terms[:2])).to(mean.dtype)
        results = torch.empty(BLOCKS, 2, 2 + len(terms.weights) + 2 * mean.numel(), dtype=torch.float64)
        pairs = max((len(mean) * mean.shape[1]) ** 2 // 2, 1)
        least = -(-BLOCKS * PAIRS_EACH // pairs)
        share(costs, BLOCKS, least, *columns, labels, narrow, curve_ends(bias.item(), end), results)
        found = results.sum(0)
        sums, to_bias, to_weights, to_items = found.tensor_split((1, 2, 2 + len(terms.weights)), 1)
        to_bias += to_weights @ torch.from_numpy(terms.to_weights)[:, None]
        ctx.save_for_backward(to_bias, to_items)
        ctx.like = mean, bias
        return sums[:, 0].to(mean.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        mean, bias = ctx.like
        to_bias, to_items = (grads[0].double() @ slopes for slopes in ctx.saved_tensors)
        by_item = to_items.view(2, *mean.shape[1:], len(mean)).movedim(-1, 1).to(mean.dtype)
        return *by_item, to_bias[0].to(bias), None, None, None
