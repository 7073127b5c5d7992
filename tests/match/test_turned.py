"""Match probabilities of Gaussians whose coordinates covary: integrals, laws, gradients, both match models."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
import references
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import DTYPES, KINDS, TURNED_KINDS, embedding, frozen_curve, rebuilt, seeded, turned
from torch import Tensor
from torch.testing import assert_close

from hedged import (
    Evidence,
    MatchCurve,
    MonteCarlo,
    best_matches,
    log_match_probability,
    match_matrix,
    match_probability,
)
from hedged.distributions import Distribution, FullGaussian, Gaussian, LowRankGaussian, Mixture, Point
from hedged.errors import ShapeError, ValueRangeError
from hedged.match import MatchModel
from hedged.match._closed_form import turned_pairs
from hedged.match._closed_form.turned import eigenbasis
from hedged.match._closed_form.turned_pairs import low_rank_term

anything = pytest.mark.parametrize("kind", TURNED_KINDS)
BIASES = [-4.0, 0.0, 3.0, 8.0]
EVIDENCE = Evidence(0.3, 0.8).requires_grad_(False)


def rotation(dim: int, seed: int) -> Tensor:
    q: Tensor = torch.linalg.qr(torch.randn(dim, dim, generator=seeded(seed), dtype=torch.float64)).Q
    return q


def rotated(z: Distribution, q: Tensor) -> Distribution:
    """The same embeddings, the space around them turned."""
    if z.dim <= 4:
        return FullGaussian.of(z.mean @ q.T, q @ z.covariances().squeeze(-3) @ q.T)
    own, factor = (t.squeeze(-2 if t.ndim == z.mean.ndim + 1 else -3) for t in z.spreads())
    least = own.amin(-1, keepdim=True)  # what is left of diag v is turned with the factors
    rest = (own - least).sqrt().diag_embed()
    return LowRankGaussian(z.mean @ q.T, least.expand_as(own), torch.cat([factor, rest], dim=-2) @ q.T)


def lower(z: Distribution, *tensors: Tensor) -> Distribution:
    """As z, from tensors whose matrices may be moved above their diagonals too, as differences do."""
    return rebuilt(z, *(t.tril() if t.shape[-2:] == (z.dim, z.dim) and t.ndim == 3 else t for t in tensors))


def posterior(kind: str, *batch: int, dim: int = 2, seed: int = 0) -> Distribution:
    """No wider than the prior N(0, I) in any direction."""
    z = turned(kind, *batch, dim=dim, seed=seed)
    most = torch.linalg.eigvalsh(z.covariances().squeeze(-3))[..., -1:]
    shrink = (0.9 / most).sqrt()
    tensors = [t * (shrink.square() if t.shape == z.mean.shape else shrink[..., None]) for t in z.tensors[1:]]
    return rebuilt(z, z.mean, *tensors)


# ---- the match curve against integrals ------------------------------------------------------------------------------


@pytest.mark.parametrize(("one", "two"), [*product(TURNED_KINDS, TURNED_KINDS), *product(["full"], KINDS)])
def test_every_pair_of_kinds_is_within_the_bound_of_quadrature(one: str, two: str) -> None:
    for seed, (b, a) in enumerate(product(BIASES, (0.5, 4.0))):
        dtype = DTYPES[(seed + a.is_integer()) % 2]
        z1 = turned(one, dtype=dtype, seed=seed)
        z2 = (turned if two in TURNED_KINDS else embedding)(two, dtype=dtype, seed=100 + seed)
        curve = frozen_curve(a, b, dtype)
        wide1, wide2 = z1.to(torch.float64), z2.to(torch.float64)
        pairs = product(*(zip(z.parts()[0], z.covariances(), strict=True) for z in (wide1, wide2)))
        laws = [references.correlated(m1 - m2, s1 + s2, a) for (m1, s1), (m2, s2) in pairs]
        exact = np.mean([references.match_probability(law, *references.parameters(curve)) for law in laws])
        for p in (match_probability(z1, z2, curve), match_probability(z2, z1, curve)):
            assert p.dtype == dtype
            assert abs(p.item() - exact) <= curve.error_bound(dtype)


@pytest.mark.parametrize("b", [0.0, 3.0])
def test_three_dimensions_are_within_the_bound_of_quadrature(b: float) -> None:
    z1, z2 = turned("full", dim=3, seed=1, spread=0.6), turned("low-rank-1", dim=3, seed=2, spread=0.6)
    curve = frozen_curve(2.0, b)
    law = references.correlated(z1.mean - z2.mean, z1.covariances()[0] + z2.covariances()[0], 2.0)
    assert (
        abs(match_probability(z1, z2, curve).item() - references.match_probability(law, 2.0, b)) <= curve.error_bound()
    )


@pytest.mark.parametrize(("kind", "dim"), [("full", 4), ("low-rank-1", 4), ("low-rank-1", 20), ("low-rank-3", 6)])
@pytest.mark.parametrize("b", [0.0, 3.0, 7.0])
def test_monte_carlo_agrees_within_the_bound_and_four_standard_errors(kind: str, dim: int, b: float) -> None:
    repeats = 400
    z1, z2 = (rebuilt(z, 0.5 * z.mean, *z.tensors[1:]) for z in (turned(kind, 1, dim=dim, seed=s) for s in (1, 2)))
    curve = frozen_curve(1.5, b)
    sampled = match_probability(
        rebuilt(z1, *(t.expand(repeats, *t.shape[1:]) for t in z1.tensors)),
        rebuilt(z2, *(t.expand(repeats, *t.shape[1:]) for t in z2.tensors)),
        curve.with_estimator(MonteCarlo(32, seeded())),
    )
    error = 4 * sampled.std().item() / math.sqrt(repeats)
    assert abs(match_probability(z1, z2, curve).item() - sampled.mean().item()) <= curve.error_bound() + error


@given(
    seed=st.integers(0, 10_000),
    dim=st.integers(1, 4),
    b=st.floats(-6, 12),
    thin=st.floats(-12, 6),
    wide=st.floats(-6, 12),
)
@settings(deadline=None, max_examples=60)
def test_ellipses_of_any_shape_keep_to_the_bound(seed: int, dim: int, b: float, thin: float, wide: float) -> None:
    """Against the diagonal closed form in the axes of the ellipse: turning costs next to nothing, needles included."""
    g = seeded(seed)
    spread = 10 ** (min(thin, wide) + torch.rand(dim, generator=g, dtype=torch.float64) * abs(wide - thin))
    along = spread.sqrt() * torch.randn(dim, generator=g, dtype=torch.float64)
    q, curve = rotation(dim, seed), frozen_curve(1.0, b)
    law = Gaussian(along, spread)
    origin = Point(torch.zeros_like(along))
    covariance = (q * spread) @ q.T
    root = torch.linalg.qr((q * spread.sqrt()).T).R.T
    around = FullGaussian(q @ along, root * root.diagonal().sign())
    assert_close(around.covariances()[0], covariance)
    found, expected = (match_probability(z, origin, curve).item() for z in (around, law))
    assert abs(found - expected) <= 2e-5


# ---- laws -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "dim"), [("full", 2), ("full", 3), ("full", 4), ("low-rank-1", 3), ("low-rank-3", 7)])
@pytest.mark.parametrize("make", [posterior, turned])
def test_match_models_do_not_mind_how_the_space_is_turned(
    kind: str, dim: int, make: Callable[..., Distribution]
) -> None:
    model: MatchModel = EVIDENCE if make is posterior else frozen_curve(2.0, 3.0)
    z1, z2 = make(kind, 6, dim=dim, seed=1), make(kind, 6, dim=dim, seed=2)
    q = rotation(dim, 3)
    assert_close(model.logit(rotated(z1, q), rotated(z2, q)), model.logit(z1, z2))
    assert_close(model.logit(z1, z2), model.logit(z2, z1))


@anything
@pytest.mark.parametrize("dim", [2, 6])
def test_no_covariances_are_the_diagonal_case(kind: str, dim: int) -> None:
    if kind == "full" and dim > 4:
        return
    plain = embedding("gaussian", 5, dim=dim)
    root = plain.variance.sqrt().diag_embed()
    rank = int(kind[-1]) if kind != "full" else 0
    own = (plain.variance, torch.zeros(5, rank, dim).double())
    z = FullGaussian(plain.mean, root) if kind == "full" else LowRankGaussian(plain.mean, *own)
    other = turned(kind, 5, dim=dim, seed=4)
    for model in (frozen_curve(2.0, 3.0), EVIDENCE):
        against = plain if model is EVIDENCE else other
        assert_close(model.logit(z, against), model.logit(plain, against))
        assert_close(model.self_mismatch(z), model.self_mismatch(plain))
    assert_close(z.kl(), plain.kl())


@pytest.mark.parametrize("dim", [2, 4])
def test_low_rank_is_the_full_covariance_that_it_stands_for(dim: int) -> None:
    """By determinants, as in many dimensions, and turned, as in few: two ways to one number."""
    z = turned("low-rank-3", 40, dim=dim)
    full = FullGaussian.of(z.mean, z.covariances()[:, 0])
    curve = frozen_curve(2.0, 3.0)
    assert_close(curve.logit(z[:20], z[20:]), curve.logit(full[:20], full[20:]))
    (_, own, factor) = z.tensors
    basis, axes = eigenbasis(z.covariances()[:, 0])
    squares = torch.einsum("ikn,ni->kn", axes, z.mean).square()
    for c in (0.02, 1.0, 300.0):
        expected = ((1 + 2 * c * basis).rsqrt() * torch.exp(-c * squares / (1 + 2 * c * basis))).prod(0)
        assert_close(low_rank_term(z.mean, own, factor, torch.tensor(c).double()), expected)


@pytest.mark.parametrize("dim", [1, 2, 3, 4])
def test_eigenbases_are_eigenbases(dim: int) -> None:
    wild = (
        torch.randn(200, dim, dim, generator=seeded(), dtype=torch.float64)
        * 10 ** torch.linspace(-8, 8, 200)[:, None, None]
    )
    covariance = wild @ wild.mT
    covariance[0], covariance[1] = torch.eye(dim), 0
    spreads, axes = eigenbasis(covariance)
    q, size = axes.movedim(-1, 0), covariance.diagonal(dim1=-2, dim2=-1).sum(-1).clamp(min=1e-300)[:, None, None]
    assert_close(q @ q.mT, torch.eye(dim).double().expand_as(q), atol=1e-12, rtol=0)
    assert_close((q * spreads.T[:, None]) @ q.mT / size, covariance / size, atol=1e-13, rtol=0)


@pytest.mark.parametrize(("kind", "dim"), [("full", 2), ("low-rank-1", 2), ("low-rank-1", 8)])
@pytest.mark.parametrize("make", [posterior, turned])
def test_all_pairs_best_matches_and_costs_are_those_of_logit(
    kind: str, dim: int, make: Callable[..., Distribution]
) -> None:
    model: MatchModel = Evidence(0.3, 0.8) if make is posterior else MatchCurve(2.0, 3.0)
    z1, z2 = make(kind, 9, dim=dim, seed=1), make(kind, 12, dim=dim, seed=2)
    logits = model.logit(z1.unsqueeze(1), z2.unsqueeze(0)).detach()
    narrow = match_matrix(z1.to(torch.float32), z2.to(torch.float32), model)
    assert_close(narrow.double(), logits.sigmoid(), atol=5e-5, rtol=0)
    found = best_matches(z1, z2, model, k=3)
    assert torch.equal(found.items, logits.topk(3).indices)
    chosen = torch.tensor([[3, -1]] * 9)
    told = model.chosen_logits(z1, z2, chosen)
    assert_close(told[:, 0], logits[:, 3])
    assert torch.isneginf(told[:, 1]).all()
    labels = torch.arange(9) % 3
    own, same = model.logit(z1.unsqueeze(1), z1.unsqueeze(0)).sigmoid(), labels[:, None] == labels
    upper = torch.ones(9, 9).triu(1).bool()
    expected = torch.stack([-own[upper & same].log().sum(), -(1 - own[upper & ~same]).log().sum()])
    assert_close(model.pair_costs(z1, labels), expected)


@pytest.mark.parametrize(("kind", "dim"), [("full", 2), ("low-rank-1", 6)])
def test_costs_pass_over_no_pair_that_counts(kind: str, dim: int) -> None:
    """Many pairs are far: costs and gradients are those of all pairs, but for what is below 10⁻⁷ a pair."""
    z, curve = turned(kind, 60, dim=dim, spread=0.1), MatchCurve(8.0, 3.0).double()
    labels = torch.arange(60) % 7
    found: list[Tensor] = []
    expected: list[Tensor] = []
    for into, costs in ((found, curve.pair_costs), (expected, None)):
        leaves = [t.clone().requires_grad_() for t in z.tensors]
        again = rebuilt(z, *leaves)
        if costs is None:
            first, second = torch.triu_indices(60, 60, offset=1)
            logits, same = curve.logit(again[first], again[second]), labels[first] == labels[second]
            each = torch.nn.functional.softplus(torch.where(same, -logits, logits))
            total = torch.stack([each[same].sum(), each[~same].sum()])
        else:
            total = costs(again, labels)
        into += [total, *torch.autograd.grad((total * torch.tensor([1.0, 3.0])).sum(), [*leaves, curve.bias])]
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other, atol=60 * 60 * 1e-6, rtol=1e-6)


@pytest.mark.parametrize("wide", [False, pytest.param(True, marks=pytest.mark.heavy)])
@pytest.mark.parametrize(
    ("one", "two", "dim"),
    [
        ("full", "full", 2),
        ("full", "low-rank-3", 3),
        ("full", "gaussian", 4),
        ("low-rank-1", "low-rank-1", 2),
        ("low-rank-1", "low-rank-1", 20),
        ("low-rank-3", "gaussian", 7),
        ("low-rank-1", "low-rank-3", 5),
    ],
)
@pytest.mark.parametrize("spread", [0.02, 0.5, 3.0])
def test_the_compiled_matrix_of_pairs_that_are_near_or_far_or_both(
    one: str, two: str, dim: int, spread: float, wide: bool
) -> None:
    """More than a strip of them, some groups far apart; p is as promised, and what is far gets no more than it has."""
    dtype, curve = torch.float64 if wide else torch.float32, frozen_curve(3.0, 3.0)
    apart = 8.0 * torch.arange(3).double().repeat_interleave(200)[:, None]
    z1: Distribution = turned(one, 40, dim=dim, seed=1, spread=spread / dim**0.5)
    other = turned if two in TURNED_KINDS else embedding
    z2 = other(two, 600, dim=dim, seed=2, spread=spread / dim**0.5)
    z1, z2 = (rebuilt(z, z.mean / dim**0.5 + a, *z.tensors[1:]) for z, a in ((z1, 0.0), (z2, apart)))
    z1, z2 = z1.to(dtype), z2.to(dtype)
    found = match_matrix(z1, z2, curve).double()
    wide1, wide2 = z1.to(torch.float64), z2.to(torch.float64)
    expected = curve.logit(wide1.unsqueeze(1), wide2.unsqueeze(0)).sigmoid()
    assert found.shape == (40, 600)
    assert (found - expected).abs().max() <= (2e-5 if not wide else 1.2e-5)  # of which 10⁻⁵ are pairs passed over
    assert_close(match_matrix(z2, z1, curve).double(), found.T, atol=2e-5, rtol=0)


def spread_out(one: str, two: str, dim: int, spread: float, wide: float = 8.0) -> tuple[Distribution, Distribution]:
    """40 embeddings, and 600 in three groups, of which all but the first are far: more than a strip of them."""
    apart = wide * torch.arange(3).double().repeat_interleave(200)[:, None]
    other = turned if two in TURNED_KINDS else embedding
    z1: Distribution = turned(one, 40, dim=dim, seed=1, spread=spread / dim**0.5)
    z2: Distribution = other(two, 600, dim=dim, seed=2, spread=spread / dim**0.5)
    z1, z2 = (rebuilt(z, z.mean / dim**0.5 + a, *z.tensors[1:]) for z, a in ((z1, 0.0), (z2, apart)))
    return z1, z2


MATRICES = [
    ("full", "full", 2),
    ("low-rank-1", "low-rank-1", 2),
    ("full", "low-rank-3", 3),
    ("low-rank-1", "low-rank-1", 20),
    ("low-rank-3", "gaussian", 7),
]


@pytest.mark.parametrize(("one", "two", "dim"), MATRICES)
@pytest.mark.parametrize(("b", "spread"), [(3.0, 0.02), (3.0, 0.5), (-2.0, 3.0), (14.0, 0.1), (60.0, 0.1)])
def test_log_odds_of_all_pairs_are_those_of_pairs_however_far(
    one: str, two: str, dim: int, b: float, spread: float
) -> None:
    """Far beyond where p itself is a number. Single precision moves means that are 3,000 units apart by 10⁻⁴ of one."""
    curve = frozen_curve(3.0, b)
    z1, z2 = spread_out(one, two, dim, spread, wide=1000.0)
    expected = curve.logit(z1.unsqueeze(1), z2.unsqueeze(0))
    assert expected.min() < -3000
    assert_close(curve.matrix(z1, z2), expected, atol=1e-6, rtol=1e-6)
    assert_close(curve.matrix(z2, z1).T, expected, atol=1e-6, rtol=1e-6)
    narrow = curve.matrix(z1.to(torch.float32), z2.to(torch.float32))
    assert narrow.dtype == torch.float32
    assert_close(narrow.sigmoid().double(), expected.sigmoid(), atol=1.5e-4, rtol=0)
    far = expected < -50
    assert_close(narrow[far].double(), expected[far], atol=0, rtol=1e-4)


@pytest.mark.parametrize("exclude_self", [False, True])
@pytest.mark.parametrize(("one", "two", "dim"), MATRICES)
def test_the_best_matches_are_those_of_all_log_odds(one: str, two: str, dim: int, exclude_self: bool) -> None:
    """Of probes with many good matches, and of some that are far from everything."""
    curve = frozen_curve(3.0, 3.0)
    probes, gallery = spread_out(one, two, dim, 0.5)
    far = torch.where(torch.arange(40) % 5 == 0, 60.0, 0.0).double()[:, None]
    probes = rebuilt(probes, probes.mean + far, *probes.tensors[1:])
    logits = curve.logit(probes.unsqueeze(1), gallery.unsqueeze(0))
    if exclude_self:
        logits.fill_diagonal_(-torch.inf)
    expected = logits.topk(7)
    found = curve.nearest(probes, gallery, 7, exclude_self)
    assert torch.equal(found.items, expected.indices)
    assert_close(found.logits.double(), expected.values, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("b", [-1.0, 3.0, 11.0])
@pytest.mark.parametrize(("one", "two", "dim"), [("low-rank-1", "low-rank-1", 20), ("low-rank-3", "gaussian", 6)])
def test_compiled_sums_of_pairs_have_the_values_and_slopes_of_plain_torch(
    one: str, two: str, dim: int, b: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Near and far, each item in many pairs, so that several sums of slopes are kept."""
    z1, z2 = spread_out(one, two, dim, 0.3, wide=0.3)
    found: list[list[Tensor]] = []
    for compiled in (True, False):
        monkeypatch.setattr(turned_pairs, "is_compiled", lambda _, compiled=compiled: compiled)
        curve = MatchCurve(3.0, b).double()
        near, far = ([t.clone().requires_grad_() for t in z.tensors] for z in (z1, z2))
        logits = curve.logit(rebuilt(z1, *near).unsqueeze(1), rebuilt(z2, *far).unsqueeze(0))
        total = (logits * torch.linspace(-1, 1, 600).double()).sum()
        found.append([logits.detach(), *torch.autograd.grad(total, [*near, *far, *curve.parameters()])])
    for one_way, other_way in zip(*found, strict=True):
        assert_close(one_way, other_way, atol=1e-7 * float(other_way.abs().max()), rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("kind", "dim"), [("full", 2), ("low-rank-1", 6)])
def test_a_far_positive_pair_has_a_finite_loss_and_a_pull(kind: str, dim: int, dtype: torch.dtype) -> None:
    z = turned(kind, 2, dim=dim, dtype=dtype)
    mean = (z.mean + torch.tensor([[0.0], [1e4]], dtype=dtype)).requires_grad_()
    apart = rebuilt(z, mean, *z.tensors[1:])
    loss = -log_match_probability(apart[0], apart[1], MatchCurve().to(dtype))
    torch.autograd.backward(loss)
    assert mean.grad is not None
    assert torch.isfinite(loss)
    assert (mean.grad[1] > 0).all()


@pytest.mark.parametrize("size", [1e-30, 1e-8, 1.0, 1e8, 1e30])
@pytest.mark.parametrize("scale", [1e-15, 1.0, 1e15])
@pytest.mark.parametrize(("kind", "dim"), [("full", 3), ("low-rank-1", 6)])
def test_gradients_are_finite_at_any_scale_and_size(kind: str, dim: int, size: float, scale: float) -> None:
    curve = MatchCurve(scale, 3.0).double()
    one, other = (turned(kind, 3, dim=dim, seed=seed) for seed in (1, 2))
    shrink = [size if t.shape == one.mean.shape else math.sqrt(size) for t in one.tensors[1:]]
    leaves = [t.requires_grad_() for t in (one.mean, *(t * s for t, s in zip(one.tensors[1:], shrink, strict=True)))]
    torch.autograd.backward(curve.logit(rebuilt(one, *leaves), other).sum())
    for leaf in (*leaves, curve.bias, curve.log_scale):
        assert leaf.grad is not None
        assert torch.isfinite(leaf.grad).all()


# ---- gradients ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "dim"), [("full", 2), ("full", 3), ("low-rank-1", 2), ("low-rank-1", 5)])
@pytest.mark.parametrize("b", [-1.0, 3.0, 14.0])
def test_gradients_are_those_of_differences(kind: str, dim: int, b: float) -> None:
    curve = MatchCurve(2.0, b).double()
    one, other = turned(kind, 1, dim=dim, seed=1), turned(kind, 1, dim=dim, seed=2)
    leaves = [t.clone().requires_grad_() for t in one.tensors]

    def p_of(log_scale: Tensor, bias: Tensor, *tensors: Tensor) -> Tensor:
        called = {"curve.log_scale": log_scale, "curve.bias": bias}
        p: Tensor = torch.func.functional_call(Wrapped(curve), called, (lower(one, *tensors), other))
        return p

    assert torch.autograd.gradcheck(p_of, (curve.log_scale, curve.bias, *leaves), atol=1e-5)


class Wrapped(torch.nn.Module):
    """A call is the match probability."""

    def __init__(self, curve: MatchCurve) -> None:
        super().__init__()
        self.curve = curve

    def forward(self, z1: Distribution, z2: Distribution) -> Tensor:
        return match_probability(z1, z2, self.curve)


def test_gradients_do_not_break_where_eigenvalues_are_equal() -> None:
    """Round Gaussians have no eigenbasis of their own: slopes are those of their neighbours."""
    curve, mean = frozen_curve(2.0, 3.0), torch.tensor([[0.4, -0.2]]).double()
    other = FullGaussian(0 * mean, 0.5 * torch.eye(2).double()[None])
    slopes = []
    for tilt in (0.0, 1e-9, 1e-4):
        root = torch.tensor([[[0.3, 0.0], [tilt, 0.3]]]).double().requires_grad_()
        torch.autograd.backward(curve.logit(FullGaussian(mean, root), other).sum())
        slopes.append(root.grad)
    assert_close(slopes[0], slopes[1], atol=1e-7, rtol=0)
    assert_close(slopes[0], slopes[2], atol=1e-3, rtol=0)


@pytest.mark.parametrize(("kind", "dim"), [("full", 2), ("low-rank-1", 6)])
def test_gradients_of_evidence_are_those_of_differences(kind: str, dim: int) -> None:
    one, other = posterior(kind, 2, dim=dim, seed=1), posterior(kind, 2, dim=dim, seed=2)
    leaves = [t.clone().requires_grad_() for t in one.tensors]
    assert torch.autograd.gradcheck(lambda *t: EVIDENCE.logit(lower(one, *t), other), leaves)


@pytest.mark.parametrize(("kind", "dim"), [("full", 2), ("low-rank-1", 6)])
def test_costs_by_evidence_have_the_gradients_of_pairs(kind: str, dim: int) -> None:
    z, labels, model = posterior(kind, 9, dim=dim), torch.arange(9) % 3, Evidence(0.3, 0.8).double()
    found: list[list[Tensor]] = []
    for costs in (model.pair_costs, super(Evidence, model).pair_costs):
        leaves = [t.clone().requires_grad_() for t in z.tensors]
        total = costs(rebuilt(z, *leaves), labels)
        slopes = torch.autograd.grad((total * torch.tensor([1.0, 3.0])).sum(), [*leaves, model.log_odds])
        found.append([total, *slopes])
    for one, other in zip(*found, strict=True):
        assert_close(one, other)


# ---- evidence against integrals, and fusion -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "two"), [*product(TURNED_KINDS, TURNED_KINDS), ("full", "gaussian"), ("full", "mixture-2")]
)
def test_evidence_is_the_integral(one: str, two: str) -> None:
    """log ∫ p₁ p₂ / r on a fine grid of the plane."""
    axis = torch.linspace(-7, 7, 501, dtype=torch.float64)
    grid = torch.stack(torch.meshgrid(axis, axis, indexing="ij"), dim=-1)
    z1, z2 = posterior(one, seed=1), posterior(two, seed=2) if two in TURNED_KINDS else embedding(two, seed=2)
    log_r = -0.5 * (grid.square() + math.log(2 * math.pi)).sum(-1)
    exact = (z1.log_prob(grid) + z2.log_prob(grid) - log_r).flatten().logsumexp(0) + 2 * math.log(14 / 500)
    assert_close(Evidence().log_factor(z1, z2), exact, atol=1e-6, rtol=1e-6)


def test_evidence_by_determinants_is_that_of_full_matrices() -> None:
    """In many dimensions, against the formula with D × D matrices."""
    z1, z2 = posterior("low-rank-3", 5, dim=9, seed=1), posterior("low-rank-1", 5, dim=9, seed=2)
    precisions = [z.covariances()[:, 0].inverse() for z in (z1, z2)]
    pulls = [p @ z.mean[..., None] for p, z in zip(precisions, (z1, z2), strict=True)]
    both, pull = precisions[0] + precisions[1] - torch.eye(9).double(), pulls[0] + pulls[1]
    expected = (pull.mT @ both.inverse() @ pull)[:, 0, 0] - both.logdet()
    for p, v, z in zip(precisions, pulls, (z1, z2), strict=True):
        expected = expected + p.logdet() - (z.mean[..., None] * v).sum((-1, -2))
    assert_close(Evidence().log_factor(z1, z2), 0.5 * expected)
    assert_close(EVIDENCE.information(z1), 0.5 * precisions[0].logdet())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("one", "two", "dim"),
    [
        ("full", "full", 1),
        ("full", "full", 2),
        ("full", "low-rank-3", 3),
        ("gaussian", "full", 4),
        ("low-rank-1", "low-rank-1", 5),
        ("low-rank-1", "low-rank-3", 20),
        ("gaussian", "low-rank-1", 7),
        ("low-rank-1", "low-rank-1", 130),
    ],
)
def test_evidence_of_all_pairs_is_that_of_pairs(one: str, two: str, dim: int, dtype: torch.dtype) -> None:
    """More than a strip of them, from next to nothing known to next to everything."""
    lists = []
    for seed, (kind, count) in enumerate([(one, 37), (two, 300)]):
        make = posterior if kind in TURNED_KINDS else embedding
        z: Distribution = make(kind, count, dim=dim, seed=seed)
        shrink = torch.logspace(-6, 0, count, dtype=torch.float64).view(-1, *[1] * (z.mean.ndim - 1))
        tensors = [t * (shrink if t.shape == z.mean.shape else shrink[..., None].sqrt()) for t in z.tensors[1:]]
        lists.append(rebuilt(z, 0.3 * z.mean, *tensors).to(dtype))
    z1, z2 = lists
    expected = EVIDENCE.logit(z1.to(torch.float64).unsqueeze(1), z2.to(torch.float64).unsqueeze(0))
    found = EVIDENCE.matrix(z1, z2)
    assert found.dtype == dtype
    assert_close(found.double(), expected, atol=1e-6 if dtype == torch.float64 else 1e-4, rtol=1e-6)
    assert_close(EVIDENCE.matrix(z2, z1), found.T)
    assert EVIDENCE.matrix(z1[:0], z2).shape == (0, 300)


@pytest.mark.parametrize(("dim", "least"), [(5, 1e-12), (40, 1e-30), (130, 1e-8)])
def test_products_of_precisions_do_not_overflow(dim: int, least: float) -> None:
    """Against diagonal covariances: factors of zeros turn nothing."""
    mean = torch.randn(20, dim, generator=seeded()).double() * least**0.5
    plain = Gaussian(mean, torch.full_like(mean, least))
    z = LowRankGaussian(mean, plain.variance, torch.zeros(20, 1, dim).double())
    assert_close(EVIDENCE.matrix(z, z), EVIDENCE.matrix(plain, plain), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("kind", "dim"), [("full", 3), ("low-rank-1", 6), ("low-rank-3", 6)])
@pytest.mark.parametrize(("model", "prior"), [(EVIDENCE, 1.0), (frozen_curve(), 0.0)])
def test_fusion_adds_precisions(kind: str, dim: int, model: MatchModel, prior: float) -> None:
    z, owner = posterior(kind, 6, dim=dim), torch.tensor([1, 0, 1, 1, 2, 1])
    fused = model.fuse(z, owner)
    unit = prior * torch.eye(dim).double()
    precisions = z.covariances()[:, 0].inverse()
    for k in range(3):
        total = unit + (precisions[owner == k] - unit).sum(0)
        assert_close(fused[k].covariances()[0].inverse(), total)
        pulls = (precisions @ z.mean[..., None])[owner == k].sum(0)
        assert_close(fused[k].mean, (total.inverse() @ pulls)[:, 0])
    assert_close(fused[2].mean, z[4].mean)
    assert not torch.isnan(model.matrix(z, fused)).any()


def test_what_evidence_cannot_weigh_is_refused() -> None:
    wide = FullGaussian.of(torch.zeros(2, 2), torch.tensor([[0.9, 0.8], [0.8, 0.9]]).expand(2, 2, 2))
    with pytest.raises(ValueRangeError, match=r"no variance exceeds 1; got one of 1\.7"):
        EVIDENCE.logit(wide, wide)
    long = LowRankGaussian(torch.zeros(2, 6), torch.full((2, 6), 0.5), torch.ones(2, 1, 6))
    with pytest.raises(ValueRangeError, match=r"got one of 6\.5"):
        EVIDENCE.matrix(long, long)
    with pytest.raises(ShapeError, match="diagonal covariances"):
        Evidence(rarity=1.0).logit(posterior("full", 2), posterior("full", 2))
    mixture = Mixture(torch.zeros(2, 2, 2), torch.full((2, 2, 2), 0.5))
    assert EVIDENCE.matrix(mixture.to(torch.float64), posterior("full", 3)).shape == (2, 3)
