"""The best matches of probes in a gallery, without the matrix of all pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hedged._parallel import share
from hedged.distributions import Distribution, Point
from hedged.errors import ShapeError, ValueRangeError
from hedged.match._closed_form.expansion import arithmetic_dtype, expand
from hedged.match._closed_form.leaves import in_leaves
from hedged.match._closed_form.units import FARTHEST, in_units_of, midst
from hedged.match.curve import MatchCurve
from hedged.match.estimators import CHUNK, logit_matrix

if TYPE_CHECKING:
    from hedged.match._closed_form.loops.nearest import Gallery

PROBES_EACH = 16  # probes that are worth a thread of their own
GRADES = 16  # of how wide the distributions of a leaf may be
ITEMS = 2**16  # that are put in order at a time


class Matches(NamedTuple):
    """The best matches of each probe, best first: log-odds and places in the gallery, both `(N, k)`."""

    logits: Tensor
    items: Tensor


@torch.no_grad()
def best_matches(
    probes: Distribution, gallery: Distribution, curve: MatchCurve, k: int = 5, *, exclude_self: bool = False
) -> Matches:
    """The k gallery items of highest p(m | x_i, x_j) for each probe, the first among equals, none of them missed.

    p is that of `match_matrix` up to rounding. Most items are ruled out by a bound before any exponential
    (hedged.match._closed_form.loops.bounds). With `exclude_self`, probe i and gallery item i are one image and never
    each other's match.

    >>> from hedged import Gaussian
    >>> z = Gaussian(torch.tensor([[0.0], [0.1], [3.0], [3.2]]), torch.full((4, 1), 1e-4))
    >>> best_matches(z, z, MatchCurve(), k=1, exclude_self=True).items.flatten()
    tensor([1, 0, 3, 2])
    """
    _check(probes, gallery, k, exclude_self)
    if probes.device.type != "cpu":
        return _by_matrix(probes, gallery, curve, k, exclude_self)
    if isinstance(probes, Point) and isinstance(gallery, Point):
        return _by_distance(probes.mean, gallery.mean, curve, k, exclude_self)
    terms = expand(curve.bias)
    wide = arithmetic_dtype(terms, probes.dim, torch.promote_types(probes.dtype, gallery.dtype))
    return _compiled(probes, gallery, curve, torch.stack(terms).to(wide), k, exclude_self)


def _compiled(
    probes: Distribution, gallery: Distribution, curve: MatchCurve, terms: Tensor, k: int, exclude_self: bool
) -> Matches:
    from hedged.match._closed_form.loops.nearest import GROUP, Formula, nearest  # late: numba is slow to import

    centre, wide = midst(gallery), torch.promote_types(torch.promote_types(probes.dtype, gallery.dtype), torch.float32)
    rows = [x.contiguous() for x in in_units_of(curve, probes, centre, wide)]  # (N, C, D)
    leaves = _in_leaves(gallery, curve, centre, wide)
    formula = Formula(terms.numpy(), np.array([curve.bias.item(), curve.chord_end(), curve.error_bound()]))
    log_p = torch.empty(len(probes), k, dtype=torch.float64)
    items = torch.empty(len(probes), k, dtype=torch.int64)
    share(nearest, -(-len(probes) // GROUP), 1, *rows, leaves, formula, log_p, items, int(exclude_self))
    return Matches(log_p - torch.log(-torch.expm1(log_p)), items)


def _in_leaves(gallery: Distribution, curve: MatchCurve, centre: Tensor, dtype: torch.dtype) -> Gallery:
    """A gallery in an order in which leaves of it are near each other; beyond the result, little memory is used."""
    from hedged.match._closed_form.loops.nearest import LEAF, Gallery

    mean, variance = gallery.parts()  # (M, C, D)
    widest = variance.amax(-1)  # (M, C)
    order = in_leaves(torch.cat([mean.flatten(1), widest.sqrt()], dim=1).numpy(), LEAF)
    columns = torch.empty(2, *mean.shape[1:], len(order), dtype=dtype)  # (2, C, D, M)
    for start in range(0, len(order), ITEMS):
        at = slice(start, start + ITEMS)
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


def _by_distance(probes: Tensor, gallery: Tensor, curve: MatchCurve, k: int, exclude_self: bool) -> Matches:
    """Of two points p falls with their distance: no curve is needed to rank."""
    from hedged.match._closed_form.loops.nearest import closest

    wide = torch.promote_types(torch.promote_types(probes.dtype, gallery.dtype), torch.float32)
    squares = torch.empty(len(probes), k, dtype=torch.float64)
    items = torch.empty(len(probes), k, dtype=torch.int64)
    near, far = (x.to(wide).clamp(-FARTHEST, FARTHEST) for x in (probes, gallery))
    given = (near.contiguous(), far.T.contiguous())
    share(closest, len(probes), PROBES_EACH, *given, squares, items, int(exclude_self))
    return Matches(curve.logit(squares.sqrt()), items)


def _by_matrix(probes: Distribution, gallery: Distribution, curve: MatchCurve, k: int, exclude_self: bool) -> Matches:
    found = []
    rows = max(CHUNK // max(len(gallery), 1), 1)
    for start in range(0, len(probes), rows):
        logits = logit_matrix(probes[start : start + rows], gallery, curve)
        if exclude_self:
            own = torch.arange(len(logits), device=logits.device)
            logits[own, own + start] = -torch.inf
        found.append(_top(logits, k))
    return Matches(*(torch.cat(column) for column in zip(*found, strict=True)))


def _top(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Argmax, k times: the first among equals, which topk does not promise, and faster than to sort."""
    best = []
    for _ in range(k):
        items = scores.argmax(dim=1, keepdim=True)
        best.append((scores.gather(1, items), items))
        scores.scatter_(1, items, -torch.inf)
    values, places = (torch.cat(column, dim=1) for column in zip(*best, strict=True))
    return values, places


def _check(probes: Distribution, gallery: Distribution, k: int, exclude_self: bool) -> None:
    for name, z in (("probes", probes), ("gallery", gallery)):
        if len(z.batch_shape) != 1 or not len(z):
            raise ShapeError(f"the {name} are a list of embeddings, at least one, got {z!r}")
    if probes.dim != gallery.dim:
        raise ShapeError(f"embeddings of one space are compared, got dimensions {probes.dim} and {gallery.dim}")
    if exclude_self and len(probes) != len(gallery):
        raise ShapeError(
            f"{len(probes)} probes cannot be the same items as a gallery of {len(gallery)}: pass exclude_self=False"
        )
    if not 1 <= k <= len(gallery) - exclude_self:
        most = len(gallery) - exclude_self
        raise ValueRangeError(f"k is {k}; a gallery of {len(gallery)} has 1 to {most} matches for each probe")
