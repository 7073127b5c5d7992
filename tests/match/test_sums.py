"""The loops of `match_matrix` that leave out, cut short and reorder, against those that do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import references
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import frozen_curve, seeded
from numpy.typing import NDArray

from hedged import Gaussian, Point, match_matrix, match_probability
from hedged.match._closed_form.expansion import ROUNDING, terms_at
from hedged.match._closed_form.loops.gaussians import expected
from hedged.match._closed_form.loops.sums import NEGLIGIBLE_REST, extremes, near_sum, padded, volumes
from hedged.match._closed_form.matrix import closed_form_matrix
from hedged.match._closed_form.spherical import have_one_variance, keeps_distances, spherical_matrix

Array = NDArray[Any]
ROOM = 160  # pairs: more than are worked on at once


def both_sums(
    dim: int, count: int, b: float, farthest: float, widest: float, seed: int, dtype: type
) -> tuple[Array, Array, float]:
    """What `near_sum` gives, what `expected` does in double precision, and the sum of the weights."""
    random = np.random.default_rng(seed)
    squares: Array = np.zeros((padded(dim), ROOM), dtype)
    spreads: Array = np.zeros((padded(dim), ROOM), dtype)
    squares[:dim] = farthest * random.random((dim, ROOM)) ** 2 / dim
    spreads[:dim] = widest * 10 ** (-4 * random.random((dim, ROOM))) / dim
    found = terms_at(b)
    terms = np.array([found.widths, found.weights])
    out: Array = np.empty(count, dtype)
    wanted: Array = np.empty(count)
    near, wide = squares[:, :count], spreads[:, :count]
    bounds = extremes(near.sum(0), (near * wide).sum(0), wide.sum(0))
    most = volumes(wide[:dim].min(1), terms)
    near_sum(squares, spreads, bounds, terms.astype(dtype), most, out)
    expected(0, 1, near[:dim].astype(float), wide[:dim].astype(float), terms[0], terms[1], wanted)
    return out, wanted, float(np.abs(found.weights).sum())


magnitudes = st.floats(-6, 11).map(lambda x: 10.0**x)


@settings(max_examples=80)
@given(
    dim=st.sampled_from([1, 2, 3, 4, 5, 20, 67]),
    count=st.sampled_from([1, 31, 32, 130]),
    b=st.floats(-6, 14),
    farthest=magnitudes,
    widest=magnitudes,
    seed=st.integers(0, 10_000),
)
def test_what_is_left_out_of_a_sum_is_negligible(
    dim: int, count: int, b: float, farthest: float, widest: float, seed: int
) -> None:
    found, wanted, weights = both_sums(dim, count, b, farthest, widest, seed, np.float64)
    assert np.abs(found - wanted).max() <= NEGLIGIBLE_REST + 1e-9 * weights
    found, wanted, weights = both_sums(dim, count, b, farthest, widest, seed, np.float32)
    assert np.abs(found - wanted).max() <= NEGLIGIBLE_REST + weights * (2 * dim + 32) * 2.0**-24


def spheres(count: int, dim: int, spread: float, width: float, seed: int, dtype: torch.dtype) -> Gaussian:
    """Embeddings of one variance each: √D·spread from each other, variances of about width² / D, over a decade."""
    generator = seeded(seed)
    variance = width**2 / dim * 10 ** torch.randn(count, 1, generator=generator, dtype=torch.float64)
    return Gaussian(
        (spread * torch.randn(count, dim, generator=generator, dtype=torch.float64)).to(dtype), variance.to(dtype)
    )


@settings(max_examples=60)
@given(
    dim=st.sampled_from([6, 7, 64, 300]),
    b=st.floats(-6, 14),
    spread=st.floats(-6, 3).map(lambda x: 10.0**x),
    width=st.floats(-6, 4).map(lambda x: 10.0**x),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    seed=st.integers(0, 10_000),
)
def test_one_variance_an_item_gives_what_the_general_loop_does(
    dim: int, b: float, spread: float, width: float, dtype: torch.dtype, seed: int
) -> None:
    """The same sum, in another order: both are within `ROUNDING` of it."""
    curve = frozen_curve(2.0, b, dtype)
    z1, z2 = spheres(5, dim, spread, width, seed, dtype), spheres(40, dim, spread, width, seed + 1, dtype)
    found, wanted = (
        spherical_matrix(z1, z2, curve),
        closed_form_matrix(z1.to(torch.float64), z2.to(torch.float64), curve),
    )
    assert (found - wanted).abs().max() <= ROUNDING
    assert ((found > 0) & (found < 1)).all()


@pytest.mark.parametrize("b", [-4.0, 0.0, 3.0, 6.0, 8.0])
def test_one_variance_an_item_is_within_the_certified_error(b: float) -> None:
    curve = frozen_curve(1.0, b, torch.float32)
    for dim, distance, variance in ((6, 0.0, 1e-6), (6, 2.0, 0.5), (50, 4.0, 0.1), (50, b + 3, 1.0), (300, 1.0, 0.02)):
        mean = torch.zeros(2, dim)
        mean[1, 0] = distance
        z = Gaussian(mean, torch.full((2, 1), variance / 2))
        assert have_one_variance(z)
        exact = references.match_probability(references.isotropic(distance, variance, dim, sharpness=1.0), 1.0, b)
        assert abs(match_matrix(z[:1], z[1:], curve).item() - exact) <= curve.error_bound(torch.float32)


def test_neighbours_far_from_the_origin_keep_their_distance() -> None:
    """‖x‖² + ‖y‖² − 2 xᵀy would lose it in single precision, and farther out in double precision too."""
    generator = seeded()
    mean = 300 * torch.randn(50, 64, generator=generator).double()
    z1, z2 = (Gaussian(mean + 0.02 * torch.randn(50, 64, generator=generator), mean[:, :1] * 0 + 1e-7) for _ in "ab")
    for scale, is_kept in ((0.05, True), (10.0, False)):  # where it is not, the general loop takes over
        curve = frozen_curve(scale, 3.0)
        assert keeps_distances(z1, z2, curve) is is_kept
        p = match_matrix(z1, z2, curve).diagonal()
        torch.testing.assert_close(p, match_probability(z1, z2, curve), rtol=0, atol=1.5e-5)


def test_points_among_items_of_one_variance() -> None:
    z, points = (
        spheres(30, 16, 0.3, 0.5, 0, torch.float64),
        Point(0.3 * torch.randn(20, 16, generator=seeded(2)).double()),
    )
    curve = frozen_curve(2.0, 3.0)
    assert have_one_variance(z, points)
    assert not have_one_variance(Gaussian(z.mean, z.variance * torch.linspace(1, 2, 16).double()))
    expected_p = match_probability(z[:, None], points[None], curve)
    torch.testing.assert_close(match_matrix(z, points, curve), expected_p, rtol=0, atol=1e-7)
