"""`torch.compile` around a loss, as the first thing that a process does with one."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import torch
from hedged import Gaussian, HedgedLoss, MatchCurve, match_matrix, match_probability, self_mismatch

assert "torch._dynamo" not in sys.modules  # which is slow to import, and few need it
curve = MatchCurve()
loss, labels = HedgedLoss(curve, beta=1e-4), torch.arange(8) // 2
mean, variance = torch.randn(8, 2, requires_grad=True), torch.rand(8, 2) + 0.1

def cost(mean, variance):
    z = Gaussian(2 * mean, variance)
    asked = match_probability(z[:4], z[4:], curve).sum() + self_mismatch(z, curve).sum()
    return loss(z, labels) + asked + match_matrix(z, z, curve).sum()

def value_and_slope(function):
    value = function(mean, variance)
    (slope,) = torch.autograd.grad(value, mean)
    return value.detach(), slope

traced = value_and_slope(torch.compile(cost, backend="aot_eager"))
torch.testing.assert_close(traced, value_and_slope(cost))
"""


@pytest.mark.heavy
def test_compile_as_the_first_use_in_a_process() -> None:
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
