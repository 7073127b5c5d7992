"""`match_matrix` and the best matches against the fastest Monte Carlo, a distance matrix and exponentials alone.

Where items are in clusters, most pairs are so far apart that they can be passed over; in one cluster none are.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from hedged.bench import references
from hedged.bench.embeddings import clustered, turned
from hedged.bench.timing import Line, side_by_side
from hedged.distributions import Distribution
from hedged.errors import RunError
from hedged.match import MatchCurve, best_matches, match_matrix
from hedged.match._closed_form.expansion import expand

SIZES = {2: 10_000, 20: 10_000, 64: 2_000, 128: 2_000, 512: 2_000}  # embeddings, by their dimensions
ASKED = {2: 25.0, 20: 12.0, 64: 4.0, 128: 4.0, 512: 4.0}  # times as fast, if no pair can be passed over
QUICK_DIMS = 20  # beyond which a quick run does not go
SHARP = 6.0  # a bias b that needs double precision and the most terms, beside the usual one
NONE_FAR, MANY_FAR = 0.9, 0.2  # the least share of pairs with p > 0.01
SLAB = 400_000  # pairs on which Monte Carlo is timed; its cost, which is the same for every pair, is then scaled
COMPILED_ROWS, COMPILED_SLAB = 40, 400  # rows that the compiled one takes at a time, and in all
TURNED_SIZE = 4_000  # of each list whose covariances are not diagonal
ONE_VARIANCE = (128, 512)  # dimensions in which items of one variance are compared with points
K = 5


@torch.no_grad()
def lines(quick: bool) -> Iterator[Line]:
    """Speed of `match_matrix` and of the best matches, as ratios.

    Args:
        quick: Whether to leave out whatever takes minutes.
    """
    curve, sharp = MatchCurve(), MatchCurve(bias=SHARP)
    for dim, size in SIZES.items():
        if quick and dim > QUICK_DIMS:
            continue
        yield _against_sampling(clustered(size, dim), curve, ASKED[dim])
        near = clustered(2_000, dim, clusters=1)
        for each in (curve, sharp):
            yield _against_sampling(near, each, ASKED[dim], NONE_FAR)
    for dim in ONE_VARIANCE:
        for each in (curve, sharp):
            yield _against_distances(clustered(2_000, dim, clusters=1, one_variance=True), each)
    plane, space = clustered(SIZES[2], 2), clustered(SIZES[20], 20)
    yield _against_compiled(plane, curve)
    yield _against_exponentials(plane, curve)
    yield _ranking(plane, curve)
    for z in (plane, space):
        yield _against_diagonal(turned(TURNED_SIZE, z.dim), z[:TURNED_SIZE], curve)


def _against_sampling(z: Distribution, curve: MatchCurve, asked: float, near: float = MANY_FAR) -> Line:
    """The fastest Monte Carlo in plain torch."""
    _check(z, curve, near)
    name, sampled = references.fastest(z, curve)
    rows = max(SLAB // len(z), 1)
    ours, slab = side_by_side(lambda: match_matrix(z, z, curve), lambda: sampled(z[:rows], z, curve))
    what = f"{_name(z)}, b = {curve.bias.item():g}, {'no pair' if near == NONE_FAR else 'most pairs'} far apart"
    return Line(f"{what}: times as fast as Monte Carlo by {name}", slab * len(z) / rows / ours, asked)


def _against_distances(z: Distribution, curve: MatchCurve) -> Line:
    """Distances of the means alone, by torch.cdist."""
    _check(z, curve, NONE_FAR)
    ours, distances = side_by_side(lambda: match_matrix(z, z, curve), lambda: torch.cdist(z.mean, z.mean), repeats=15)
    what = f"{_name(z)}, b = {curve.bias.item():g}, one variance an item, no pair far apart"
    return Line(f"{what}: time / that of torch.cdist of the means", ours / distances, 4.0, at_most=True)


def _against_compiled(z: Distribution, curve: MatchCurve) -> Line:
    sampled, some = references.compiled_eager(COMPILED_ROWS, z.dim), z[:COMPILED_SLAB]
    ours, slab = side_by_side(lambda: match_matrix(z, z, curve), lambda: sampled(some, z, curve))
    name = f"{_name(z)}: times as fast as Monte Carlo under torch.compile"
    return Line(name, slab * len(z) / len(some) / ours, 5.0)


def _against_exponentials(z: Distribution, curve: MatchCurve) -> Line:
    """As many exponentials in single precision as the closed form has for all pairs, in the cache."""
    numbers = -20 * torch.rand(2**17)
    turns, out = len(expand(curve.bias).widths) * len(z) ** 2 // len(numbers), torch.empty_like(numbers)

    def exponentials() -> None:
        for _ in range(turns):
            torch.exp(numbers, out=out)

    ours, alone = side_by_side(lambda: match_matrix(z, z, curve), exponentials)
    return Line(f"{_name(z)}: time / that of J·N·M exponentials alone", ours / alone, 3.0, at_most=True)


def _against_diagonal(turned: Distribution, z: Distribution, curve: MatchCurve) -> Line:
    """Covariances of rank one beside diagonal ones of the same variances."""
    _check(turned, curve, MANY_FAR)
    ours, diagonal = side_by_side(lambda: match_matrix(turned, turned, curve), lambda: match_matrix(z, z, curve))
    return Line(f"{_name(z)}: time with rank-1 covariances / with diagonal ones", ours / diagonal, 5.0, at_most=True)


def _ranking(z: Distribution, curve: MatchCurve) -> Line:
    """The fastest Monte Carlo in plain torch, and the best of each row."""
    name, sampled = references.fastest(z, curve)
    rows = SLAB // len(z)
    ours, slab = side_by_side(lambda: best_matches(z, z, curve, K), lambda: sampled(z[:rows], z, curve).topk(K))
    what = f"top {K} of {len(z):,} in {len(z):,}, D = {z.dim}: times as fast as Monte Carlo by {name}"
    return Line(what, slab * len(z) / rows / ours, 10.0)


def _name(z: Distribution) -> str:
    return f"match_matrix, {len(z):,} × {len(z):,}, D = {z.dim}"


def _check(z: Distribution, curve: MatchCurve, least: float) -> None:
    """Refuse to measure where more pairs are far apart than it says, or where p is not within the certified error."""
    some = z[:500]
    p, exact = (match_matrix(x, x, curve) for x in (some, some.to(torch.float64)))
    if (near := (p > 0.01).float().mean()) < least:
        raise RunError(f"a share of {least:g} of the pairs is to have p > 0.01, here {near:.3f} have")
    if (error := (p - exact).abs().max()) > curve.error_bound():
        raise RunError(f"match_matrix is off by {error:g}, more than the certified {curve.error_bound():g}")
