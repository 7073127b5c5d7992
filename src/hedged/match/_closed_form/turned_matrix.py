"""The closed form for all pairs of two lists where covariances are not diagonal, in one compiled pass on a CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from hedged._parallel import share
from hedged.distributions import Distribution
from hedged.match._closed_form.expansion import ROUNDING, Expansion, arithmetic_dtype, expand
from hedged.match._closed_form.leaves import in_leaves
from hedged.match._closed_form.matrix import ROWS_EACH, blocks
from hedged.match._closed_form.turned import MOST
from hedged.match._closed_form.units import in_units, midst, plain, unit
from hedged.match._numbers import within

if TYPE_CHECKING:
    from hedged.match._closed_form.loops.turned_matrix import Items
    from hedged.match.curve import MatchCurve


@torch.no_grad()
def turned_matrix(z1: Distribution, z2: Distribution, curve: MatchCurve) -> Tensor:
    """p(m | x_i, x_j), `(N, M)`, as `closed_form_matrix` has it, for single Gaussians of any covariances.

    >>> from hedged import LowRankGaussian, MatchCurve
    >>> z = LowRankGaussian(torch.tensor([[0.0], [0.1], [9.0]]), torch.full((3, 1), 5e-5), torch.full((3, 1, 1), 7e-3))
    >>> turned_matrix(z, z, MatchCurve())[:2, :2] > 0.8
    tensor([[True, True],
            [True, True]])
    """
    from hedged.match._closed_form.loops.gaussians import STRIP  # late: numba is slow to import
    from hedged.match._closed_form.loops.turned_matrix import MOST_TURNED, turned_probabilities

    dtype, terms = torch.promote_types(z1.dtype, z2.dtype), expand(curve.bias)
    narrow = arithmetic_dtype(terms, z1.dim, dtype)
    centre, wide = midst(z2), torch.float64
    if z1.dim > MOST_TURNED:
        wide = narrow = _low_rank_dtype(terms, z1, z2, curve, narrow)
    weighty = torch.stack(terms)[:, terms.weights != 0].to(narrow).numpy()
    ends, numbers = weighty.dtype.type(within(dtype)), plain(curve, narrow)
    out = torch.from_numpy(np.empty((len(z1), len(z2)), weighty.dtype))
    for across in blocks(z2):
        listed = _items(z2[across], curve, centre, wide)
        order = in_leaves(np.ascontiguousarray(listed.mean.T), STRIP)
        columns = type(listed)(*(np.ascontiguousarray(x[..., order]) for x in listed))
        places = order + across.start
        for down in blocks(z1):
            rows = _items(z1[down], curve, centre, wide)
            part = out[down]
            share(turned_probabilities, len(part), ROWS_EACH, rows, columns, places, weighty, numbers, ends, part)
    return out.to(dtype)


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
