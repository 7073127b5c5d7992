"""All pairs in one pass against the closed form pair by pair: the same costs, the same gradients."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import seeded
from torch import Tensor
from torch.nn.functional import softplus

from hedged import Gaussian, HedgedLoss, MatchCurve, Mixture
from hedged.distributions import Distribution
from hedged.losses import LossParts, Marginal, PairLoss
from hedged.match import match_logit
from hedged.match._closed_form.batch_loss import closed_form_pair_costs


def batch(
    components: int, dim: int, spread: float, reach: float, dtype: torch.dtype, seed: int, size: int = 40
) -> list[Tensor]:
    generator = seeded(seed)
    shape = (size, components, dim) if components > 1 else (size, dim)
    mean = reach * torch.randn(shape, generator=generator, dtype=dtype)
    variance = spread * torch.exp(torch.randn(shape, generator=generator, dtype=dtype))
    return [mean.requires_grad_(), variance.requires_grad_()]


def distribution(tensors: list[Tensor]) -> Distribution:
    return Mixture(*tensors) if tensors[0].dim() == 3 else Gaussian(*tensors)


LABELS = torch.cat([torch.arange(20), torch.arange(5).repeat_interleave(4)])


def both_ways(tensors: list[Tensor], curve: MatchCurve, beta: float = 0.0) -> list[tuple[LossParts, list[Tensor]]]:
    """Loss and gradients in one pass, and pair by pair."""
    found = []
    for pair_costs in (HedgedLoss.pair_costs, PairLoss.pair_costs):
        loss = HedgedLoss(curve, beta=beta, positive_weight=0.3)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(HedgedLoss, "pair_costs", pair_costs)
            parts = loss.parts(distribution(tensors), LABELS)
        grads = torch.autograd.grad(parts.total, [*tensors, *curve.parameters()])
        found.append((parts, list(grads)))
    return found


@settings(max_examples=60)
@given(
    components=st.sampled_from([1, 2, 4]),
    dim=st.sampled_from([1, 2, 20]),
    spread=st.sampled_from([1e-8, 1e-3, 1e-1, 3.0]),
    reach=st.sampled_from([0.0, 0.1, 1.0, 30.0]),
    scale=st.sampled_from([0.1, 5.0, 40.0]),
    bias=st.floats(-3, 7),
    seed=st.integers(0, 2**31),
)
def test_it_is_the_sum_over_pairs(
    components: int, dim: int, spread: float, reach: float, scale: float, bias: float, seed: int
) -> None:
    tensors = batch(components, dim, spread, reach, torch.float64, seed)
    (found, grads), (wanted, exact) = both_ways(tensors, MatchCurve(scale, bias).double())
    torch.testing.assert_close(found.positive, wanted.positive, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(found.negative, wanted.negative, rtol=1e-9, atol=2e-7)  # what is far counts as nothing
    for mine, reference in zip(grads, exact, strict=True):
        allowed = 1e-6 * float(reference.abs().max()) + 2e-6 * scale
        torch.testing.assert_close(mine, reference, rtol=1e-6, atol=allowed)


@pytest.mark.parametrize(
    "spread", [1e-2, 1.0, 100.0]
)  # and so wide that products over the dimensions are beyond float32
@pytest.mark.parametrize("dim", [2, 3, 20, 64])
@pytest.mark.parametrize("components", [1, 2])
def test_in_float32_it_is_as_exact_as_pair_by_pair(components: int, dim: int, spread: float) -> None:
    tensors = batch(components, dim, spread, 0.5, torch.float32, seed=3)
    curve = MatchCurve(7.0, 3.0)  # of a b for which float32 is exact enough
    (found, grads), (wanted, exact) = both_ways(tensors, curve, beta=1e-3)
    torch.testing.assert_close(found.total, wanted.total, rtol=1e-5, atol=1e-6)
    for mine, reference in zip(grads, exact, strict=True):
        torch.testing.assert_close(mine, reference, rtol=1e-3, atol=1e-4 * float(reference.abs().max()))


def test_a_batch_of_many_strips_is_the_sum_over_pairs() -> None:
    tensors = batch(1, 2, 1e-1, 0.3, torch.float64, seed=8, size=300)
    labels = torch.arange(300) % 7
    curve = MatchCurve(5.0, 3.0).double()
    costs = closed_form_pair_costs(distribution(tensors), labels, curve)
    first, second = torch.triu_indices(300, 300, 1)
    z = distribution(tensors)
    logits = match_logit(z.take(first), z.take(second), curve)
    match = labels[first] == labels[second]
    wanted = torch.stack([softplus(-logits[match]).sum(), softplus(logits[~match]).sum()])
    torch.testing.assert_close(costs, wanted, rtol=1e-7, atol=1e-3)
    for mine, exact in zip(
        torch.autograd.grad(costs.sum(), tensors), torch.autograd.grad(wanted.sum(), tensors), strict=True
    ):
        torch.testing.assert_close(mine, exact, rtol=1e-5, atol=1e-4)


def test_each_part_has_its_own_gradient() -> None:
    tensors = batch(1, 2, 1e-2, 0.5, torch.float64, seed=4)
    curve = MatchCurve(5.0, 2.0).double()

    def costs(*given: Tensor) -> Tensor:
        return closed_form_pair_costs(Gaussian(*given), LABELS, curve)

    assert torch.autograd.gradcheck(costs, tensors, eps=1e-5, atol=1e-4)


def test_results_do_not_depend_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = batch(2, 3, 1e-2, 0.5, torch.float32, seed=5)
    results = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        costs = closed_form_pair_costs(distribution(tensors), LABELS, MatchCurve())
        results.append([costs.detach(), *torch.autograd.grad(costs.sum(), tensors)])
    for other in results[1:]:
        assert all(torch.equal(mine, first) for mine, first in zip(other, results[0], strict=True))


def test_labels_of_any_kind_are_told_apart() -> None:
    tensors = batch(1, 2, 1e-2, 0.5, torch.float32, seed=6)
    loss = HedgedLoss(MatchCurve(), likelihood=Marginal())
    wanted = loss(distribution(tensors), LABELS)
    for labels in (LABELS.int(), LABELS.float() / 7, LABELS - 3):
        assert torch.equal(loss(distribution(tensors), labels), wanted)
