"""The match curve: its parameters, its bound, and Jensen's floor against quadrature."""

from __future__ import annotations

import copy
import math
import pickle

import pytest
import references
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import DTYPES, frozen_curve, seeded
from torch.testing import assert_close

from hedged.errors import ValueRangeError
from hedged.match import ClosedForm, MatchCurve, MonteCarlo
from hedged.match._closed_form.expansion import ROUNDING, certified_error


@given(a=st.floats(1e-3, 1e3), b=st.floats(-10, 10), r=st.floats(0, 100))
def test_it_is_the_sigmoid_of_b_minus_a_r(a: float, b: float, r: float) -> None:
    curve = MatchCurve(a, b).double()
    exact_a, exact_b = references.parameters(curve)
    distance = torch.tensor(r, dtype=torch.float64)
    assert exact_a == pytest.approx(a, rel=1e-5)
    assert curve.logit_at(distance).item() == pytest.approx(exact_b - exact_a * r, rel=1e-12, abs=1e-12)
    assert_close(curve(distance), curve.logit_at(distance).sigmoid())


def test_scale_and_bias_learn() -> None:
    curve = MatchCurve(2.0, 1.0).double()
    r = torch.tensor([0.0, 0.3, 2.0], dtype=torch.float64)
    curve(r).sum().backward()
    p = torch.sigmoid(1 - 2 * r)
    assert curve.bias.grad is not None
    assert curve.log_scale.grad is not None
    assert_close(curve.bias.grad, (p * (1 - p)).sum())
    assert_close(curve.log_scale.grad, -(p * (1 - p) * 2 * r).sum(), rtol=1e-6, atol=0)


def test_no_step_makes_the_scale_negative() -> None:
    curve = MatchCurve(0.5, 0.0)
    optimiser = torch.optim.SGD(curve.parameters(), lr=30.0)
    for _ in range(20):
        optimiser.zero_grad()
        curve(torch.ones(4)).sum().neg().backward()
        optimiser.step()
        assert 0 < curve.scale.item() < 0.5


def test_it_is_saved_moved_copied_and_pickled() -> None:
    curve = MatchCurve(7.0, -1.5)
    other = MatchCurve()
    other.load_state_dict(curve.state_dict())
    for twin in (other, copy.deepcopy(curve), pickle.loads(pickle.dumps(curve)), curve.double()):
        assert references.parameters(twin) == pytest.approx((7.0, -1.5), rel=1e-6)
    assert "scale=7, bias=-1.5" in repr(curve)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf])
def test_a_scale_that_is_not_positive_is_refused(scale: float) -> None:
    with pytest.raises(ValueRangeError, match=r"scale a .* positive and finite, got"):
        MatchCurve(scale=scale)


@pytest.mark.parametrize("bias", [math.nan, math.inf, -math.inf])
def test_a_bias_that_is_not_finite_is_refused(bias: float) -> None:
    with pytest.raises(ValueRangeError, match=r"bias b .* finite, got"):
        MatchCurve(bias=bias)


# ---- the bound ------------------------------------------------------------------------------------------------------


@given(a=st.floats(1e-6, 1e6), b=st.integers(-16, 32).map(lambda n: n / 4))
def test_the_bound_is_below_a_thousandth_in_range_and_the_same_for_any_scale(a: float, b: float) -> None:
    bound = MatchCurve(a, b).error_bound()
    assert certified_error(b) + ROUNDING <= bound <= 1e-3
    assert bound == MatchCurve(1.0, b).error_bound()


def test_the_bound_follows_the_bias_as_it_learns() -> None:
    curve = MatchCurve(1.0, 3.0)
    before = curve.error_bound()
    with torch.no_grad():
        curve.bias.fill_(11.0)
    assert curve.error_bound() > 10 * before


def test_the_bound_covers_the_dtype_of_the_result() -> None:
    curve = MatchCurve(1.0, 3.0)
    bounds = [curve.error_bound(t) for t in (torch.float64, torch.float32, torch.float16, torch.bfloat16)]
    assert bounds == sorted(bounds)
    assert curve.error_bound() == bounds[1]
    assert curve.double().error_bound() == bounds[0]
    assert bounds[2] - bounds[0] == pytest.approx(torch.finfo(torch.float16).eps, rel=1e-6)


def test_samples_have_no_certified_bound() -> None:
    curve = MatchCurve(1.0, 3.0)
    assert curve.with_estimator(MonteCarlo(8)).error_bound() == 1.0
    assert curve.with_estimator(MonteCarlo(8)).describe_error() == "random, of 8 samples per input; not certified"
    assert curve.with_estimator(ClosedForm()).error_bound() == curve.error_bound() < 1e-3
    assert curve.describe_error() == f"at most {curve.error_bound():.1e} (certified)"


@pytest.mark.parametrize("b", [-1e6, -800.0, 50.0, 700.0, 1500.0, 1e4, 1e6])
def test_any_finite_bias_has_a_true_bound_and_a_floor(b: float) -> None:
    """E[σ(b − a r)] lies in [0, 1], so a bound may be large but the value must stay inside."""
    curve = frozen_curve(1.0, b)
    assert math.isfinite(curve.error_bound())
    reach = torch.tensor([0.0, 1.0, abs(b), 3 * abs(b) + 10], dtype=torch.float64)
    floor = curve.log_floor(reach)
    assert torch.isfinite(floor).all()
    assert (floor.diff() <= 0).all()


# ---- Jensen's floor -------------------------------------------------------------------------------------------------


@given(
    b=st.floats(-6, 12),
    spread=st.floats(-3, 2).map(lambda x: 10.0**x),
    offset=st.sampled_from([0.0, 0.5, 3.0, 10.0]),
    dim=st.sampled_from([1, 2, 20]),
)
def test_the_floor_is_below_the_expectation(b: float, spread: float, offset: float, dim: int) -> None:
    distance = offset * spread
    law = references.isotropic(distance, spread**2, dim, sharpness=1.0)
    reach = torch.tensor(math.hypot(distance, spread * math.sqrt(dim)), dtype=torch.float64)
    curve = frozen_curve(1.0, b)
    exact = references.match_probability(law, *references.parameters(curve))
    assert curve.log_floor(reach).exp().item() <= exact * (1 + 1e-9)


@pytest.mark.parametrize("b", [-6.0, -1.0, 0.0, 1e-3, 0.5, 2.0, 4.0, 8.0, 20.0])
def test_the_floor_is_the_largest_convex_function_below_the_curve(b: float) -> None:
    u = torch.linspace(0, b + 30, 20_001, dtype=torch.float64)
    curve = frozen_curve(1.0, b)
    floor, sigmoid = curve.log_floor(u).exp(), curve(u)
    assert (floor <= sigmoid * (1 + 1e-12)).all()
    assert (floor.diff() < 0).all()
    assert (floor.diff().diff() >= -1e-13).all()
    touches = floor >= sigmoid * (1 - 1e-6)
    assert touches[0]
    assert touches[u > 2 * max(b, 0.0) + 10].all()
    free = (~touches).nonzero()
    if len(free):  # largest: where it leaves the curve it is straight
        assert floor[1 : int(free.max())].diff().diff().abs().max() < 1e-12


@pytest.mark.parametrize("b", [-2.0, 0.5, 3.0, 8.0])
def test_the_floor_is_differentiable_in_everything(b: float) -> None:
    curve = MatchCurve(1.0, b).double()
    reach = (20 * torch.rand(40, generator=seeded(), dtype=torch.float64)).requires_grad_()

    def floor(r: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        moved = copy.deepcopy(curve)
        moved.bias.data.copy_(bias.detach())
        return torch.func.functional_call(_Floor(moved), {"curve.bias": bias}, (r,))  # type: ignore[no-any-return]

    assert torch.autograd.gradcheck(floor, (reach, curve.bias), atol=1e-6)


class _Floor(torch.nn.Module):
    def __init__(self, curve: MatchCurve) -> None:
        super().__init__()
        self.curve = curve

    def forward(self, reach: torch.Tensor) -> torch.Tensor:
        return self.curve.log_floor(reach)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("b", [-4.0, 0.0, 3.0, 8.0])
def test_the_floor_is_finite_and_steep_in_the_far_tail(dtype: torch.dtype, b: float) -> None:
    reach = torch.tensor([0.0, 1e-6, 100.0, 1e4, 1e8], dtype=dtype, requires_grad=True)
    floor = frozen_curve(1.0, b, dtype).log_floor(reach)
    (slope,) = torch.autograd.grad(floor.sum(), reach)
    assert torch.isfinite(floor).all()
    assert torch.isfinite(slope).all()
    assert_close(slope[2:], torch.full((3,), -1.0, dtype=dtype))
