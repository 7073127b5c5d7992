"""The closed form where covariances are not diagonal: pairs that broadcast, with gradients.

For v ~ N(m, S),  E[exp(−c‖v‖²)] = |A|^(−1/2) exp(−c mᵀA⁻¹m)  with  A = I + 2cS. In up to four dimensions each pair is
turned into the eigenbasis of its S, once for all terms: there it is the sum that diagonal covariances have. In more, A
is as good as a matrix as small as the rank (`turned_pairs.py`).

The arithmetic is double. S is known to ε‖S‖ only, of which an eigenvalue near 0 has its share; a term is moved by that
at most like ε √(2c‖S‖), and beyond ‖S‖ = `MOST` no p is more than 10⁻⁵ (docs/closed-form.md).
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import logsigmoid

from hedged._parallel import share
from hedged._startup import needs_loops
from hedged.distributions import MOST_FULL, Distribution
from hedged.match import _pairs
from hedged.match._closed_form.elementwise import STRIPS_EACH, expected_gaussians, is_compiled
from hedged.match._closed_form.expansion import Expansion, arithmetic_dtype, expand, is_tabulated
from hedged.match._closed_form.loops.limits import LOSS_FAR
from hedged.match._closed_form.turned_pairs import MOST, low_rank, low_rank_sums, square_unit
from hedged.match._closed_form.units import in_units, midst, too_small, unit
from hedged.match._numbers import cross_entropy, log_odds

if TYPE_CHECKING:
    from hedged.match.curve import MatchCurve

SWEEPS = 12  # of rotations, at most: four dimensions take about five
SETTLED = 1e-15  # of the trace: covariances below it are none


def turned_logit(z1: Distribution, z2: Distribution, curve: MatchCurve) -> Tensor:
    """log p/(1 − p) of pairs, broadcast over the batch dimensions `(...)`, with gradients."""
    dtype, terms = torch.promote_types(z1.dtype, z2.dtype), _terms(curve)
    one, other = (z._map(Tensor.double) for z in (z1, z2))
    if z1.dim <= MOST_FULL:
        mean = in_units(curve, one.parts()[0].unsqueeze(-2) - other.parts()[0].unsqueeze(-3))  # (..., C₁, C₂, D)
        covariance = one.covariances().unsqueeze(-3) + other.covariances().unsqueeze(-4)
        trace = covariance.diagonal(dim1=-2, dim2=-1).sum(-1)
        scale = square_unit(curve, trace, MOST)
        narrow = arithmetic_dtype(terms, z1.dim, dtype)
        value = _Turned.apply(mean, covariance * scale[..., None, None], *terms, narrow)  # type: ignore[no-untyped-call]
        reach = mean.square().sum(-1) + trace * scale
    else:
        these, those = (low_rank(curve, z, midst(other)) for z in (one, other))
        first, second = _places(these.mean.shape[:-1], those.mean.shape[:-1])
        value, reach = low_rank_sums(these, those, first.flatten(), second.flatten(), terms).view(2, *first.shape)
    return _log_odds(value, reach, curve).to(dtype)


def turned_pair_costs(z: Distribution, labels: Tensor, curve: MatchCurve) -> Tensor:
    """Σ −log p over the matching pairs of a batch and Σ −log(1 − p) over the others, `(2,)`, with gradients.

    As `closed_form_pair_costs`: pairs that do not match and whose p is certainly below 10⁻⁷ count as nothing.
    """
    first, second, match = _pairs.pairs_of(labels)
    near = match | (_log_bound(z, first, second, curve) > LOSS_FAR)
    first, second, match = first[near], second[near], match[near]
    costs = cross_entropy(chosen_logits(z, z, first, second, curve), match)
    return torch.stack([torch.where(mask, costs, 0).sum() for mask in (match, ~match)])


def chosen_logits(z1: Distribution, z2: Distribution, first: Tensor, second: Tensor, curve: MatchCurve) -> Tensor:
    """The log-odds of pairs of two lists of single Gaussians, `(P,)`, given their places in the lists, with gradients.

    In many dimensions no copies of the items are made.
    """
    if z1.dim <= MOST_FULL:
        return turned_logit(z1.take(first), z2.take(second), curve)
    dtype, terms = torch.promote_types(z1.dtype, z2.dtype), _terms(curve)
    one, other = (z._map(Tensor.double) for z in (z1, z2))
    these, those = (low_rank(curve, z, midst(other)) for z in (one, other))
    value, reach = low_rank_sums(these, those, first, second, terms)[:, :, None, None]
    return _log_odds(value, reach, curve).to(dtype)


@torch.no_grad()
def _log_bound(z: Distribution, first: Tensor, second: Tensor, curve: MatchCurve) -> Tensor:
    """A bound from above on log p of pairs of items, `(P,)`, as in `loops/bounds.py`, from ‖m‖² and mᵀSm.

    Both are sums of products of matrices; where all digits cancel, a pair is near.
    """
    z, scale = z._map(Tensor.double), unit(curve, torch.float64)
    (own,), (factor,) = (x.unbind(1) for x in z.spreads())
    mean = z.mean - midst(z)
    squares = mean.square()
    along = (own * squares).sum(-1, keepdim=True) + own @ squares.T - 2 * (own * mean) @ mean.T
    along += ((factor * mean[:, None]).sum(-1, keepdim=True) - factor @ mean.T).square().sum(1)
    size = squares.sum(-1)[:, None] + squares.sum(-1)
    length = size - 2 * mean @ mean.T
    length, along = length.clamp(min=1e-300)[first, second], (along + along.T)[first, second].clamp(min=0)
    spread, beyond = along / length * scale**2, (length.sqrt() * scale - curve.bias.double()).clamp(min=0)
    near = 0.5 * spread - beyond
    bound = torch.where(spread <= beyond, near, -0.5 * beyond.square() / spread.clamp(min=1e-300))
    return bound.masked_fill_(length <= 1e-9 * size[first, second], 0.0)


def _places(shape1: torch.Size, shape2: torch.Size) -> tuple[Tensor, Tensor]:
    """Which components of two batches `(..., C₁)` and `(..., C₂)` are compared, counted through: `(..., C₁, C₂)`."""
    first = torch.arange(shape1.numel()).view(*shape1, 1)
    second = torch.arange(shape2.numel()).view(*shape2[:-1], 1, shape2[-1])
    zeros = torch.zeros_like(first) + torch.zeros_like(second)
    return first + zeros, second + zeros


def _terms(curve: MatchCurve) -> Expansion:
    terms = expand(curve.bias)
    if is_tabulated(curve.bias.item()):  # the widths do not depend on b
        return terms._replace(widths=terms.widths.detach())
    return terms


def _log_odds(value: Tensor, reach: Tensor, curve: MatchCurve) -> Tensor:
    """log p/(1 − p), `(...)`, from the sums and ‖m‖² + tr S of pairs of components, `(..., C₁, C₂)`.

    None is below Jensen's bound.
    """
    tiny = too_small(value.dtype)
    log_value = torch.where(value > tiny, value.clamp(min=tiny).log(), -torch.inf)
    each = torch.maximum(log_value, curve.log_floor(reach.clamp(min=tiny).sqrt())).flatten(-2)
    log_p = each.logsumexp(-1) - math.log(each.shape[-1]) if each.shape[-1] > 1 else each[..., 0]
    return log_odds(torch.minimum(log_p, logsigmoid(curve.bias.to(log_p))))


def eigenbasis(covariance: Tensor) -> tuple[Tensor, Tensor]:
    """s and Q of S = Q diag(s) Qᵀ, `(D, ...)` and `(D, D, ...)`, of small matrices `(..., D, D)`: Jacobi's rotations.

    All matrices are turned at once, so that a million small ones take no longer than their arithmetic. Two dimensions
    need one rotation.

    >>> s, q = eigenbasis(torch.tensor([[[2.0, 1.0], [1.0, 2.0]]]))
    >>> s.flatten().tolist(), q.abs()[0, 0].item()
    ([1.0, 3.0], 0.7071...)
    """
    dim = covariance.shape[-1]
    a = {(i, k): covariance[..., i, k].clone() for i in range(dim) for k in range(i, dim)}
    one, zero = torch.ones_like(a[0, 0]), torch.zeros_like(a[0, 0])
    q = [[one if i == k else zero for k in range(dim)] for i in range(dim)]
    for _ in range(1 if dim <= 2 else SWEEPS):
        for i, k in combinations(range(dim), 2):
            _rotate(a, q, i, k)
        if dim > 2 and _are_settled(a, dim):
            break
    return torch.stack([a[i, i].clamp(min=0) for i in range(dim)]), torch.stack([torch.stack(row) for row in q])


def _rotate(a: dict[tuple[int, int], Tensor], q: list[list[Tensor]], i: int, k: int) -> None:
    """Turn the axes i < k so that they no longer covary."""
    gap, twice = a[k, k] - a[i, i], 2 * a[i, k]
    length = (gap.abs() + torch.hypot(gap, twice)).clamp(min=torch.finfo(gap.dtype).tiny)
    tangent = torch.where(gap < 0, -twice, twice) / length
    cosine = (1 + tangent.square()).rsqrt()
    sine = tangent * cosine
    shift = tangent * a[i, k]
    a[i, i], a[k, k], a[i, k] = a[i, i] - shift, a[k, k] + shift, torch.zeros_like(shift)
    for j in range(len(q)):
        if j not in (i, k):
            at, beside = (min(i, j), max(i, j)), (min(j, k), max(j, k))
            a[at], a[beside] = cosine * a[at] - sine * a[beside], sine * a[at] + cosine * a[beside]
        q[j][i], q[j][k] = cosine * q[j][i] - sine * q[j][k], sine * q[j][i] + cosine * q[j][k]


def _are_settled(a: dict[tuple[int, int], Tensor], dim: int) -> bool:
    trace = torch.stack([a[i, i] for i in range(dim)]).sum(0)
    left = torch.stack([a[pair].abs() for pair in combinations(range(dim), 2)]).amax(0)
    return bool((left <= SETTLED * trace).all())


class _Turned(torch.autograd.Function):
    """Σ_j w_j E[exp(−c_j ‖v‖²)] for v ~ N(m, S), `(...)`, from m `(..., D)` and S `(..., D, D)`, D small."""

    @staticmethod
    def forward(
        ctx: Any, mean: Tensor, covariance: Tensor, widths: Tensor, weights: Tensor, narrow: torch.dtype
    ) -> Tensor:
        spreads, axes = eigenbasis(covariance)
        turned = (axes * mean.movedim(-1, 0).unsqueeze(1)).sum(0)  # Qᵀm, (D, ...)
        ctx.save_for_backward(turned, spreads, axes, widths, weights)
        squares = turned.square().to(narrow)
        given = squares, spreads.to(narrow), widths.to(narrow), weights.to(narrow)
        return expected_gaussians(*given).to(mean.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """Back to the axes that were given: ∂/∂m = Q ∂/∂(Qᵀm), ∂/∂S = Q G Qᵀ.

        G has the slopes in s on its diagonal, and beside it the slopes Σ_j w_j 2c_j² E_j m_i m_k / (t_i t_k).
        """
        turned, spreads, axes, widths, weights = ctx.saved_tensors
        with torch.enable_grad():
            needs = (True, True, ctx.needs_input_grad[2], True)
            tensors = (turned.square(), spreads, widths, weights)
            given = [x.detach().requires_grad_(needed) for x, needed in zip(tensors, needs, strict=True)]
            value = expected_gaussians(*given)
        wanted = [x for x in given if x.requires_grad]
        to_squares, to_spreads, *rest, to_weights = torch.autograd.grad(value, wanted, grads[0])
        to_widths = rest[0] if rest else None
        along = axes * (2 * turned * to_squares)
        slopes = (to_spreads * axes).unsqueeze(1) * axes  # (i, k, D, ...), summed over the eigenvectors below
        to_covariance = slopes.sum(2)
        for i, k in combinations(range(len(turned)), 2):
            beside = _slope_beside(i, k, turned, spreads, widths, weights) * grads[0]
            both = axes[:, i].unsqueeze(1) * axes[:, k] * beside
            to_covariance = to_covariance + both + both.transpose(0, 1)
        return along.sum(1).movedim(0, -1), to_covariance.movedim((0, 1), (-2, -1)), to_widths, to_weights, None


def _slope_beside(i: int, k: int, turned: Tensor, spreads: Tensor, widths: Tensor, weights: Tensor) -> Tensor:
    """m_i m_k Σ_j w_j 2c_j² E_j / (t_i t_k), `(...)`: the slope in a covariance that is 0 in the eigenbasis."""
    squares, total = turned.square(), torch.zeros_like(turned[0])
    if is_compiled(turned) and needs_loops(turned.numel() * len(widths)):
        from hedged.match._closed_form.loops.gaussians import STRIP  # late: numba is slow to import
        from hedged.match._closed_form.loops.turned import beside

        flat = [x.contiguous().view(len(x), -1) for x in (squares, spreads)]
        strips = -(-total.numel() // STRIP)
        share(beside, strips, STRIPS_EACH, *flat, widths, weights, i, k, total.view(-1))
        return turned[i] * turned[k] * total
    for c, w in zip(widths.tolist(), weights.tolist(), strict=True):
        stretch = 1 + 2 * c * spreads
        volume = stretch.prod(0)
        rest = (squares / stretch).sum(0).mul_(-c).exp_().mul_(volume.rsqrt())
        total.add_(rest.div_(stretch[i] * stretch[k]), alpha=2 * w * c * c)
    return turned[i] * turned[k] * total
