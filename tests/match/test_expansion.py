"""The sum of Gaussians against the curve itself: certificate, shape, smoothness in b, and the rounding it promises."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import seeded
from torch import Tensor

from hedged.match._closed_form.expansion import ROUNDING, arithmetic_dtype, certified_error, expand

INSIDE = [-4.0, -3.7, -2.0, -0.5, 0.0, 0.01, 1.3, 2.0, 3.0, 3.25, 4.0, 4.9, 5.5, 6.2, 7.0, 7.3, 7.5, 7.75, 8.0]
OUTSIDE = [-300.0, -40.0, -12.0, -6.0, -5.999, -4.5, 8.1, 9.3, 10.0, 11.6, 12.0, 12.001, 14.0, 25.0, 100.0, 1000.0]


def sum_of_gaussians(b: float, u: Tensor) -> Tensor:
    widths, weights = expand(torch.tensor(b, dtype=torch.float64))
    return torch.exp(-widths * u.square().unsqueeze(-1)) @ weights


def off_grid(b: float, count: int) -> Tensor:
    """Random distances: some by magnitude, some around the knee, some far away; sorted."""
    draw = torch.rand(3, count, generator=seeded(int(abs(b) * 1000)), dtype=torch.float64)
    knee = max(b, 0.0)
    parts = [10 ** (-7 + 9 * draw[0]), (knee - 6 + 16 * draw[1]).abs(), (knee + 100) * draw[2]]
    return torch.cat(parts).sort().values


@pytest.mark.parametrize("b", INSIDE + OUTSIDE)
def test_the_certificate_covers_every_distance(b: float) -> None:
    u = off_grid(b, 20_000)
    error = (sum_of_gaussians(b, u) - torch.sigmoid(b - u)).abs().max().item()
    assert error <= certified_error(b)


@given(b=st.floats(-30, 30), log_u=st.floats(-8, 3), steps=st.floats(-8, 8))
def test_the_certificate_covers_any_distance_at_any_bias(b: float, log_u: float, steps: float) -> None:
    u = torch.tensor([10.0**log_u, abs(b + steps)], dtype=torch.float64)
    error = (sum_of_gaussians(b, u) - torch.sigmoid(b - u)).abs().max().item()
    assert error <= certified_error(b)


@pytest.mark.parametrize("b", INSIDE)
def test_the_certificate_is_not_much_larger_than_the_error(b: float) -> None:
    u = off_grid(b, 40_000)
    error = (sum_of_gaussians(b, u) - torch.sigmoid(b - u)).abs().max().item()
    assert certified_error(b) <= 2 * error + 1e-6


def test_the_certified_error_is_below_a_thousandth_in_the_promised_range() -> None:
    biases = [*torch.linspace(-4, 8, 25).tolist(), *(-4 + 12 * torch.rand(15, generator=seeded())).tolist()]
    assert max(certified_error(b) for b in biases) + ROUNDING <= 1e-3


def test_the_certified_error_grows_where_the_expansion_fails() -> None:
    """Beyond the table nobody is told that all is well: at b = 30 the sum is far from the knee."""
    assert certified_error(30.0) > 0.1
    assert certified_error(12.0) > 5 * certified_error(8.0)


@pytest.mark.parametrize("b", INSIDE + OUTSIDE)
def test_at_distance_zero_it_is_the_curve(b: float) -> None:
    start = sum_of_gaussians(b, torch.zeros(1, dtype=torch.float64)).item()
    truth = torch.tensor(b, dtype=torch.float64).sigmoid().item()
    assert start == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("b", INSIDE + OUTSIDE)
def test_it_never_rises_with_distance_and_stays_positive(b: float) -> None:
    u = torch.cat([torch.linspace(0, 60, 60_001, dtype=torch.float64), off_grid(b, 20_000)]).sort().values
    value = sum_of_gaussians(b, u)
    allowed = 1e-15 * expand(torch.tensor(b)).weights.abs().sum().item()  # rounding
    if b in OUTSIDE:
        allowed += 1e-5 * certified_error(b)  # sharp knees: nothing that matters beside the error itself
    assert (value - value.cummin(0).values).max().item() <= allowed
    assert value.min().item() >= 0


@pytest.mark.parametrize("b", [-6.0, -5.5, -4.0, -0.5, 0.0, 3.0, 5.5, 8.0, 11.5])
def test_two_derivatives_in_b_are_continuous_across_knots(b: float) -> None:
    """From the left and from the right of a knot value, slope and bend agree; the first end of the table is only C⁰."""
    u = torch.linspace(0, 20, 41, dtype=torch.float64)
    h = 1e-3
    left = [sum_of_gaussians(b - k * h, u) for k in range(4)]
    right = [sum_of_gaussians(b + k * h, u) for k in range(4)]
    step = 1e-9
    jump = sum_of_gaussians(b + step, u) - sum_of_gaussians(b - step, u)
    assert jump.abs().max() < 10 * step
    if b == -6.0:
        return
    slopes = [(3 * s[0] - 4 * s[1] + s[2]) / (2 * h) for s in (left, right)]
    bends = [(2 * s[0] - 5 * s[1] + 4 * s[2] - s[3]) / h**2 for s in (left, right)]
    assert (slopes[0] + slopes[1]).abs().max() < 1e-4  # left counts backwards
    assert (bends[0] - bends[1]).abs().max() < 0.05


@pytest.mark.parametrize("b", [-9.0, -2.2, 0.3, 3.1, 7.7, 10.2, 15.0])
def test_the_derivative_in_b_is_that_of_the_sum(b: float) -> None:
    u = torch.linspace(0, 30, 61, dtype=torch.float64)

    def value(bias: Tensor) -> Tensor:
        widths, weights = expand(bias)
        return torch.exp(-widths * u.square().unsqueeze(-1)) @ weights

    assert torch.autograd.gradcheck(value, torch.tensor(b, dtype=torch.float64, requires_grad=True), atol=1e-6)


@given(b=st.floats(-4, 8))
def test_the_derivative_in_b_follows_that_of_the_curve(b: float) -> None:
    """∂σ(b − u)/∂b = σ(1 − σ), to a hundredth: two digits of a slope that is at most a quarter."""
    u = torch.linspace(0, b + 20, 101, dtype=torch.float64)
    h = 1e-4
    slope = (sum_of_gaussians(b + h, u) - sum_of_gaussians(b - h, u)) / (2 * h)
    p = torch.sigmoid(b - u)
    assert (slope - p * (1 - p)).abs().max() < 1e-2


@pytest.mark.parametrize("b", INSIDE)
@pytest.mark.parametrize("dim", [1, 2, 20, 128])
def test_arithmetic_is_wide_enough_for_the_weights(b: float, dim: int) -> None:
    terms = expand(torch.tensor(b))
    total = terms.weights.abs().sum().item()
    chosen = arithmetic_dtype(terms, dim, torch.float32)
    assert chosen in (torch.float32, torch.float64)
    assert total * torch.finfo(chosen).eps / 2 * (4 * dim + 16) <= ROUNDING
    assert arithmetic_dtype(terms, dim, torch.float64) == torch.float64
    for narrow in (torch.float16, torch.bfloat16):
        assert arithmetic_dtype(terms, dim, narrow) == chosen


def test_there_are_few_terms() -> None:
    """What a pair costs: at b = 3, where training stays, no more than 18 exponentials."""
    counts = {b: len(expand(torch.tensor(b)).widths) for b in INSIDE}
    assert counts[3.0] <= 18
    assert max(counts.values()) <= 24


def test_large_finite_biases_are_certified_in_time() -> None:
    for b in (1e4, -1e4, 1e6):
        assert math.isfinite(certified_error(b))
