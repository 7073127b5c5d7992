"""The closed form for all pairs of two lists where covariances are not diagonal, in one compiled pass on a CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from hedged._parallel import share
from hedged.distributions import Distribution
from hedged.match._closed_form.expansion import ROUNDING, Expansion, arithmetic_dtype, closed_form_error, expand
from hedged.match._closed_form.leaves import in_leaves
from hedged.match._closed_form.matrix import ROWS_EACH, blocks
from hedged.match._closed_form.turned import chosen_logits
from hedged.match._closed_form.turned_pairs import MOST
from hedged.match._closed_form.units import in_units, midst, plain, unit
from hedged.match._numbers import within
from hedged.match._pairs import Matches, best

if TYPE_CHECKING:
    from hedged.match._closed_form.loops.turned_matrix import Items
    from hedged.match.curve import MatchCurve

PAIRS_AT_A_TIME = 2**20  # of probes and a whole gallery
CHOSEN_AT_A_TIME = 2**14  # pairs whose log-odds are worked out one by one


@torch.no_grad()
def turned_matrix(z1: Distribution, z2: Distribution, curve: MatchCurve) -> Tensor:
    """p(m | x_i, x_j), `(N, M)`, as `closed_form_matrix` has it, for single Gaussians of any covariances.

    >>> from hedged import LowRankGaussian, MatchCurve
    >>> z = LowRankGaussian(torch.tensor([[0.0], [0.1], [9.0]]), torch.full((3, 1), 5e-5), torch.full((3, 1, 1), 7e-3))
    >>> turned_matrix(z, z, MatchCurve())[:2, :2] > 0.8
    tensor([[True, True],
            [True, True]])
    """
    from hedged.match._closed_form.loops.turned_matrix import turned_probabilities  # late: numba is slow to import

    dtype = torch.promote_types(z1.dtype, z2.dtype)
    return _all_pairs(turned_probabilities, z1, z2, curve, within(dtype)).to(dtype)


@torch.no_grad()
def turned_logit_matrix(z1: Distribution, z2: Distribution, curve: MatchCurve) -> Tensor:
    """log p/(1 − p) of all pairs, `(N, M)`, as `turned_logit` has it: no pair is too far for its terms.

    >>> from hedged import LowRankGaussian, MatchCurve
    >>> z = LowRankGaussian(torch.tensor([[0.0], [99.0]]), torch.full((2, 1), 5e-5), torch.full((2, 1, 1), 7e-3))
    >>> turned_logit_matrix(z, z, MatchCurve().requires_grad_(False))[0, 1] < -900
    tensor(True)
    """
    from hedged.match._closed_form.loops.turned_matrix import turned_logits

    return _all_pairs(turned_logits, z1, z2, curve).to(torch.promote_types(z1.dtype, z2.dtype))


@torch.no_grad()
def turned_nearest(
    probes: Distribution, gallery: Distribution, curve: MatchCurve, k: int, exclude_self: bool
) -> Matches:
    """The k best matches by `turned_logit`: of all pairs p is known to within its error, of those that may be, exactly.

    p of `turned_matrix` and of `turned_logit` are each within `e` of the truth, so that none of the k best has one in
    the matrix that is less than the k-th there by more than 4e.
    """
    spare = 4 * closed_form_error(curve.bias.item(), torch.float32)
    found = []
    rows = max(PAIRS_AT_A_TIME // max(len(gallery), 1), 1)
    for start in range(0, len(probes), rows):
        part = probes[start : start + rows]
        own = torch.arange(len(part)), torch.arange(len(part)) + start
        p = turned_matrix(part, gallery, curve).double()
        if exclude_self:
            p[own] = -1
        least = p.topk(k).values[:, -1:] - spare
        is_near = least[:, 0] > 0
        logits = torch.full_like(p, -torch.inf)
        first, second = ((p >= least) & is_near[:, None]).nonzero().unbind(1)
        for at in range(0, len(first), CHOSEN_AT_A_TIME):
            some = slice(at, at + CHOSEN_AT_A_TIME)
            logits[first[some], second[some]] = chosen_logits(part, gallery, first[some], second[some], curve).double()
        if not is_near.all():
            logits[~is_near] = turned_logit_matrix(part[~is_near], gallery, curve).double()
        if exclude_self:
            logits[own] = -torch.inf
        found.append(best(logits, k))
    return Matches(*(torch.cat(column) for column in zip(*found, strict=True)))


def _all_pairs(
    loop: Callable[..., None], z1: Distribution, z2: Distribution, curve: MatchCurve, ends: tuple[float, ...] = ()
) -> Tensor:
    """What a loop writes of all pairs of two lists, `(N, M)`; `ends` are the least and the greatest value, if any."""
    from hedged.match._closed_form.loops.gaussians import STRIP
    from hedged.match._closed_form.loops.turned_matrix import MOST_TURNED

    dtype, terms = torch.promote_types(z1.dtype, z2.dtype), expand(curve.bias)
    narrow = arithmetic_dtype(terms, z1.dim, dtype)
    centre, wide = midst(z2), torch.float64
    if z1.dim > MOST_TURNED:
        wide = narrow = _low_rank_dtype(terms, z1, z2, curve, narrow)
    weighty = torch.stack(terms)[:, terms.weights != 0].to(narrow).numpy()
    numbers = plain(curve, narrow)
    given = (weighty, numbers, *([weighty.dtype.type(ends)] if ends else []))
    out = torch.from_numpy(np.empty((len(z1), len(z2)), weighty.dtype))
    for across in blocks(z2):
        listed = _items(z2[across], curve, centre, wide)
        order = in_leaves(np.ascontiguousarray(listed.mean.T), STRIP)
        columns = type(listed)(*(np.ascontiguousarray(x[..., order]) for x in listed))
        places = order + across.start
        for down in blocks(z1):
            rows = _items(z1[down], curve, centre, wide)
            part = out[down]
            share(loop, len(part), ROWS_EACH, rows, columns, places, *given, part)
    return out


def _items(z: Distribution, curve: MatchCurve, centre: Tensor, dtype: torch.dtype) -> Items:
    """A list in units of the curve, items last; covariances of a trace beyond half of `MOST` are shrunk to it."""
    from hedged.match._closed_form.loops.turned_matrix import Items

    z = z._map(Tensor.double)
    (own,), (factor,) = (x.unbind(1) for x in z.spreads())
    trace = own.sum(-1) + factor.square().sum((-1, -2))
    scale = torch.minimum(unit(curve, trace.dtype).square(), MOST / 2 / trace.clamp(min=torch.finfo(trace.dtype).tiny))
    own, factor = own * scale[:, None], factor * scale.sqrt()[:, None, None]
    widest = own.amax(-1) + factor.square().sum((-1, -2))
    mean = in_units(curve, z.mean - centre.double())
    return Items(*(x.to(dtype).movedim(0, -1).contiguous().numpy() for x in (mean, own, factor, trace * scale, widest)))


def _low_rank_dtype(
    terms: Expansion, z1: Distribution, z2: Distribution, curve: MatchCurve, narrow: torch.dtype
) -> torch.dtype:
    """The cheapest dtype in which what cancels in Woodbury's formula stays below `ROUNDING`.

    What `arithmetic_dtype` counts as ε, a term E ≤ (1 + 2c‖F‖²)^(−1/2) Π_d (1 + 2c s_d)^(−1/2) may lose 1 + 2c‖F‖²
    times, but no more than itself: at most the less of ε (1 + 2c‖F‖²) and ε^(1/3), times the product.
    """
    square, least = 0.0, torch.zeros(z1.dim, dtype=torch.float64)
    for own, factor in (z._map(Tensor.double).spreads() for z in (z1, z2)):
        square += float(factor.square().sum((-1, -2)).max()) if factor.numel() else 0.0
        least += own.flatten(0, -2).amin(0)
    twice = 2 * terms.widths * float(unit(curve, torch.float64)) ** 2
    volume = (1 + twice[:, None] * least).log().sum(-1).mul(-0.5).exp()
    half_ulps = (2 * z1.dim + 32) * torch.finfo(narrow).eps / 2
    lost = (half_ulps * (1 + twice * square)).clamp(max=half_ulps ** (1 / 3))
    return narrow if float((terms.weights.abs() * volume * lost).sum()) <= ROUNDING else torch.float64
