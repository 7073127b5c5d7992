"""The bounds that rule pairs out: the truth, integrated, lies between them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import references
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hedged import MatchCurve
from hedged.compiled.bounds import bound, log_floor


@settings(max_examples=150)
@given(
    reach=st.floats(0, 40),
    angle=st.floats(0, math.pi / 2),
    spreads=st.tuples(st.floats(-6, 6), st.floats(-6, 6)),
    bias=st.floats(-4, 8),
)
def test_the_truth_lies_between_the_bounds(
    reach: float, angle: float, spreads: tuple[float, float], bias: float
) -> None:
    mean = np.array([reach * math.cos(angle), reach * math.sin(angle)])
    variance = np.exp(np.array(spreads))
    law = references.anisotropic(mean, variance, sharpness=1.0)
    exact = law.mean(lambda r: 1 / (1 + np.exp(np.minimum(r - bias, 700))))
    highest = np.full(1, -3e38, np.float32)
    half = (variance / 2).astype(np.float32)
    bound(mean.astype(np.float32), half, np.zeros((2, 1), np.float32), half[:, None], bias, highest)
    curve = MatchCurve(1.0, bias).double()
    total = math.sqrt(float((mean**2 + variance).sum()))
    lowest, *_ = log_floor(total, bias, curve.chord_end())
    assert math.exp(lowest) <= exact * (1 + 1e-6) + 1e-12
    assert exact <= math.exp(highest[0]) * (1 + 1e-4) + 1e-9


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
