"""All pairs of two lists where each item has one variance for all dimensions: a product of matrices, then terms.

‖m‖² = ‖x‖² + ‖y‖² − 2 xᵀy cancels where two items are near each other. In single precision that would cost p up to a
hundredth, so products are made in double precision, of means less their midst: ‖m‖² is then off by at most
(D + 4)·2⁻⁵² (‖x‖ + ‖y‖)², and p by a quarter of the root of that, or less. Where even that is too much, the general
loop takes over.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from hedged._parallel import share
from hedged.distributions import Distribution
from hedged.match._closed_form.expansion import arithmetic_dtype, expand
from hedged.match._closed_form.leaves import in_leaves
from hedged.match._closed_form.units import in_units_of, midst, plain
from hedged.match._numbers import within

if TYPE_CHECKING:
    from hedged.match.curve import MatchCurve

LEAST_DIM = 6  # from which on a product of matrices pays
TILE_ROWS, TILE_COLUMNS = 256, 2048  # pairs worked out at a time: their products stay in a core's cache
ROWS_EACH = 16  # rows that are worth a thread of their own
AS_EXACT_AS = 16  # dimensions in which the general loop may round 64 half-ulps of a term; here it is 40 in any number
LOST = 1.5e-5  # of p by products: 40 half-ulps of terms and this are below `ROUNDING`


def have_one_variance(*embeddings: Distribution) -> bool:
    """Whether each item is as wide in all dimensions, and there are enough of these for a product of matrices to pay.

    >>> from hedged import Gaussian
    >>> have_one_variance(Gaussian(torch.zeros(3, 8), torch.ones(3, 1)))
    True
    """
    if any(z.n_components > 1 or z.dim < LEAST_DIM or not len(z) for z in embeddings):
        return False
    return all(bool((v == v[..., :1]).all()) for v in (z.variance for z in embeddings))


def keeps_distances(z1: Distribution, z2: Distribution, curve: MatchCurve) -> bool:
    """Whether distances of neighbours survive in a product of matrices: if nothing is too far from the midst."""
    centre, scale = midst(z2).double(), float(curve.scale)
    farthest = scale * sum(float((z.mean.double() - centre).norm(dim=1).max()) for z in (z1, z2))
    return farthest * math.sqrt((z1.dim + 4) * torch.finfo(torch.float64).eps) / 4 <= LOST


@torch.no_grad()
def spherical_matrix(z1: Distribution, z2: Distribution, curve: MatchCurve) -> Tensor:
    """p(m | x_i, x_j), `(N, M)`, as `closed_form_matrix` has it, of items with one variance each.

    >>> from hedged import Gaussian, MatchCurve
    >>> z = Gaussian(torch.eye(8)[:3], torch.full((3, 1), 1e-4))
    >>> spherical_matrix(z, z, MatchCurve()).diagonal() > 0.8
    tensor([True, True, True])
    """
    from hedged.match._closed_form.loops.gaussians import STRIP  # late: numba is slow to import
    from hedged.match._closed_form.loops.spherical import spherical_probabilities

    dtype, terms = torch.promote_types(z1.dtype, z2.dtype), expand(curve.bias)
    wide = arithmetic_dtype(terms, AS_EXACT_AS, dtype)
    weighty = torch.stack(terms)[:, terms.weights != 0].to(wide)
    centre, numbers, ends = midst(z2), plain(curve, wide), weighty.new_tensor(within(dtype))
    # Memory of numpy's is in huge pages where the system has them, and ready five times sooner.
    out = torch.from_numpy(np.empty((len(z1), len(z2)), ends.numpy().dtype))
    held = torch.empty(TILE_ROWS * TILE_COLUMNS, dtype=torch.float64)
    for across in _tiles(len(z2), TILE_COLUMNS):
        means, squares, spreads = _side(curve, z2[across], centre)
        order = torch.from_numpy(in_leaves(means.numpy(), STRIP))
        columns = means[order].T.contiguous()
        others = squares[order], spreads[order]
        places = order + across.start
        for down in _tiles(len(z1), TILE_ROWS):
            rows, *own = _side(curve, z1[down], centre)
            products = held[: len(rows) * len(places)].view(len(rows), len(places))
            torch.mm(rows, columns, out=products)
            given = (z1.dim, products, *own, *others, places, weighty, numbers, ends, out[down])
            share(spherical_probabilities, len(rows), ROWS_EACH, *given)
    return out.to(dtype)


def _tiles(size: int, each: int) -> Iterator[slice]:
    for start in range(0, size, each):
        yield slice(start, min(start + each, size))


def _side(curve: MatchCurve, z: Distribution, centre: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """x, ‖x‖² and σ² of each item, in the curve's units and in double precision."""
    mean, variance = in_units_of(curve, z, centre, torch.float64)
    return mean[:, 0], mean[:, 0].square().sum(1), variance[:, 0, 0].contiguous()
