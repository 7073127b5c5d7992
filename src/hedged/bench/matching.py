"""`match_matrix` against Monte Carlo and against the exponentials alone; the best matches against a sampled ranking."""

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

SIZE = 10_000
SLAB = 400_000  # pairs on which eager Monte Carlo is timed; its cost is then scaled
COMPILED_ROWS, COMPILED_SLAB = 40, 400  # rows that the compiled one takes at a time, and in all
TURNED_SIZE = 4_000  # of each list whose covariances are not diagonal
K = 5


@torch.no_grad()
def lines(quick: bool) -> Iterator[Line]:
    """Speed of `match_matrix` and of the best matches, as ratios.

    Args:
        quick: Whether to leave out whatever takes minutes.
    """
    curve, plane, space = MatchCurve(), clustered(SIZE, 2), clustered(SIZE, 20)
    for z in (plane, space):
        _check(z, curve)
    yield _against_eager(plane, curve, 40.0)
    yield _against_compiled(plane, curve)
    yield _against_exponentials(plane, curve)
    yield _against_eager(space, curve, 10.0)
    yield _ranking(plane, curve)
    for z in (plane, space):
        yield _against_diagonal(turned(TURNED_SIZE, z.dim), z[:TURNED_SIZE], curve)


def _against_eager(z: Distribution, curve: MatchCurve, asked: float) -> Line:
    rows = SLAB // len(z)
    ours, slab = side_by_side(lambda: match_matrix(z, z, curve), lambda: references.eager(z[:rows], z, curve))
    return Line(f"{_name(z)}: times as fast as eager Monte Carlo", slab * len(z) / rows / ours, asked)


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
    _check(turned, curve)
    ours, diagonal = side_by_side(lambda: match_matrix(turned, turned, curve), lambda: match_matrix(z, z, curve))
    return Line(f"{_name(z)}: time with rank-1 covariances / with diagonal ones", ours / diagonal, 5.0, at_most=True)


def _ranking(z: Distribution, curve: MatchCurve) -> Line:
    rows = SLAB // len(z)
    ours, slab = side_by_side(
        lambda: best_matches(z, z, curve, K), lambda: references.eager(z[:rows], z, curve).topk(K)
    )
    name = f"top {K} of {len(z):,} in {len(z):,}, D = {z.dim}: times as fast as eager Monte Carlo"
    return Line(name, slab * len(z) / rows / ours, 100.0)


def _name(z: Distribution) -> str:
    return f"match_matrix, {len(z):,} × {len(z):,}, D = {z.dim}"


def _check(z: Distribution, curve: MatchCurve) -> None:
    """Refuse to measure where nearly all pairs are far apart, or where the result is not within the certified error."""
    some = z[:500]
    p, exact = (match_matrix(x, x, curve) for x in (some, some.to(torch.float64)))
    if (near := (p > 0.01).float().mean()) < 0.2:
        raise RunError(f"a fifth of the pairs are to have p > 0.01, here {near:.3f} have")
    if (error := (p - exact).abs().max()) > curve.error_bound():
        raise RunError(f"match_matrix is off by {error:g}, more than the certified {curve.error_bound():g}")
