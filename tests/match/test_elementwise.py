"""E[exp(−κ‖δ‖²)] against an integral and explicit loops; its hand-written gradient against finite differences."""

from __future__ import annotations

import math

import pytest
import references
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import DTYPES, seeded
from torch import Tensor
from torch.testing import assert_close

from hedged.match._closed_form import elementwise
from hedged.match._closed_form.elementwise import expected_gaussians


def arguments(dim: int, *batch: int, terms: int = 4, dtype: torch.dtype = torch.float64) -> tuple[Tensor, ...]:
    generator = seeded(dim)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator, dtype=torch.float64).to(dtype)

    return 4 * uniform(dim, *batch), 0.1 + uniform(dim, *batch), 3 * uniform(terms), 4 * uniform(terms) - 2


def looped(squares: Tensor, spreads: Tensor, rates: Tensor, weights: Tensor) -> Tensor:
    """The formula, one number at a time in Python floats."""
    out = torch.zeros(squares[0].numel(), dtype=torch.float64)
    columns = zip(*(x.unsqueeze(-1).flatten(1).T.tolist() for x in (squares, spreads)), strict=True)
    for i, (m2, s) in enumerate(columns):
        for rate, weight in zip(rates.tolist(), weights.tolist(), strict=True):
            term = weight
            for d in range(len(m2)):
                stretch = 1 + 2 * rate * s[d]
                term *= math.exp(-rate * m2[d] / stretch) / math.sqrt(stretch)
            out[i] += term
    return out.view(squares.shape[1:])


@pytest.mark.parametrize("batch", [(), (7,), (2, 3), (0,), (3, 0, 2)])
@pytest.mark.parametrize("dim", [1, 3, 20])
def test_it_is_the_formula(dim: int, batch: tuple[int, ...]) -> None:
    args = arguments(dim, *batch)
    result = expected_gaussians(*args)
    assert result.shape == batch
    assert_close(result, looped(*args), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_it_is_the_expectation(dim: int) -> None:
    mean, spread = torch.tensor([0.7, -0.4, 0.2])[:dim].double(), torch.tensor([0.5, 1.0, 0.2])[:dim].double()
    law = references.anisotropic(mean.numpy(), spread.numpy(), sharpness=1.0)
    one = torch.ones(1, dtype=torch.float64)
    for rate in (0.03, 1.0, 30.0):
        exact = law.mean(lambda r, rate=rate: 2 * torch.exp(-rate * torch.from_numpy(r) ** 2).numpy())  # type: ignore[misc]
        found = expected_gaussians(mean.square(), spread, rate * one, 2 * one)
        assert found.item() == pytest.approx(exact, rel=1e-8)


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_its_gradient_is_that_of_the_value(dim: int) -> None:
    inputs = tuple(x.requires_grad_() for x in arguments(dim, 3))
    assert torch.autograd.gradcheck(expected_gaussians, inputs)


def test_its_gradient_is_that_of_the_value_for_single_pairs_and_more_axes() -> None:
    for batch in ((), (2, 1, 2)):
        inputs = tuple(x.requires_grad_() for x in arguments(2, *batch))
        assert torch.autograd.gradcheck(expected_gaussians, inputs)


def test_a_gradient_of_some_inputs_leaves_the_others_alone() -> None:
    squares, spreads, rates, weights = arguments(2, 5)
    value = expected_gaussians(squares.requires_grad_(), spreads, rates, weights)
    assert torch.autograd.gradcheck(lambda x: expected_gaussians(x, spreads, rates, weights), squares)
    with pytest.raises(RuntimeError, match="does not require grad"):
        torch.autograd.grad(value.sum(), spreads)


def test_inputs_are_not_written_to() -> None:
    inputs = tuple(x.requires_grad_() for x in arguments(3, 4))
    before = [x.detach().clone() for x in inputs]
    torch.autograd.grad(expected_gaussians(*inputs).square().sum(), inputs)
    for x, was in zip(inputs, before, strict=True):
        assert torch.equal(x, was)


def test_a_second_derivative_is_refused_not_wrong() -> None:
    inputs = tuple(x.requires_grad_() for x in arguments(2, 3))
    (first,) = torch.autograd.grad(expected_gaussians(*inputs).sum(), inputs[0], create_graph=True)
    with pytest.raises(RuntimeError):
        torch.autograd.grad(first.sum(), inputs[0])


def test_strided_inputs_give_the_same() -> None:
    args = arguments(3, 6)
    strided = [args[0].T.contiguous().T, args[1].flip(0).flip(0), *args[2:]]
    assert_close(expected_gaussians(*strided), expected_gaussians(*args))
    wide = [args[0][:, :1].expand(3, 6), args[1], *args[2:]]
    assert_close(expected_gaussians(*wide), looped(*wide), rtol=1e-12, atol=1e-14)


@settings(max_examples=60)
@given(
    exponents=st.tuples(st.floats(-30, 15), st.floats(-30, 15), st.floats(-10, 10)),
    dim=st.sampled_from([1, 2, 20, 128]),
    dtype=st.sampled_from(DTYPES),
)
def test_extreme_inputs_give_finite_values_and_gradients(
    exponents: tuple[float, float, float], dim: int, dtype: torch.dtype
) -> None:
    squares, spreads, rate = (10.0**e for e in exponents)
    inputs = [
        torch.full((dim,), squares, dtype=dtype),
        torch.full((dim,), spreads, dtype=dtype),
        torch.tensor([rate], dtype=dtype),
        torch.ones(1, dtype=dtype),
    ]
    for x in inputs:
        x.requires_grad_()
    value = expected_gaussians(*inputs)
    assert 0 <= value.item() <= 1
    for grad in torch.autograd.grad(value, inputs):
        assert torch.isfinite(grad).all()


@pytest.mark.parametrize("dim", [1, 2, 20, 128])
def test_float32_keeps_its_relative_error(dim: int) -> None:
    """(4 D + 16) half-ulps a term: what `arithmetic_dtype` counts on."""
    args = arguments(dim, 500, terms=6, dtype=torch.float32)
    wide = [x.double() for x in args]
    allowed = (4 * dim + 16) * torch.finfo(torch.float32).eps / 2 * args[3].double().abs().sum()
    error = (expected_gaussians(*args).double() - expected_gaussians(*wide)).abs()
    assert (error <= allowed).all()


def value_and_gradients(args: tuple[Tensor, ...], seed: int = 0) -> tuple[Tensor, ...]:
    squares, spreads, rates, weights = args
    inputs = [x.clone().requires_grad_() for x in (squares, spreads, weights)]
    value = expected_gaussians(inputs[0], inputs[1], rates, inputs[2])
    upstream = torch.randn(value.shape, generator=seeded(seed), dtype=torch.float64).to(value)
    return value.detach(), *torch.autograd.grad(value, inputs, upstream)


@pytest.mark.parametrize("pairs", [1, 511, 512, 513, 2_000])
@pytest.mark.parametrize("dim", [1, 2, 20])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_compiled_loops_are_the_plain_ones(
    dim: int, pairs: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    args = arguments(dim, pairs, dtype=dtype)
    compiled = value_and_gradients(args)
    monkeypatch.setattr(elementwise, "is_compiled", lambda x: False)
    exact = value_and_gradients(tuple(x.double() for x in args))
    share = 200 * torch.finfo(dtype).eps
    for found, plain in zip(compiled, exact, strict=True):
        assert_close(found.double(), plain, rtol=share, atol=share * float(plain.abs().max()))


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_the_compiled_gradient_is_that_of_the_value(dim: int) -> None:
    squares, spreads, rates, weights = arguments(dim, 3)
    inputs = [x.requires_grad_() for x in (squares, spreads, weights)]
    assert torch.autograd.gradcheck(lambda m2, s, w: expected_gaussians(m2, s, rates, w), inputs)


def test_results_do_not_depend_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    args = arguments(3, 40_000, dtype=torch.float32)
    results = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        results.append(value_and_gradients(args))
    assert 2 * elementwise.STRIPS_EACH * 512 < 40_000, "enough pairs for three threads"
    for other in results[1:]:
        for mine, first in zip(other, results[0], strict=True):
            assert torch.equal(mine, first)


@pytest.mark.parametrize(("dtype", "lowest"), [(torch.float32, -59.5), (torch.float64, -659.9)])
def test_the_compiled_exponential_is_as_exact_as_its_argument(dtype: torch.dtype, lowest: float) -> None:
    x = torch.cat([torch.linspace(lowest, 0, 100_001, dtype=dtype), -torch.logspace(-10, 0, 1_000, dtype=dtype)])
    one = torch.ones(1, dtype=dtype)
    found = expected_gaussians(-x.unsqueeze(0), torch.zeros_like(x).unsqueeze(0), one, one).double()
    exact = x.double().exp()
    assert ((found - exact).abs() <= (2 + 2 * x.abs().double()) * exact * torch.finfo(dtype).eps).all()
    assert expected_gaussians(torch.tensor([900.0], dtype=dtype), 0 * one, one, one) == 0
