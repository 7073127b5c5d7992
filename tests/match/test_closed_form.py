"""The closed form keeps its word: error within the reported bound, falling with distance, true and finite gradients."""

from __future__ import annotations

import math
from itertools import product

import pytest
import references
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import DTYPES, KINDS, RANDOM_KINDS, embedding, frozen_curve, rebuilt, seeded, with_gradients
from torch import Tensor
from torch.testing import assert_close

from hedged.distributions import Distribution, Gaussian, Mixture, Point
from hedged.match import (
    MatchCurve,
    MonteCarlo,
    log_match_probability,
    match_logit,
    match_matrix,
    match_probability,
    self_mismatch,
)
from hedged.match._closed_form.expansion import ROUNDING

BIASES = [-4.0, -1.3, 0.0, 3.0, 5.2, 8.0]
PAIRS = [(one, two) for one, two in product(KINDS, KINDS) if (one, two) != ("point", "point")]
biases = st.floats(-4, 8)


def magnitudes(low: float, high: float) -> st.SearchStrategy[float]:
    """Log-uniform in 10^low … 10^high."""
    return st.floats(low, high).map(lambda x: 10.0**x)


def isotropic_pair(distance: float, variance: float, dim: int, dtype: torch.dtype) -> tuple[Gaussian, Gaussian]:
    """Two Gaussians whose difference has mean `distance` along the diagonal and `variance` in each dimension."""
    mean = torch.full((dim,), distance / math.sqrt(dim), dtype=dtype)
    half = torch.full((dim,), variance / 2, dtype=dtype)
    return Gaussian(mean, half), Gaussian(torch.zeros_like(mean), half)


# ---- the oracle itself ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dim", "a", "b"), [(1, 0.5, -4.0), (1, 30.0, 8.0), (2, 0.5, -4.0), (2, 9.0, 8.0), (3, 2.0, 3.0)]
)
def test_the_quadrature_agrees_with_itself_at_twice_the_resolution(dim: int, a: float, b: float) -> None:
    mean, variance = [0.9, -0.2, 0.4][:dim], [0.3, 1.1, 0.2][:dim]
    coarse, fine = (references.anisotropic(mean, variance, a, resolution) for resolution in (1, 2))
    assert coarse.w.sum() == pytest.approx(1, abs=1e-8)
    p = references.match_probability(coarse, a, b)
    assert p == pytest.approx(references.match_probability(fine, a, b), abs=1e-8)


@pytest.mark.parametrize("dim", [1, 2, 3, 20, 128])
@pytest.mark.parametrize("distance", [0.0, 0.7, 5.0])
def test_the_noncentral_chi_square_agrees_with_polar_coordinates_and_itself(dim: int, distance: float) -> None:
    for a, b in ((0.5, -4.0), (3.0, 3.0), (30.0, 8.0)):
        law, fine = (references.isotropic(distance, 0.8, dim, a, resolution) for resolution in (1, 2))
        p = references.match_probability(law, a, b)
        assert law.w.sum() == pytest.approx(1, abs=1e-8)
        assert p == pytest.approx(references.match_probability(fine, a, b), abs=1e-9)
        if dim <= 2 or (dim == 3 and a == 3.0):
            polar = references.anisotropic([distance, 0.0, 0.0][:dim], [0.8] * dim, a)
            assert p == pytest.approx(references.match_probability(polar, a, b), abs=1e-7)


# ---- values ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_every_pair_of_kinds_is_within_the_bound_of_quadrature(one: str, two: str) -> None:
    for seed, (b, a) in enumerate(product(BIASES, (0.5, 4.0))):
        dtype = DTYPES[(seed + a.is_integer()) % 2]
        z1 = embedding(one, dim=2, dtype=dtype, seed=seed)
        z2 = embedding(two, dim=2, dtype=dtype, seed=100 + seed)
        curve = frozen_curve(a, b, dtype)
        exact = references.exact_match(z1.to(torch.float64), z2.to(torch.float64), *references.parameters(curve))
        assert abs(match_probability(z1, z2, curve).item() - exact) <= curve.error_bound(dtype)


@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize("b", [-4.0, 0.5, 3.0, 8.0])
def test_anisotropic_gaussians_are_within_the_bound_of_quadrature(dim: int, b: float) -> None:
    for seed in range(1 if dim == 3 else 4):
        z1, z2 = (embedding("gaussian", dim=dim, seed=seed + n, spread=0.6) for n in (10, 20))
        curve = frozen_curve(2.0, b)
        exact = references.exact_match(z1, z2, *references.parameters(curve))
        assert abs(match_probability(z1, z2, curve).item() - exact) <= curve.error_bound()


@given(
    b=st.floats(-10, 16),
    spread=magnitudes(-3, 2),
    offset=st.floats(0, 12),
    dim=st.sampled_from([1, 2, 20, 128]),
    dtype=st.sampled_from(DTYPES),
)
def test_any_gaussian_is_within_the_bound_of_quadrature_at_any_bias(
    b: float, spread: float, offset: float, dim: int, dtype: torch.dtype
) -> None:
    """`spread` is a·σ and `offset` is ‖m‖/σ: with the bias they span all isotropic cases, beyond [−4, 8] too."""
    distance, variance = offset * spread, spread**2
    curve = frozen_curve(1.0, round(b, 2), dtype)
    law = references.isotropic(distance, variance, dim, sharpness=1.0)
    p = match_probability(*isotropic_pair(distance, variance, dim, dtype), curve).item()
    assert abs(p - references.match_probability(law, *references.parameters(curve))) <= curve.error_bound(dtype)


@pytest.mark.parametrize("kind", RANDOM_KINDS)
@pytest.mark.parametrize("b", [0.0, 3.0, 7.0])
def test_monte_carlo_agrees_within_the_bound_and_four_standard_errors(kind: str, b: float) -> None:
    repeats = 400
    z1, z2 = embedding(kind, 1, dim=4, seed=1), embedding(kind, 1, dim=4, seed=2)
    curve = frozen_curve(1.5, b)
    many1, many2 = (z[torch.zeros(repeats, dtype=torch.long)] for z in (z1, z2))
    estimates = match_probability(many1, many2, curve, MonteCarlo(samples=32, generator=seeded()))
    error = abs(estimates.mean() - match_probability(z1, z2, curve)).item()
    assert error <= curve.error_bound() + 4 * estimates.std().item() / math.sqrt(repeats)


@pytest.mark.parametrize("dtype", DTYPES)
def test_two_points_use_the_exact_sigmoid(dtype: torch.dtype) -> None:
    z1, z2 = (embedding("point", 50, dim=7, dtype=dtype, seed=seed) for seed in (1, 2))
    for b in (-4.0, 3.0, 8.0, 30.0):
        curve = frozen_curve(3.0, b, dtype)
        expected = torch.sigmoid(curve.bias - curve.scale * (z1.mean - z2.mean).square().sum(-1).sqrt())
        assert_close(match_probability(z1, z2, curve), expected)


@pytest.mark.parametrize("b", [-4.0, 0.0, 3.0, 6.0])
def test_a_vanishing_variance_gives_the_sigmoid_back(b: float) -> None:
    z1, z2 = (embedding("point", 200, dim=3, seed=seed) for seed in (1, 2))
    curve = frozen_curve(1.0, b)
    sharp = match_probability(Gaussian(z1.mean, torch.full_like(z1.mean, 1e-14)), z2, curve)
    assert (sharp - match_probability(z1, z2, curve)).abs().max() <= curve.error_bound()


@settings(max_examples=50)
@given(a=magnitudes(-12, 12), b=biases, dtype=st.sampled_from(DTYPES))
def test_only_a_times_the_distances_matters(a: float, b: float, dtype: torch.dtype) -> None:
    z1, z2 = (embedding("gaussian", 20, dim=3, dtype=torch.float64, seed=seed) for seed in (1, 2))
    unit, scaled = frozen_curve(1.0, b), frozen_curve(a, b)
    exact_a = scaled.scale.item()
    near1, near2 = (Gaussian(z.mean / exact_a, z.variance / exact_a**2).to(dtype) for z in (z1, z2))
    difference = match_probability(near1, near2, scaled).double() - match_probability(z1, z2, unit)
    assert difference.abs().max() <= ROUNDING + torch.finfo(dtype).eps


# ---- rounding -------------------------------------------------------------------------------------------------------


@settings(max_examples=150)
@given(
    b=biases,
    a=magnitudes(-1, 1.5),
    dim=st.sampled_from([1, 2, 20, 128]),
    log_variance=st.tuples(st.floats(-6, 2), st.floats(-6, 2)),
    log_distance=st.floats(-6, 2),
    seed=st.integers(0, 99),
)
def test_float32_differs_from_float64_by_less_than_is_promised(
    b: float, a: float, dim: int, log_variance: tuple[float, float], log_distance: float, seed: int
) -> None:
    generator = seeded(seed)
    shape = (2, 16, dim)
    low, high = sorted(log_variance)
    variance = 10 ** (low + (high - low) * torch.rand(shape, generator=generator))
    mean = torch.randn(shape, generator=generator) * 10**log_distance / math.sqrt(dim)
    curve = frozen_curve(a, b, torch.float32)
    z1, z2 = (Gaussian(m, v) for m, v in zip(mean, variance, strict=True))
    narrow = match_probability(z1, z2, curve)
    wide = match_probability(z1.to(torch.float64), z2.to(torch.float64), curve)
    assert narrow.dtype == torch.float32
    assert (narrow.double() - wide).abs().max() <= ROUNDING + torch.finfo(torch.float32).eps


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("b", BIASES)
@pytest.mark.parametrize("one", ["gaussian", "mixture-2"])
def test_the_bound_holds_in_half_precision(dtype: torch.dtype, b: float, one: str) -> None:
    """The truth is that of the embeddings as given: their own rounding to half precision is the user's."""
    z1, z2 = (embedding(one, 500, dim=4, dtype=dtype, seed=seed, spread=0.05) for seed in (1, 2))
    curve = frozen_curve(b / 2 + 3, b, torch.float32)
    p = match_probability(z1, z2, curve)
    truth = match_probability(z1.to(torch.float64), z2.to(torch.float64), curve)  # within its own, smaller bound
    assert p.dtype == dtype
    assert (p.double() - truth).abs().max() <= curve.error_bound(dtype)


@pytest.mark.parametrize("kind", ["point", "gaussian"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_far_pairs_in_half_precision_have_a_finite_log_probability(kind: str, dtype: torch.dtype) -> None:
    far = Point(torch.full((2,), 300.0, dtype=dtype))
    near = embedding(kind, dim=2, dtype=dtype)
    assert torch.isfinite(log_match_probability(far, near, frozen_curve(1.0, 3.0, torch.float32)))


# ---- with distance --------------------------------------------------------------------------------------------------

RISE = {torch.float32: 2e-6, torch.float64: 2e-12}  # what rounding may undo, of a probability or relative to log p


def along_a_ray(dim: int, u: Tensor, variance: float) -> Gaussian:
    mean = torch.zeros(len(u), dim, dtype=u.dtype)
    mean[:, 0] = u
    return Gaussian(mean, torch.full_like(mean, variance))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [1, 2, 20])
@pytest.mark.parametrize("b", [*BIASES, 4.0, 7.5])
def test_it_does_not_rise_with_distance(dtype: torch.dtype, dim: int, b: float) -> None:
    fine = torch.cat([torch.logspace(-6, 0, 300), torch.linspace(1, 40, 600), torch.linspace(41, 1000, 200)]).to(dtype)
    curve = frozen_curve(1.0, b, dtype)
    for variance in (1e-8, 1e-4, 1e-2, 1.0, 1e2, 1e4):
        origin = Gaussian(torch.zeros(1, dim, dtype=dtype), torch.full((1, dim), variance, dtype=dtype))
        log_p = log_match_probability(along_a_ray(dim, fine, variance), origin, curve)
        assert torch.isfinite(log_p).all()
        assert (log_p < 0).all()
        assert (log_p.diff() <= RISE[dtype] * log_p[1:].abs().clamp(min=1)).all()
        coarse = log_match_probability(
            along_a_ray(dim, torch.linspace(1, 1001, 1001, dtype=dtype), variance), origin, curve
        )
        assert (coarse[10:].diff() < 0).all() or variance == 1e4  # there a step of 1 is a hundredth of σ
        assert coarse[-1] < coarse[0]


@settings(max_examples=60)
@given(b=biases, dtype=st.sampled_from(DTYPES), seed=st.integers(0, 10_000), dim=st.integers(1, 8))
def test_it_does_not_rise_along_any_ray(b: float, dtype: torch.dtype, seed: int, dim: int) -> None:
    generator = seeded(seed)
    direction = torch.randn(dim, generator=generator, dtype=dtype)
    variance = 10 ** (-4 + 6 * torch.rand(dim, generator=generator, dtype=dtype))
    steps = torch.linspace(0, 200, 400, dtype=dtype).unsqueeze(1)
    z = Gaussian(steps * direction, variance.expand(400, dim))
    log_p = log_match_probability(z, Point(torch.zeros(1, dim, dtype=dtype)), frozen_curve(1.0, b, dtype))
    assert (log_p.diff() <= RISE[dtype] * log_p[1:].abs().clamp(min=1)).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("b", BIASES)
def test_probabilities_lie_strictly_between_zero_and_one(dtype: torch.dtype, b: float) -> None:
    curve = frozen_curve(1.0, b, dtype)
    u = torch.linspace(0, 80, 161, dtype=dtype)
    for variance in (1e-12, 1e-3, 1.0, 1e3):
        p = match_probability(along_a_ray(2, u, variance), Point(torch.zeros(1, 2, dtype=dtype)), curve)
        assert (p > 0).all()
        assert (p < 1).all()
        assert (p <= curve.bias.sigmoid() * (1 + 4 * torch.finfo(dtype).eps)).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("one", "two"), [("point", "point"), *PAIRS])
def test_a_far_positive_pair_has_a_finite_loss_and_a_pull(dtype: torch.dtype, one: str, two: str) -> None:
    """At a·r = 100 the gradient of −log p in the means points together and is about a; log a and b learn too."""
    z1, z2 = (with_gradients(embedding(kind, dim=3, dtype=dtype, spread=0.01)) for kind in (one, two))
    shift = torch.zeros(3, dtype=dtype)
    shift[0] = 10.0
    for b in (-4.0, 3.0, 8.0):
        curve = MatchCurve(10.0, b).to(dtype)
        moved = rebuilt(z2, z2.tensors[0] + shift, *z2.tensors[1:])
        loss = -log_match_probability(z1, moved, curve)
        assert 50 < loss.item() < 150
        grads = torch.autograd.grad(loss, [*z1.tensors, *z2.tensors, *curve.parameters()])
        assert all(torch.isfinite(grad).all() for grad in grads)
        pull = grads[0][..., 0].sum().item()
        assert -12 < pull < -8  # moving z1 towards z2 lowers the loss by a for each unit
        to_scale, to_bias = (grad.item() for grad in grads[-2:])
        assert to_scale > 50
        assert to_bias == pytest.approx(-1, abs=1e-3)


# ---- gradients ------------------------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(
    b=biases,
    spread=magnitudes(-3, 2),
    offset=st.sampled_from([0.0, 0.3, 1.0, 3.0, 10.0]),
    dim=st.sampled_from([1, 2, 20]),
    dtype=st.sampled_from(DTYPES),
)
def test_gradients_agree_with_quadrature(b: float, spread: float, offset: float, dim: int, dtype: torch.dtype) -> None:
    """An error e(u) ≤ ε of the curve makes errors of its expectation's gradients, because they are expectations too:

    σ ∂p/∂μ = E[f·x] and σ² ∂p/∂σ² = ½ E[f·(x² − 1)] with x ~ N(0, 1), hence at most ε E|x| = 0.8 ε and, summed over D
    dimensions, ε √(D/2); log a is both together. For b no such argument holds: 3 ε is what was measured, doubled.
    """
    distance, variance, h = offset * spread, spread**2, 1e-3
    curve = MatchCurve(1.0, round(b, 1)).to(dtype)
    bias = curve.bias.item()
    z1, z2 = isotropic_pair(distance, variance, dim, dtype)
    z1 = Gaussian(*(t.clone().requires_grad_() for t in z1.tensors))
    p = match_probability(z1, z2, curve)
    to_mean, to_variance, to_scale, to_bias = torch.autograd.grad(p, [*z1.tensors, curve.log_scale, curve.bias])

    def exact(m: float = distance, s: float = variance, a: float = 1.0, b: float = bias) -> float:
        return references.match_probability(references.isotropic(m, s, dim, sharpness=1.0), a, b)

    by_mean = (exact(m=distance + h * spread) - exact(m=abs(distance - h * spread))) / (2 * h)
    by_variance = (exact(s=variance * (1 + h)) - exact(s=variance * (1 - h))) / (2 * h)
    by_scale = (exact(a=1 + h) - exact(a=1 - h)) / (2 * h)
    by_bias = (exact(b=bias + h) - exact(b=bias - h)) / (2 * h)
    bound = curve.error_bound(dtype) + 1e-6  # finite differences
    spreading = math.sqrt(dim / 2)
    along = to_mean.sum().item() / math.sqrt(dim) * spread
    assert abs(along - by_mean) <= 0.8 * bound
    assert abs(to_variance.sum().item() * variance - by_variance) <= spreading * bound
    assert abs(to_scale.item() - by_scale) <= (0.8 * offset + 2 * spreading) * bound
    assert abs(to_bias.item() - by_bias) <= 3 * bound


@pytest.mark.parametrize("components", [1, 2, 4])
def test_gradients_of_mixtures_agree_with_quadrature(components: int) -> None:
    """Every coordinate of every component, moved by hand."""
    z1 = embedding(f"mixture-{components}", dim=2, seed=3)
    z2 = embedding("gaussian", dim=2, seed=4)
    curve = frozen_curve(2.0, 3.0)
    parameters = references.parameters(curve)
    mean, variance = (t.clone().requires_grad_() for t in z1.tensors)
    grads = torch.autograd.grad(match_probability(Mixture(mean, variance), z2, curve), (mean, variance))
    h = 1e-4
    for index in product(range(components), range(2)):
        for which, unit in ((0, variance[index].sqrt().item()), (1, variance[index].item())):
            sides = []
            for sign in (1, -1):
                tensors = [mean.detach().clone(), variance.detach().clone()]
                tensors[which][index] += sign * h * unit
                sides.append(references.exact_match(Mixture(*tensors), z2, *parameters))
            exact = (sides[0] - sides[1]) / (2 * h)
            assert abs(grads[which][index].item() * unit - exact) <= curve.error_bound() + 1e-6


@pytest.mark.parametrize("one", KINDS)
@pytest.mark.parametrize("b", [-1.0, 3.0, 8.0])
def test_gradients_are_those_of_the_value(one: str, b: float) -> None:
    """In float64, away from the corners where a maximum is taken; b is checked in the tests of the expansion."""
    z1, z2 = embedding(one, 2, dim=2, seed=5, spread=0.5), embedding("gaussian", 2, dim=2, seed=6, spread=0.5)
    curve = frozen_curve(1.0, b)
    tensors = tuple(t.clone().requires_grad_() for t in (*z1.tensors, *z2.tensors))
    cut = len(z1.tensors)

    def logit(*t: Tensor) -> Tensor:
        return match_logit(rebuilt(z1, *t[:cut]), Gaussian(*t[cut:]), curve)

    # Weights in the thousands (b = 8) make the value noisy in its last digits: a smaller step would measure that noise.
    assert torch.autograd.gradcheck(logit, tensors, eps=1e-4, atol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("one", "two"), [("point", "point"), *PAIRS])
def test_coincident_embeddings_have_finite_gradients(dtype: torch.dtype, one: str, two: str) -> None:
    for spread, b in product((1e-12, 1e-3, 1.0, 1e5), (-4.0, 3.0, 8.0)):
        z1, z2 = (embedding(kind, dim=3, dtype=dtype, spread=spread) for kind in (one, two))
        z1, z2 = (with_gradients(rebuilt(z, 0 * z.tensors[0], *z.tensors[1:])) for z in (z1, z2))
        curve = MatchCurve(5.0, b).to(dtype)
        logit = match_logit(z1, z2, curve)
        assert torch.isfinite(logit)
        for grad in torch.autograd.grad(logit, [*z1.tensors, *z2.tensors, *curve.parameters()]):
            assert torch.isfinite(grad).all()


@settings(max_examples=150)
@given(
    b=st.floats(-10, 20),
    a=magnitudes(-6, 6),
    log_variance=st.floats(-30, 12),
    distance=st.one_of(st.just(0.0), magnitudes(-20, 8)),
    dim=st.sampled_from([1, 2, 20]),
    dtype=st.sampled_from(DTYPES),
)
def test_losses_and_gradients_are_finite_everywhere(
    b: float, a: float, log_variance: float, distance: float, dim: int, dtype: torch.dtype
) -> None:
    z1, z2 = isotropic_pair(distance, 10.0**log_variance, dim, dtype)
    z1 = Gaussian(*(t.clone().requires_grad_() for t in z1.tensors))
    curve = MatchCurve(a, b).to(dtype)
    log_p = log_match_probability(z1, z2, curve)
    grads = torch.autograd.grad(log_p, [*z1.tensors, *curve.parameters()])
    assert torch.isfinite(log_p)
    assert all(torch.isfinite(grad).all() for grad in grads)


@pytest.mark.parametrize("a", [1e-15, 1e15, 1e18])
def test_absurd_scales_have_finite_gradients(a: float) -> None:
    z1: Distribution = with_gradients(embedding("gaussian", 5, dtype=torch.float32, seed=1))
    z2 = embedding("gaussian", 5, dtype=torch.float32, seed=2)
    curve = MatchCurve(a, 3.0)
    log_p = log_match_probability(z1, z2, curve)
    assert torch.isfinite(log_p).all()
    for grad in torch.autograd.grad(log_p.sum(), [*z1.tensors, *curve.parameters()]):
        assert torch.isfinite(grad).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [1e-25, 1e-10, 1.0, 1e10, 1e20])
@pytest.mark.parametrize("variance", [1e-35, 1e-10, 1.0, 1e30])
def test_gradients_are_finite_at_any_scale_and_variance(dtype: torch.dtype, scale: float, variance: float) -> None:
    curve = MatchCurve(scale, 3.0).to(dtype)
    mean = torch.zeros(3, 2, dtype=dtype, requires_grad=True)
    spread = torch.full((3, 2), variance, dtype=dtype, requires_grad=True)
    z = Gaussian(mean, spread)
    log_match_probability(z[:1], z[1:], curve).sum().backward()  # type: ignore[no-untyped-call]
    for tensor in (mean, spread, curve.log_scale, curve.bias):
        assert tensor.grad is not None
        assert torch.isfinite(tensor.grad).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_no_probability_rounds_to_certainty(dtype: torch.dtype) -> None:
    near, far = torch.zeros(1, 2, dtype=dtype), torch.full((1, 2), 1e25, dtype=dtype)
    for bias in (-200.0, 3.0, 200.0):
        curve = frozen_curve(10.0, bias, dtype)
        for z1, z2 in ((Point(near), Point(far)), (Point(near), Point(near)), (Point(near), Gaussian(far, near + 1))):
            assert 0 < match_probability(z1, z2, curve).item() < 1
            assert 0 < match_matrix(z1, z2, curve).item() < 1
            assert torch.isfinite(log_match_probability(z1, z2, curve)).all()
        assert 0 < self_mismatch(Point(near), curve).item() < 1
