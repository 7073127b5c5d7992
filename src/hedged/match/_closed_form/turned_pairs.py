"""The closed form of pairs in many dimensions, whose covariances are diag v + FᵀF: sums of terms, with gradients.

A = I + 2cS is diag t + 2c FᵀF with t = 1 + 2cs: its determinant and its inverse are those of K = I + 2c F diag(1/t) Fᵀ,
a matrix as small as the rank (Woodbury). On a CPU the loops are compiled (`loops/turned_pairs.py`) and read the items
of a pair where they are; elsewhere, and where the widths of the terms have gradients, they are plain torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from hedged._parallel import share
from hedged._startup import needs_loops
from hedged.distributions import Distribution
from hedged.match._closed_form.elementwise import is_compiled
from hedged.match._closed_form.expansion import Expansion
from hedged.match._closed_form.units import in_units, unit

if TYPE_CHECKING:
    from hedged.match.curve import MatchCurve

MOST = 1e12  # the largest trace of S, in units of the curve: what is wider is shrunk to it
STRIPS_EACH = 8  # strips of pairs that are worth a thread of their own
BLOCKS = 8  # sums of slopes that are kept apart; at most so many threads


class LowRank(NamedTuple):
    """A batch of Gaussians `(...)`, in the units of a curve.

    Args:
        mean: `(..., D)`.
        own: v, `(..., D)`.
        factor: F, `(..., R, D)`.
    """

    mean: Tensor
    own: Tensor
    factor: Tensor


def square_unit(curve: MatchCurve, trace: Tensor, most: float) -> Tensor:
    """a², or what makes the trace of a covariance no more than `most`, `(...)`."""
    return torch.minimum(unit(curve, trace.dtype).square(), most / trace.clamp(min=torch.finfo(trace.dtype).tiny))


def low_rank(curve: MatchCurve, z: Distribution, centre: Tensor) -> LowRank:
    """The components of embeddings of double precision, `(..., C)`; a trace beyond half of `MOST` is shrunk to it."""
    mean, (own, factor) = z.parts()[0], z.spreads()
    own, factor = own.expand_as(mean), factor.expand(*mean.shape[:-1], -1, -1)
    scale = square_unit(curve, own.sum(-1) + factor.square().sum((-1, -2)), MOST / 2)
    return LowRank(in_units(curve, mean - centre), own * scale[..., None], factor * scale.sqrt()[..., None, None])


def low_rank_sums(one: LowRank, other: LowRank, first: Tensor, second: Tensor, terms: Expansion) -> Tensor:
    """Σ_j w_j E[exp(−c_j ‖v‖²)] and ‖m‖² + tr S of pairs, `(2, P)`, given the places of their items, `(P,)`.

    >>> items = LowRank(torch.tensor([[1.0, 0.0], [0.0, 0.0]]).double(), torch.zeros(2, 2).double(),
    ...                 torch.tensor([[[0.0, 2.0]], [[0.0, 0.0]]]).double())
    >>> terms, place = Expansion(torch.ones(1).double(), torch.ones(1).double()), torch.arange(2)
    >>> low_rank_sums(items, items, place[:1], place[1:], terms) * torch.tensor([[3 * torch.e], [1.0]])
    tensor([[1.0000],
            [5.0000]], dtype=torch.float64)
    """
    one, other = (_listed(rows) for rows in (one, other))
    work = len(first) * one.mean.shape[-1] * len(terms.widths)
    if is_compiled(one.mean) and not terms.widths.requires_grad and needs_loops(work):
        found: Tensor = _Pairs.apply(*one, *other, first, second, *terms)  # type: ignore[no-untyped-call]
        return found
    mean, own = one.mean[first] - other.mean[second], one.own[first] + other.own[second]
    factor = torch.cat([one.factor[first], other.factor[second]], dim=-2)
    value: Tensor = _OneByOne.apply(mean, own, factor, *terms)  # type: ignore[no-untyped-call]
    return torch.stack([value, mean.square().sum(-1) + own.sum(-1) + factor.square().sum((-1, -2))])


def _listed(rows: LowRank) -> LowRank:
    """A batch as one list: `(N, D)` and `(N, R, D)`."""
    count = rows.mean.shape[:-1].numel()
    return LowRank(*(x.reshape(count, *x.shape[len(rows.mean.shape) - 1 :]) for x in rows))


class _Pairs(torch.autograd.Function):
    """Both sums by compiled loops, from items `(N, D)`, `(N, D)` and `(N, R, D)` of two lists."""

    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> Tensor:
        from hedged.match._closed_form.loops.turned_pairs import PAIRS, sums  # late: numba is slow to import

        one, other, chosen, terms = _given(*tensors)
        ctx.save_for_backward(*tensors)
        out = torch.empty(2, len(tensors[6]), dtype=torch.float64)
        share(sums, -(-out.shape[1] // PAIRS), STRIPS_EACH, one, other, *chosen, *terms, out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        from hedged.match._closed_form.loops.turned_pairs import PAIRS, Rows, slopes

        tensors = ctx.saved_tensors
        one, other, chosen, terms = _given(*tensors)
        strips = -(-len(chosen[0]) // PAIRS)
        blocks = max(min(BLOCKS, strips * PAIRS // (len(one.mean) + len(other.mean))), 1)
        each = -(-strips // blocks)
        to = [torch.zeros(blocks, *x.shape, dtype=x.dtype) for x in tensors[:6]]
        to_weights = torch.zeros(blocks, len(terms[0]), dtype=torch.float64)
        rows = [Rows(*(x.numpy() for x in part)) for part in (to[:3], to[3:])]
        least = -(-STRIPS_EACH // max(each, 1))
        share(slopes, blocks, least, one, other, *chosen, *terms, grads[0].contiguous(), each, *rows, to_weights)
        return *(x.sum(0) for x in to), None, None, None, to_weights.sum(0)


def _given(*tensors: Tensor) -> tuple[Any, Any, list[Tensor], list[Tensor]]:
    """Two lists as the loops take them, the places of pairs, and the terms."""
    from hedged.match._closed_form.loops.turned_pairs import Rows

    flat = [x.detach().contiguous() for x in tensors]
    one, other = (Rows(*(x.numpy() for x in part)) for part in (flat[:3], flat[3:6]))
    return one, other, flat[6:8], flat[8:]


class _OneByOne(torch.autograd.Function):
    """The sum of terms, `(...)`, from m and s `(..., D)` and F `(..., R, D)`, in plain torch.

    No tensor has the pairs and the terms as axes: the gradient works one term after the other out again.
    """

    @staticmethod
    def forward(ctx: Any, mean: Tensor, own: Tensor, factor: Tensor, widths: Tensor, weights: Tensor) -> Tensor:
        ctx.save_for_backward(mean, own, factor, widths, weights)
        total = torch.zeros_like(mean[..., 0])
        for c, w in zip(widths, weights.tolist(), strict=True):
            total.add_(low_rank_term(mean, own, factor, c), alpha=w)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        *given, widths, weights = ctx.saved_tensors
        sums = [torch.zeros_like(x) for x in given]
        to_widths, to_weights = torch.zeros_like(widths), torch.zeros_like(weights)
        for j, w in enumerate(weights.tolist()):
            with torch.enable_grad():
                leaves = [x.detach().requires_grad_() for x in (*given, widths[j])]
                term = low_rank_term(*leaves)
            *slopes, to_widths[j] = torch.autograd.grad(term, leaves, w * grads[0])
            to_weights[j] = (term.detach() * grads[0]).sum()
            for total, slope in zip(sums, slopes, strict=True):
                total.add_(slope)
        return *sums, to_widths, to_weights


def low_rank_term(mean: Tensor, own: Tensor, factor: Tensor, c: Tensor) -> Tensor:
    """E[exp(−c‖v‖²)] for v ~ N(m, diag s + FᵀF), `(...)`, by elimination in K = I + 2c F diag(1/t) Fᵀ.

    >>> m, f = torch.tensor([1.0, 0.0]), torch.tensor([[0.0, 2.0]])  # e⁻¹ / √(1 + 2·4) = e⁻¹ / 3
    >>> low_rank_term(m, torch.zeros(2), f, torch.tensor(1.0)) * 3 * torch.e
    tensor(1.0000)
    """
    stretch = 1 + 2 * c * own
    weighed = factor / stretch.unsqueeze(-2)
    small = 2 * c * (weighed @ factor.mT) + torch.eye(factor.shape[-2], dtype=own.dtype, device=own.device)
    pull = (weighed @ mean.unsqueeze(-1)).squeeze(-1)
    square, log_volume = (mean.square() / stretch).sum(-1), stretch.log().sum(-1)
    for _ in range(factor.shape[-2]):  # one row of K after the other
        pivot, row = small[..., 0, 0], small[..., 0, 1:]
        share = pull[..., 0] / pivot
        square, log_volume = square - 2 * c * share * pull[..., 0], log_volume + pivot.log()
        pull = pull[..., 1:] - share.unsqueeze(-1) * row
        small = small[..., 1:, 1:] - row.unsqueeze(-1) * (row / pivot.unsqueeze(-1)).unsqueeze(-2)
    return torch.exp(-c * square.clamp(min=0) - 0.5 * log_volume)
