"""The optimiser of a fit."""

from __future__ import annotations

import subprocess
import sys

import torch

from hedged.retrofit.adam import Adam


def test_it_does_number_for_number_what_that_of_torch_does() -> None:
    torch.manual_seed(0)
    start = [torch.randn(4, 3), torch.randn(3), torch.randn(())]
    ours, theirs = ([w.clone().requires_grad_() for w in start] for _ in range(2))
    adam, reference = Adam(ours, decay=0.1), torch.optim.AdamW(theirs, weight_decay=0.1)
    for step in range(20):
        rate = 1e-2 / (1 + step)
        reference.param_groups[0]["lr"] = rate
        for weights in (ours, theirs):
            for w in weights:
                w.grad = None
            (torch.tanh(weights[0] * weights[1]).sum() + weights[2] ** 2).backward()  # type: ignore[no-untyped-call]
        adam.step(rate)
        reference.step()
    for mine, other in zip(ours, theirs, strict=True):
        assert torch.equal(mine, other)


def test_a_fit_does_without_the_compiler_of_torch() -> None:
    program = (
        "import sys, numpy as np; from hedged import Retrofit; rng = np.random.default_rng(0); "
        "y = np.repeat(np.arange(40), 4); X = rng.normal(size=(40, 8))[y] + 0.5 * rng.normal(size=(160, 8)); "
        "head = Retrofit(steps=2, branches='own+unit').fit(X, y); print('torch._dynamo' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False"]
