"""Evidence against numerical integration, its laws, its precision, and what it refuses."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from hedged.distributions import Distribution, Gaussian, Mixture, Point
from hedged.errors import ShapeError, ValueRangeError
from hedged.match._evidence.formula import give_way
from hedged.match._evidence.matrix import log_factors, shared_groups
from hedged.match.evidence import Evidence
from hedged.match.model import MatchModel
from hedged.match.nearest import best_matches

MODEL = Evidence().requires_grad_(False)
SEEDS = st.integers(0, 2**16)


def integral(z1: Distribution, z2: Distribution) -> Tensor:
    """log ∫ p(z|x₁) p(z|x₂) / r(z) dz of two single Gaussians or mixtures in one dimension, on a fine grid."""
    z = torch.linspace(-12, 12, 200_001, dtype=torch.float64).unsqueeze(-1)
    log_r = -0.5 * (z.square() + math.log(2 * math.pi)).sum(-1)
    terms = z1.log_prob(z) + z2.log_prob(z) - log_r
    return terms.logsumexp(0) + math.log(24 / 200_000)


def gaussians(seed: int, count: int, dim: int, groups: int, most: float = 100.0) -> Gaussian:
    """Posteriors that keep to the prior, with evidence from 0.01 to `most`, shared by groups of dimensions."""
    g = torch.Generator().manual_seed(seed)
    power = torch.rand(count, groups, generator=g, dtype=torch.float64)
    evidence = 0.01 * (most / 0.01) ** power
    variance = (1 / (1 + evidence)).repeat_interleave(dim // groups, dim=1)
    noise = torch.randn(count, dim, generator=g, dtype=torch.float64)
    return Gaussian(noise * (1 - variance).sqrt(), variance)


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_gaussians_equal_the_integral(seed: int) -> None:
    z1, z2 = gaussians(seed, 1, 3, 3)[0], gaussians(seed + 1, 1, 3, 3)[0]
    each = [
        integral(*(Gaussian(z.mean[d : d + 1], z.variance[d : d + 1]) for z in (z1, z2))) for d in range(3)
    ]  # dimensions are independent: the log factors add
    torch.testing.assert_close(MODEL.logit(z1, z2), torch.stack(each).sum(), atol=1e-6, rtol=1e-6)


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_mixtures_equal_the_integral(seed: int) -> None:
    parts = gaussians(seed, 5, 1, 1)
    z1, z2 = (Mixture(parts.mean[rows], parts.variance[rows]) for rows in (slice(0, 3), slice(3, 5)))
    torch.testing.assert_close(MODEL.logit(z1, z2), integral(z1, z2), atol=1e-6, rtol=1e-6)


def test_natural_parameters_tell_the_same() -> None:
    z1, z2 = gaussians(0, 40, 8, 8), gaussians(1, 40, 8, 8)
    (l1, n1), (l2, n2) = ((1 / z.variance - 1, z.mean / z.variance) for z in (z1, z2))
    squares = (n1 + n2).square() / (1 + l1 + l2) - n1.square() / (1 + l1) - n2.square() / (1 + l2)
    widths = l1.log1p() + l2.log1p() - (l1 + l2).log1p()
    torch.testing.assert_close(MODEL.logit(z1, z2), 0.5 * (squares + widths).sum(-1))


@given(SEEDS, st.floats(-3, 3))
@settings(max_examples=20, deadline=None)
def test_an_input_that_says_nothing_leaves_the_prior(seed: int, log_odds: float) -> None:
    z = gaussians(seed, 6, 4, 4)
    nothing = Gaussian(torch.zeros_like(z.mean), torch.ones_like(z.variance))
    told = Evidence(log_odds).requires_grad_(False).logit(z, nothing)
    torch.testing.assert_close(told, torch.full_like(told, torch.tensor(log_odds).item()), atol=1e-9, rtol=0)


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_both_orders_tell_the_same(seed: int) -> None:
    z1, z2 = gaussians(seed, 6, 4, 2), gaussians(seed + 1, 6, 4, 4)
    torch.testing.assert_close(MODEL.logit(z1, z2), MODEL.logit(z2, z1))


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_fused_inputs_tell_what_they_tell_one_after_the_other(seed: int) -> None:
    """BF(x₁, x₂) · BF(x₁x₂, x₃) = BF(x₂, x₃) · BF(x₂x₃, x₁): evidence does not depend on its order."""
    z = gaussians(seed, 3, 5, 5)
    first = MODEL.fuse(z[[0, 1]], torch.tensor([0, 0]))[0]
    second = MODEL.fuse(z[[1, 2]], torch.tensor([0, 0]))[0]
    one_way = MODEL.logit(z[0], z[1]) + MODEL.logit(first, z[2])
    other_way = MODEL.logit(z[1], z[2]) + MODEL.logit(second, z[0])
    torch.testing.assert_close(one_way, other_way)


def test_fusion_adds_evidence() -> None:
    z = gaussians(3, 5, 4, 4)
    owner = torch.tensor([2, 0, 0, 2, 2])
    fused = MODEL.fuse(z, owner)
    for k in (0, 2):
        rows = owner == k
        precision = 1 + (1 / z.variance[rows] - 1).sum(0)
        torch.testing.assert_close(fused.variance[k], 1 / precision)
        torch.testing.assert_close(fused.mean[k], (z.mean[rows] / z.variance[rows]).sum(0) / precision)
    torch.testing.assert_close(fused.variance[1], torch.ones(4, dtype=torch.float64))


@pytest.mark.parametrize("rate", [0.001, 0.3, 0.9])
def test_a_base_rate_shifts_log_odds_exactly(rate: float) -> None:
    z1, z2 = gaussians(0, 6, 4, 4), gaussians(1, 6, 4, 4)
    moved = Evidence(0.4, 0.7).at_base_rate(rate).logit(z1, z2)
    torch.testing.assert_close(moved, Evidence(0.4, 0.7).logit(z1, z2) + math.log(rate / (1 - rate)))


@pytest.mark.parametrize("groups", [1, 4, 32])
@pytest.mark.parametrize("most", [10.0, 1e6])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_all_pairs_are_those_of_logit(groups: int, most: float, dtype: torch.dtype) -> None:
    z1, z2 = gaussians(0, 70, 32, groups, most).to(dtype), gaussians(1, 50, 32, groups, most).to(dtype)
    expected = Evidence(0.3, 0.8).logit(*(z.to(torch.float64).unsqueeze(i) for z, i in ((z1, 1), (z2, 0))))
    found = Evidence(0.3, 0.8).matrix(z1, z2)
    assert found.dtype == dtype
    rounding = 1e-6 if dtype == torch.float32 else 1e-9
    torch.testing.assert_close(found.double(), expected.detach(), atol=1e-3 if rounding > 1e-7 else 1e-7, rtol=rounding)


def test_all_pairs_of_mixtures_are_those_of_logit() -> None:
    parts1, parts2 = gaussians(0, 20, 4, 4), gaussians(1, 21, 4, 4)
    z1 = Mixture(parts1.mean.view(10, 2, 4), parts1.variance.view(10, 2, 4))
    z2 = Mixture(parts2.mean.view(7, 3, 4), parts2.variance.view(7, 3, 4))
    torch.testing.assert_close(MODEL.matrix(z1, z2), MODEL.logit(z1.unsqueeze(1), z2.unsqueeze(0)))


def test_groups_are_neighbours_that_share_a_variance() -> None:
    shared = torch.tensor([[0.1, 0.1, 0.2, 0.2, 0.2], [0.3, 0.3, 0.3, 0.3, 0.3]])
    assert shared_groups(shared) == [slice(0, 2), slice(2, 5)]
    assert shared_groups(shared[1:]) == [slice(0, 5)]


@pytest.mark.parametrize("groups", [1, 8, 64])
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e2, 1e4, 1e6])
def test_single_precision_is_within_a_thousandth(groups: int, scale: float) -> None:
    """Pairs of one identity: their means are apart by their own noise, and their log-odds are of moderate size."""
    g = torch.Generator().manual_seed(7)
    evidence = scale * (0.5 + torch.rand(2, 200, groups, generator=g, dtype=torch.float64))
    spread = (1 / (1 + evidence)).repeat_interleave(64 // groups, -1)
    identity = torch.randn(200, 64, generator=g, dtype=torch.float64)
    seen = identity + (spread / (1 - spread).clamp(min=1e-12)).sqrt() * torch.randn(
        2, 200, 64, generator=g, dtype=torch.float64
    )
    z1, z2 = (Gaussian(m * (1 - s), s).to(torch.float32) for m, s in zip(seen, spread, strict=True))
    expected = MODEL.logit(z1.to(torch.float64), z2.to(torch.float64))
    torch.testing.assert_close(MODEL.logit(z1, z2).double(), expected, atol=1e-3, rtol=0)
    torch.testing.assert_close(MODEL.matrix(z1, z2).diagonal().double(), expected, atol=1e-3, rtol=0)


@pytest.mark.parametrize("scale", [0.0, 1.0, 1e3])
def test_single_precision_holds_where_one_input_is_far_surer(scale: float) -> None:
    g = torch.Generator().manual_seed(8)
    identity = torch.randn(100, 64, generator=g, dtype=torch.float64)
    wide = torch.full((100, 64), 1 / (1 + scale), dtype=torch.float64)
    noise = torch.randn(100, 64, generator=g, dtype=torch.float64)
    z1 = Gaussian(identity, torch.full_like(identity, 1 / (1 + 1e6))).to(torch.float32)
    z2 = Gaussian(identity * (1 - wide) + noise * (wide * (1 - wide)).sqrt(), wide).to(torch.float32)
    expected = MODEL.logit(z1.to(torch.float64), z2.to(torch.float64))
    for found in (MODEL.logit(z1, z2), MODEL.matrix(z1, z2).diagonal(), MODEL.matrix(z2, z1).diagonal()):
        torch.testing.assert_close(found.double(), expected, atol=1e-3, rtol=0)


@pytest.mark.parametrize("groups", [1, 8, 64])
def test_the_best_matches_are_those_of_all_pairs(groups: int) -> None:
    probes, gallery = gaussians(3, 40, 64, groups), gaussians(4, 300, 64, groups)
    every = MODEL.logit(probes[:, None], gallery[None])
    assert torch.equal(best_matches(probes, gallery, MODEL, k=7).items, every.topk(7, dim=1).indices)


@pytest.mark.parametrize("groups", [1, 64])
@pytest.mark.parametrize("evidence", [0.0, 1e-8, 1e6, 1e8])
def test_log_odds_are_finite_at_both_ends(groups: int, evidence: float) -> None:
    z1 = Gaussian(torch.randn(30, 64), torch.full((30, 64), 1 / (1 + evidence)))
    z2 = gaussians(2, 30, 64, groups, 1e8).to(torch.float32)
    for found in (MODEL.logit(z1, z2), MODEL.matrix(z1, z2), MODEL.matrix(z2, z2), MODEL.matrix(z1, z1)):
        assert torch.isfinite(found).all()


def test_gradients_are_those_of_differences() -> None:
    z = gaussians(0, 3, 4, 4)
    other = gaussians(1, 3, 4, 4)
    mean, spread = (x.clone().requires_grad_() for x in z.tensors)
    assert torch.autograd.gradcheck(lambda m, v: MODEL.logit(Gaussian(m, v), other), (mean, spread))


@pytest.mark.parametrize("compare", [MODEL.logit, MODEL.matrix])
def test_points_are_refused(compare: Callable[[Distribution, Distribution], Tensor]) -> None:
    point = Point(torch.zeros(2, 3))
    with pytest.raises(ValueRangeError, match="infinite evidence"):
        compare(point, point)


def test_embeddings_wider_than_the_prior_are_refused() -> None:
    wide = Gaussian(torch.zeros(2, 3), torch.full((2, 3), 1.5))
    with pytest.raises(ValueRangeError, match="no variance exceeds 1; got one"):
        MODEL.logit(wide, wide)


def test_other_spaces_and_kinds_are_refused() -> None:
    z = gaussians(0, 4, 4, 4)
    with pytest.raises(ShapeError, match="dimensions"):
        MODEL.logit(z, gaussians(0, 4, 3, 3))
    with pytest.raises(ShapeError, match="two lists"):
        MODEL.matrix(z.unsqueeze(0), z)
    with pytest.raises(ShapeError, match="Cⁿ"):
        MODEL.fuse(Mixture(z.mean.unsqueeze(1), z.variance.unsqueeze(1)), torch.zeros(4, dtype=torch.int64))
    with pytest.raises(ShapeError, match="numbered from 0"):
        MODEL.fuse(z, torch.tensor([0, -1, 0, 0]))
    with pytest.raises(ValueRangeError, match="log_odds=inf"):
        Evidence(math.inf)
    with pytest.raises(ValueRangeError, match="temper=0"):
        Evidence(temper=0)
    with pytest.raises(ValueRangeError, match="self_temper=-1"):
        Evidence(self_log_odds=0.0, self_temper=-1)
    with pytest.raises(ValueRangeError, match="both its numbers or neither"):
        Evidence(self_temper=1.0)
    with pytest.raises(ValueRangeError, match="base rate"):
        MODEL.at_base_rate(1.0)


def test_the_uncertainty_has_numbers_of_its_own_where_it_was_calibrated() -> None:
    z = gaussians(0, 5, 4, 4)
    own = MODEL.log_factor(z, z)
    plain, calibrated = Evidence(0.3, 0.5), Evidence(0.3, 0.5, -1.0, 0.2)
    torch.testing.assert_close(plain.self_mismatch(z), (-(0.3 + 0.5 * own)).sigmoid(), check_dtype=False)
    for model in (calibrated, calibrated.at_base_rate(0.01), MatchModel.restore(calibrated.describe())):
        torch.testing.assert_close(model.self_mismatch(z), (1.0 - 0.2 * own).sigmoid(), check_dtype=False)
    torch.testing.assert_close(calibrated.logit(z, z), plain.logit(z, z))


def test_it_is_exact_and_saves_what_it_knows() -> None:
    model = Evidence(0.25, 0.5)
    other = MatchModel.restore(model.describe())
    assert isinstance(other, Evidence)
    assert (other.log_odds.item(), other.temper.item(), other.error_bound()) == (0.25, 0.5, 0.0)
    assert "exact" in other.describe_error()


@pytest.mark.parametrize("variances", [[0.1, 0.1, 0.4, 0.4, 0.9, 0.9], [0.1, 0.1, 0.1, 0.4, 0.9, 0.9]])
def test_products_are_those_of_logit_and_have_its_gradients(variances: list[float]) -> None:
    spread = torch.tensor(variances, dtype=torch.float64).expand(5, -1)
    mean = torch.randn(5, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    z = Gaussian(mean, spread)
    found = log_factors(z, z, shared_groups(spread))
    expected = MODEL.logit(z.unsqueeze(1), z.unsqueeze(0))
    torch.testing.assert_close(found, expected)
    (slopes,), (expected_slopes,) = (torch.autograd.grad(x.square().sum(), mean) for x in (found, expected))
    torch.testing.assert_close(slopes, expected_slopes)


def rare(seed: int, count: int, dim: int) -> Gaussian:
    """Posteriors with a last dimension more, which says how rare each is."""
    z = gaussians(seed, count, dim, 1)
    rarity = torch.randn(count, 1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return Gaussian(torch.cat([z.mean, rarity], 1), torch.cat([z.variance, torch.ones_like(rarity)], 1))


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_evidence_for_a_match_gives_way_where_inputs_are_common(seed: int) -> None:
    z1, z2 = rare(seed, 5, 4), rare(seed + 1, 7, 4)
    plain, weighed = Evidence(0.3, 0.5).requires_grad_(False), Evidence(0.3, 0.5, rarity=2.0).requires_grad_(False)
    inner1, inner2 = (Gaussian(z.mean[:, :-1], z.variance[:, :-1]) for z in (z1, z2))
    factors, excess = Evidence().matrix(inner1, inner2), 2.0 * (z1.mean[:, -1:] + z2.mean[:, -1])
    given = torch.where(factors > 0, factors + excess * factors / (factors + excess.abs()), factors)
    expected = 0.3 + 0.5 * given
    torch.testing.assert_close(weighed.matrix(z1, z2), expected)
    torch.testing.assert_close(weighed.logit(z1.unsqueeze(1), z2.unsqueeze(0)), expected)
    torch.testing.assert_close(weighed.information(z1), plain.information(inner1))
    torch.testing.assert_close(weighed.log_factor(z1, z1), plain.log_factor(inner1, inner1))


@given(st.floats(-30, 30), st.floats(-50, 50))
def test_giving_way_keeps_the_order_and_the_sign(factor: float, excess: float) -> None:
    steps = torch.linspace(factor - 1, factor + 1, 201, dtype=torch.float64)
    given = give_way(steps, torch.tensor(excess, dtype=torch.float64))
    assert (given.diff() > -1e-12).all()
    assert (given.sign() == steps.sign()).all()


def test_a_template_is_as_rare_as_its_inputs_on_average() -> None:
    model, z, owner = Evidence(rarity=2.0), rare(0, 5, 3), torch.tensor([0, 2, 0, 2, 2])
    fused = model.fuse(z, owner)
    inner = Evidence().fuse(Gaussian(z.mean[:, :-1], z.variance[:, :-1]), owner)
    torch.testing.assert_close(fused.mean[:, :-1], inner.mean)
    torch.testing.assert_close(fused.variance[:, :-1], inner.variance)
    expected = torch.stack([z.mean[[0, 2], -1].mean(), z.mean.new_zeros(()), z.mean[[1, 3, 4], -1].mean()])
    torch.testing.assert_close(fused.mean[:, -1], expected)


def test_rarity_is_saved_and_survives_a_base_rate() -> None:
    model = Evidence(0.1, 0.5, -1.0, 0.2, rarity=3.0)
    assert MatchModel.restore(model.describe()).settings() == model.settings()
    assert model.at_base_rate(0.1).settings()["rarity"] == 3.0
    assert "rarity" not in Evidence().settings()
    with pytest.raises(ValueRangeError, match="from 0 up, got rarity=-1"):
        Evidence(rarity=-1.0)
    with pytest.raises(ShapeError, match="at least 2 dimensions"):
        model.matrix(gaussians(0, 2, 1, 1), gaussians(0, 2, 1, 1))
