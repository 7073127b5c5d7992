"""Losses against explicit loops over pairs, at extreme logits, and on batches they must refuse."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations

import pytest
import torch
from torch import Tensor, nn

from hedged import ContrastiveLoss, Gaussian, HedgedLoss, MatchCurve, Mixture, Point, SoftContrastiveLoss
from hedged.distributions import Distribution
from hedged.errors import ShapeError, ValueRangeError
from hedged.losses import (
    AllPairs,
    BatchPairs,
    Decoupled,
    ExpectedLog,
    Loss,
    Marginal,
    MutualLikelihood,
    PairLoss,
    PairSelection,
    PositiveWeight,
    SampledPairs,
)
from hedged.match import MonteCarlo, match_probability

LABELS = torch.tensor([0, 0, 1, 1, 1, 2])


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def gaussians(count: int = 6, dim: int = 2) -> Gaussian:
    g = seeded()
    mean = torch.randn(count, dim, generator=g, dtype=torch.float64)
    return Gaussian(mean, torch.rand(count, dim, generator=g, dtype=torch.float64) * 0.1 + 0.01)


def by_loops(costs: dict[tuple[int, int], float], weight: float) -> float:
    """w · mean over matching pairs + (1 − w) · mean over the others."""
    matching = [c for (i, j), c in costs.items() if LABELS[i] == LABELS[j]]
    others = [c for (i, j), c in costs.items() if LABELS[i] != LABELS[j]]
    return weight * sum(matching) / len(matching) + (1 - weight) * sum(others) / len(others)


def test_contrastive_is_equation_1_over_all_pairs() -> None:
    z = Point(gaussians().mean)
    costs = {}
    for i, j in combinations(range(6), 2):
        r = math.dist(z.mean[i].tolist(), z.mean[j].tolist())
        costs[i, j] = r**2 if LABELS[i] == LABELS[j] else max(1.5 - r, 0) ** 2
    loss = ContrastiveLoss(margin=1.5, positive_weight=0.3)(z, LABELS)
    assert loss.item() == pytest.approx(by_loops(costs, 0.3), rel=1e-12)


def test_soft_contrastive_is_equation_3_over_all_pairs() -> None:
    z, curve = Point(gaussians().mean), MatchCurve(2.0, 1.0).double()
    costs = {}
    for i, j in combinations(range(6), 2):
        p = 1 / (1 + math.exp(2.0 * math.dist(z.mean[i].tolist(), z.mean[j].tolist()) - 1.0))
        costs[i, j] = -math.log(p if LABELS[i] == LABELS[j] else 1 - p)
    loss = SoftContrastiveLoss(curve, positive_weight=0.3)(z, LABELS)
    assert loss.item() == pytest.approx(by_loops(costs, 0.3), rel=1e-6)


def test_hedged_is_minus_log_match_probability_plus_the_kl_of_both_items() -> None:
    z, curve = gaussians(), MatchCurve(2.0, 1.0).double()
    costs = {}
    for i, j in combinations(range(6), 2):
        p = match_probability(z[i], z[j], curve).item()
        costs[i, j] = -math.log(p if LABELS[i] == LABELS[j] else 1 - p)
    parts = HedgedLoss(curve, beta=0.01, positive_weight=0.3).parts(z, LABELS)
    kl = sum(z[i].kl().item() for i in range(6)) / 6
    assert parts.kl.item() == pytest.approx(kl, rel=1e-12)
    assert parts.total.item() == pytest.approx(by_loops(costs, 0.3) + 0.01 * (kl + kl), rel=1e-9)


def test_expected_log_averages_the_soft_contrastive_cost_over_all_pairs_of_samples() -> None:
    z, curve = gaussians(), MatchCurve(2.0, 1.0).double()
    pairs = list(combinations(range(6), 2))
    first, second = (torch.tensor(side) for side in zip(*pairs, strict=True))
    match = LABELS[first] == LABELS[second]
    cost = ExpectedLog(samples=3, generator=seeded(7)).cost(z[first], z[second], match, curve)
    g = seeded(7)
    draws1, draws2 = z[first].sample(3, g), z[second].sample(3, g)
    for n in range(len(pairs)):
        each = []
        for k1 in range(3):
            for k2 in range(3):
                p = curve(torch.linalg.vector_norm(draws1[k1, n] - draws2[k2, n])).item()
                each.append(-math.log(p if match[n] else 1 - p))
        assert cost[n].item() == pytest.approx(sum(each) / 9, rel=1e-9)


@pytest.mark.parametrize("likelihood", [Marginal(), Marginal(MonteCarlo(4, seeded())), ExpectedLog(4, seeded())])
@pytest.mark.parametrize("components", [1, 2, 4])
@pytest.mark.parametrize("kl_samples", [None, 4])
def test_every_option_gives_a_finite_loss_with_gradients(
    likelihood: Marginal | ExpectedLog, components: int, kl_samples: int | None
) -> None:
    mean = torch.randn(6, components, 2, generator=seeded(), requires_grad=True)
    log_variance = torch.zeros(6, components, 2, requires_grad=True)
    curve = MatchCurve()
    loss = HedgedLoss(curve, likelihood=likelihood, kl_samples=kl_samples, generator=seeded())
    loss(Mixture(mean, log_variance.exp()), LABELS).backward()
    for tensor in (mean, log_variance, curve.log_scale, curve.bias):
        assert tensor.grad is not None
        assert torch.isfinite(tensor.grad).all()
        assert tensor.grad.abs().sum() > 0


def test_sampled_pairs_keep_so_many_of_each_kind() -> None:
    z = gaussians()
    drawn: list[Tensor] = []

    class Spy(PairLoss):
        def cost(self, z1: Distribution, z2: Distribution, match: Tensor) -> Tensor:
            drawn.append(match)
            return torch.ones(len(match))

    Spy(0.5, SampledPairs(3, seeded()))(z, LABELS)
    assert (int(drawn[0].sum()), int((~drawn[0]).sum())) == (3, 3)


@pytest.mark.parametrize("distance", [0.0, 1.0, 10.0, 1e3, 1e6])
@pytest.mark.parametrize("bias", [-200.0, 3.0, 200.0])
def test_soft_contrastive_is_finite_at_extreme_logits(distance: float, bias: float) -> None:
    mean = torch.tensor([[0.0], [distance], [2 * distance]], requires_grad=True)
    loss = SoftContrastiveLoss(MatchCurve(10.0, bias))(Point(mean), torch.tensor([0, 0, 1]))
    loss.backward()
    assert torch.isfinite(loss)
    assert mean.grad is not None
    assert torch.isfinite(mean.grad).all()


@pytest.mark.parametrize("likelihood", [Marginal(), Marginal(MonteCarlo(8, seeded())), ExpectedLog(8, seeded())])
def test_a_far_positive_still_pulls(likelihood: Marginal | ExpectedLog) -> None:
    mean = torch.tensor([[0.0, 0.0], [10.0, 0.0], [-10.0, 0.0]], requires_grad=True)
    z = Gaussian(mean, torch.full((3, 2), 1e-3))
    loss = HedgedLoss(MatchCurve(10.0, 3.0), beta=0, positive_weight=0.5, likelihood=likelihood)
    parts = loss.parts(z, torch.tensor([0, 0, 1]))
    parts.total.backward()  # type: ignore[no-untyped-call]
    assert parts.positive.item() == pytest.approx(97.0, rel=0.02)
    assert mean.grad is not None
    assert mean.grad[1, 0] > 1


def test_no_item_is_paired_with_itself() -> None:
    """A batch of one image a class has no positive pair, however certain each image is of itself."""
    loss, z = HedgedLoss(MatchCurve(), beta=0), gaussians(3)
    with pytest.warns(UserWarning, match="no matching pair"):
        parts = loss.parts(z, torch.tensor([0, 1, 2]))
    assert parts.positive == 0
    assert parts.total == (1 - loss.positive_weight) * parts.negative > 0


@pytest.mark.parametrize("pairs", [AllPairs(), SampledPairs(4)], ids=["all", "sampled"])
@pytest.mark.parametrize("labels", [[0, 1, 2], [1, 1, 1], [5]], ids=["no match", "one class", "one item"])
def test_the_odd_batches_of_a_plain_loader_cost_what_their_pairs_cost(labels: list[int], pairs: PairSelection) -> None:
    """The gradient is finite, and warned of; what is missing costs nothing."""
    loss = HedgedLoss(MatchCurve(), beta=1e-4, pairs=pairs)
    mean = torch.randn(len(labels), 2, requires_grad=True)
    with pytest.warns(UserWarning, match="teaches nothing"):
        loss(Gaussian(mean, torch.ones(len(labels), 2)), torch.tensor(labels)).backward()
    assert mean.grad is not None
    assert torch.isfinite(mean.grad).all()


def test_bad_batches_are_refused_in_words() -> None:
    loss = HedgedLoss(MatchCurve())
    with pytest.warns(UserWarning, match="no non-matching pair"):
        loss(gaussians(3), torch.tensor([1, 1, 1]))
    with pytest.raises(ShapeError, match=r"labels of shape \(5,\)"):
        loss(gaussians(6), LABELS[:5])
    with pytest.raises(ShapeError, match=r"batch shape \(\)"):
        loss(gaussians()[0], LABELS[0])
    with pytest.raises(ShapeError, match="such as Point"):
        loss(gaussians().mean, LABELS)
    with pytest.raises(ShapeError, match="got Gaussian and list"):
        loss(gaussians(), LABELS.tolist())
    for kind, labels in (("str", "rex"), ("bytes", b"rex"), ("list", [["a"], ["b", "c"], "d"]), ("NoneType", None)):
        with pytest.raises(ShapeError, match=f"got Gaussian and {kind}: .*numpy.unique"):
            loss(gaussians(3), labels)
    for numbers in (torch.tensor([0.0, math.nan, 1.0]), torch.tensor([1j, 2, 3])):
        with pytest.raises(ValueRangeError, match="numbers of classes, none of them NaN"):
            loss(gaussians(3), numbers)
    with pytest.raises(ValueRangeError, match="infinite"):
        loss(Point(gaussians().mean), LABELS)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: HedgedLoss(MatchCurve(), beta=-1e-4), "β"),
        (lambda: HedgedLoss(MatchCurve(), beta=float("nan")), "β"),
        (lambda: MutualLikelihood(stretch=0.0), "stretch"),
        (lambda: -1.0 * HedgedLoss(MatchCurve()), "zero or positive, got -1.0"),
        (lambda: math.nan * HedgedLoss(MatchCurve()), "zero or positive, got nan"),
        (lambda: HedgedLoss(MatchCurve(), positive_weight=0.0), "positive_weight"),
        (lambda: SoftContrastiveLoss(MatchCurve(), positive_weight=1.0), "positive_weight"),
        (lambda: ContrastiveLoss(margin=0.0), "margin"),
        (lambda: ContrastiveLoss(margin=math.inf), "margin"),
        (lambda: HedgedLoss(MatchCurve(), pairs=SampledPairs(0)), "count must be at least 1, got 0"),
    ],
)
def test_impossible_settings_are_refused(make: Callable[[], Loss], message: str) -> None:
    with pytest.raises(ValueRangeError, match=message):
        make()


def test_means_that_train_as_points_and_variances_given_them() -> None:
    generator = seeded(0)
    mean = torch.randn(12, 3, generator=generator).requires_grad_()
    variance = (torch.rand(12, 3, generator=generator) + 0.1).requires_grad_()
    curve, labels = MatchCurve(2.0), torch.arange(12) % 4
    own_curve = MatchCurve(2.0)
    loss = Decoupled(
        SoftContrastiveLoss(own_curve, positive_weight=0.2), HedgedLoss(curve, beta=0.1, positive_weight=0.2)
    )
    assert [id(p) for p in loss.parameters()] == [id(p) for c in (own_curve, curve) for p in c.parameters()]
    of_means = SoftContrastiveLoss(own_curve, positive_weight=0.2)(Point(mean), labels)
    of_variances = HedgedLoss(curve, beta=0.1, positive_weight=0.2)(Gaussian(mean.detach(), variance), labels)
    both = loss(Gaussian(mean, variance), labels)
    torch.testing.assert_close(both, of_means + of_variances)
    trained = [mean, *own_curve.parameters(), variance, *curve.parameters()]
    expected = [
        *torch.autograd.grad(of_means, trained[:3]),
        *torch.autograd.grad(of_variances, trained[3:]),
    ]
    for found, wanted in zip(torch.autograd.grad(both, trained), expected, strict=True):
        torch.testing.assert_close(found, wanted)


def test_the_mutual_likelihood_is_of_matching_pairs_and_of_their_variances() -> None:
    """By loops: log ∫ N(z; μ₁, 4 Σ₁) N(z; μ₂, 4 Σ₂) dz, a sum over a fine grid, dimension by dimension."""
    z, curve = gaussians(), MatchCurve(2.0, 1.0).double()
    mean, variance = z.mean.clone().requires_grad_(), z.variance.clone().requires_grad_()
    hedged, points = HedgedLoss(curve, 0.0, 0.3), SoftContrastiveLoss(MatchCurve(2.0, 1.0).double(), 0.3)
    losses = [Decoupled(points, hedged), Decoupled(points, hedged + 0.7 * MutualLikelihood(positive_weight=0.3))]
    without, with_it = (loss(Gaussian(mean, variance), LABELS) for loss in losses)
    grid = torch.linspace(-8, 8, 200_001, dtype=torch.float64)[:, None]
    overlaps = []
    for i, j in combinations(range(6), 2):
        if LABELS[i] == LABELS[j]:
            density = [
                torch.exp(-((grid - z.mean[k]) ** 2) / (8 * z.variance[k])) / (8 * math.pi * z.variance[k]).sqrt()
                for k in (i, j)
            ]
            overlaps.append((density[0] * density[1]).sum(0).mul(grid[1] - grid[0]).log().sum().item())
    expected = -0.3 * 0.7 * sum(overlaps) / len(overlaps)
    assert (with_it - without).item() == pytest.approx(expected, rel=1e-6)
    (with_it - without).backward()
    assert mean.grad is not None
    assert variance.grad is not None
    assert mean.grad.abs().max() < 1e-12, "the means train as points"
    assert (variance.grad[:5].abs() > 1e-6).all()
    assert (variance.grad[5] == 0).all(), "of a class with one image nothing is known"


def test_variances_learn_how_far_their_own_kind_lies() -> None:
    """Two of a kind are r apart in a dimension: a quarter of r² is shared by their variances, an eighth for each."""
    loss = HedgedLoss(MatchCurve(), beta=0.0) + 1e4 * MutualLikelihood()
    log_variance = torch.zeros(4, 3, requires_grad=True)
    apart = torch.tensor([0.5, 1.0, 2.0])
    mean = torch.stack([torch.zeros(3), apart, apart + 100, apart + 100 + apart])
    optimiser = torch.optim.Adam([log_variance], lr=0.05)
    for _ in range(300):
        optimiser.zero_grad()
        loss(Gaussian(mean, log_variance.exp()), torch.tensor([0, 0, 1, 1])).backward()
        optimiser.step()
    torch.testing.assert_close(log_variance.exp(), (apart**2 / 8).expand(4, 3), rtol=0.02, atol=0)


def test_points_have_no_mutual_likelihood() -> None:
    with pytest.raises(ShapeError, match=r"MutualLikelihood takes Gaussians, .* got Point"):
        MutualLikelihood()(Point(torch.randn(6, 2)), LABELS)


def test_only_means_of_single_gaussians_train_as_points() -> None:
    z = Mixture(torch.zeros(4, 2, 3), torch.ones(4, 2, 3))
    with pytest.raises(ShapeError, match="only the means of single Gaussians"):
        Decoupled(SoftContrastiveLoss(MatchCurve()), HedgedLoss(MatchCurve()))(z, torch.tensor([0, 0, 1, 1]))


def test_losses_add_up_and_follow_one_schedule() -> None:
    z, curve = gaussians(), MatchCurve(2.0, 1.0).double()
    one, other = HedgedLoss(curve, positive_weight=0.3), MutualLikelihood(positive_weight=0.3)
    both = one + 0.5 * other + other
    torch.testing.assert_close(both(z, LABELS), one(z, LABELS) + 1.5 * other(z, LABELS))
    parts, single = both.parts(z, LABELS), one.parts(z, LABELS)
    torch.testing.assert_close(parts.kl, single.kl)
    torch.testing.assert_close(parts.negative, single.negative)
    both.positive_weight = PositiveWeight(start=0.5, end=0.05)(0.25)
    assert one.positive_weight == other.positive_weight == both.positive_weight == pytest.approx(0.025**0.5)
    with pytest.raises(ValueRangeError, match="between 0 and 1, got 1"):
        both.positive_weight = 1


@pytest.mark.parametrize("bad", [{"start": 0.0}, {"end": 1.0}, {"over": 0.0}, {"over": 1.1}])
def test_schedules_that_cannot_be_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValueRangeError, match="between 0 and 1"):
        PositiveWeight(**bad)


def test_parameters_shared_with_an_embedder_are_there_once() -> None:
    curve = MatchCurve()
    embedder = nn.ModuleDict({"net": nn.Linear(3, 2), "curve": curve})
    loss = Decoupled(SoftContrastiveLoss(MatchCurve()), HedgedLoss(curve))
    trained = list(nn.ModuleList([embedder, loss]).parameters())
    assert len(trained) == len({id(p) for p in trained}) == 2 + 2 + 2


def test_a_selection_of_ones_own_sees_the_embeddings() -> None:
    class Hardest(PairSelection):
        """The farthest matching pair and the nearest other one."""

        def select(self, pairs: BatchPairs, z: Distribution) -> BatchPairs:
            apart = (z.mean[pairs.first] - z.mean[pairs.second]).norm(dim=-1)
            far = torch.where(pairs.match, apart, -torch.inf).argmax()
            near = torch.where(pairs.match, torch.inf, apart).argmin()
            return BatchPairs(*(column[torch.stack([far, near])] for column in pairs))

    z = Point(torch.tensor([[0.0], [1.0], [3.0], [4.0]]))
    loss = ContrastiveLoss(margin=10.0, positive_weight=0.5, pairs=Hardest())
    parts = loss.parts(z, torch.tensor([0, 0, 0, 1]))
    assert (parts.positive.item(), parts.negative.item()) == (9.0, 81.0)
