"""The best matches of probes in a gallery, in one compiled pass on a CPU: what `best_matches` is made of.

The gallery is put in leaves of items near each other; most items are ruled out by a bound before any exponential.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hedged._parallel import share
from hedged.distributions import Distribution
from hedged.match._closed_form.expansion import arithmetic_dtype, closed_form_error, expand
from hedged.match._closed_form.leaves import in_leaves
from hedged.match._closed_form.loops.limits import FARTHEST
from hedged.match._closed_form.units import in_units_of, midst, plain
from hedged.match._numbers import log_odds
from hedged.match._pairs import Matches

if TYPE_CHECKING:
    from hedged.match._closed_form.loops.nearest import Formula, Gallery
    from hedged.match.curve import MatchCurve

PROBES_EACH = 16  # probes that are worth a thread of their own
GRADES = 16  # of how wide the distributions of a leaf may be
ITEMS_PER_BLOCK = 2**16  # that are put in order at a time


@torch.no_grad()
def nearest_spreads(
    probes: Distribution, gallery: Distribution, curve: MatchCurve, k: int, exclude_self: bool
) -> Matches:
    """The k best matches of Gaussians and mixtures: `MatchModel.nearest`."""
    from hedged.match._closed_form.loops.nearest import GROUP, nearest  # late: numba is slow to import

    centre, wide = midst(gallery), torch.promote_types(torch.promote_types(probes.dtype, gallery.dtype), torch.float32)
    rows = [x.contiguous() for x in in_units_of(curve, probes, centre, wide)]  # (N, C, D)
    leaves = _in_leaves(gallery, curve, centre, wide)
    terms = expand(curve.bias)
    precision = arithmetic_dtype(terms, probes.dim, torch.promote_types(probes.dtype, gallery.dtype))
    log_p = torch.empty(len(probes), k, dtype=torch.float64)
    items = torch.empty(len(probes), k, dtype=torch.int64)
    share(
        nearest, -(-len(probes) // GROUP), 1, *rows, leaves, formula(curve, precision), log_p, items, int(exclude_self)
    )
    return Matches(log_odds(log_p), items)


def formula(curve: MatchCurve, dtype: torch.dtype = torch.float64) -> Formula:
    """The closed form of a curve as the compiled loops take it, its terms in this dtype."""
    from hedged.match._closed_form.loops.nearest import Formula

    error = closed_form_error(curve.bias.item(), curve.bias.dtype)
    return Formula(torch.stack(expand(curve.bias)).to(dtype).numpy(), plain(curve), error)


def _in_leaves(gallery: Distribution, curve: MatchCurve, centre: Tensor, dtype: torch.dtype) -> Gallery:
    """A gallery in an order in which leaves of it are near each other; beyond the result, little memory is used."""
    from hedged.match._closed_form.loops.nearest import LEAF, Gallery

    mean, variance = gallery.parts()  # (M, C, D)
    widest = variance.amax(-1)  # (M, C)
    order = in_leaves(torch.cat([mean.flatten(1), widest.sqrt()], dim=1).numpy(), LEAF)
    columns = torch.empty(2, *mean.shape[1:], len(order), dtype=dtype)  # (2, C, D, M)
    for start in range(0, len(order), ITEMS_PER_BLOCK):
        at = slice(start, start + ITEMS_PER_BLOCK)
        for column, part in zip(columns, in_units_of(curve, gallery[order[at]], centre, dtype), strict=True):
            column[..., at] = part.movedim(0, -1)
    means, variances = columns.numpy()
    bounds = variances.max(1).astype(np.float64)  # (C, M)
    starts = np.arange(0, len(order), LEAF)
    least, most = float(bounds.min()), float(bounds.max())
    grades: NDArray[np.float64] = np.geomspace(max(least, 1e-12), max(most, 1e-12), GRADES)
    grades[-1] = most  # whatever was lost to rounding
    lows, highs, widths = (
        np.ascontiguousarray(np.moveaxis(extreme.reduceat(x, starts, axis=-1), -1, 0))
        for extreme, x in ((np.minimum, means), (np.maximum, means), (np.maximum, bounds))
    )
    leaf_grade, grade = np.searchsorted(grades, widths), np.searchsorted(grades, bounds)
    return Gallery(means, variances, order, lows, highs, leaf_grade, grade, grades)


@torch.no_grad()
def nearest_points(
    probes: Distribution, gallery: Distribution, curve: MatchCurve, k: int, exclude_self: bool
) -> Matches:
    """The k best matches of points: p falls with their distance, so no curve is needed to rank."""
    from hedged.match._closed_form.loops.nearest import closest

    wide = torch.promote_types(torch.promote_types(probes.dtype, gallery.dtype), torch.float32)
    squares = torch.empty(len(probes), k, dtype=torch.float64)
    items = torch.empty(len(probes), k, dtype=torch.int64)
    near, far = (z.mean.to(wide).clamp(-FARTHEST, FARTHEST) for z in (probes, gallery))
    given = (near.contiguous(), far.T.contiguous())
    share(closest, len(probes), PROBES_EACH, *given, squares, items, int(exclude_self))
    return Matches(curve.logit_at(squares.sqrt()), items)
