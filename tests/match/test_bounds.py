"""The bounds that rule pairs out: the truth, integrated, lies between them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hedged import Gaussian, MatchCurve
from hedged.match import log_match_probability
from hedged.match._closed_form.expansion import expand
from hedged.match._closed_form.loops.bounds import bound, log_bound, log_floor
from hedged.match._closed_form.units import plain

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(200)


def integrated(mean: NDArray[np.float64], variance: NDArray[np.float64], bias: float) -> float:
    """E[σ(b − ‖v‖)] for v ~ N(mean, diag variance) in the plane, by Gauss and Hermite on each axis."""
    x, y = (m + NODES * math.sqrt(s) for m, s in zip(mean, variance, strict=True))
    weights = np.outer(WEIGHTS, WEIGHTS) / WEIGHTS.sum() ** 2
    return float((weights / (1 + np.exp(np.hypot(x[:, None], y) - bias))).sum())


@settings(max_examples=150)
@given(
    reach=st.floats(0, 40),
    angle=st.floats(0, math.pi / 2),
    spreads=st.tuples(st.floats(-6, 2), st.floats(-6, 2)),
    bias=st.floats(-4, 8),
)
def test_the_truth_lies_between_the_bounds(
    reach: float, angle: float, spreads: tuple[float, float], bias: float
) -> None:
    mean = np.array([reach * math.cos(angle), reach * math.sin(angle)])
    variance = np.exp(np.array(spreads))
    exact = integrated(mean, variance, bias)
    highest = np.full(1, -3e38, np.float32)
    half = (variance / 2).astype(np.float32)
    bound(mean.astype(np.float32), half, np.zeros((2, 1), np.float32), half[:, None], 0, bias, highest)
    curve = MatchCurve(1.0, bias).double()
    total = math.sqrt(float((mean**2 + variance).sum()))
    lowest, *_ = log_floor(total, bias, curve.chord_end())
    off = 1e-3 * exact + 1e-9
    assert math.exp(lowest) <= exact + off
    assert exact <= math.exp(highest[0]) + off


@pytest.mark.parametrize("bias", [-2.0, 0.0, 3.0, 8.0])
def test_the_compiled_floor_is_that_of_the_curve(bias: float) -> None:
    curve = MatchCurve(1.0, bias).double()
    reach = torch.linspace(1e-3, 60, 300, dtype=torch.float64, requires_grad=True)
    value = curve.log_floor(reach)
    (by_reach,) = torch.autograd.grad(value.sum(), reach, retain_graph=True)
    for i in range(0, 300, 7):
        (by_bias,) = torch.autograd.grad(value[i], curve.bias, retain_graph=True)
        found = log_floor(reach[i].item(), bias, curve.chord_end())
        assert found == pytest.approx((value[i].item(), by_reach[i].item(), by_bias.item()), rel=1e-9, abs=1e-12)


@settings(max_examples=150)
@given(
    reach=st.floats(0, 60),
    dim=st.integers(1, 20),
    spread=st.floats(-8, 6),
    wide=st.floats(-8, 6),
    bias=st.floats(-4, 10),
    seed=st.integers(0, 2**31),
)
def test_no_match_beyond_a_radius_exceeds_its_bound(
    reach: float, dim: int, spread: float, wide: float, bias: float, seed: int
) -> None:
    random = np.random.default_rng(seed)
    mean = random.standard_normal(dim)
    mean *= (reach + random.exponential()) / np.linalg.norm(mean)
    own, others = math.exp(spread) * random.random(dim), math.exp(wide) * random.random(dim)
    curve = MatchCurve(1.0, bias).double().requires_grad_(False)
    one = Gaussian(torch.zeros(dim, dtype=torch.float64), torch.from_numpy(own))
    log_p = log_match_probability(one, Gaussian(torch.from_numpy(mean), torch.from_numpy(others)), curve)
    terms = torch.stack(expand(curve.bias)).numpy()
    volume = 1 / np.sqrt((1 + 2 * terms[0, :, None] * own).prod(1))
    assert log_p <= log_bound(reach, others.max(), own, terms, plain(curve), curve.error_bound(), volume)
