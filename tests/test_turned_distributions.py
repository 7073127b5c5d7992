"""Laws of Gaussians whose coordinates covary, against PyTorch's own, explicit matrices and plain tensor indexing."""

from __future__ import annotations

import math
import pickle
from typing import Any

import pytest
import torch
from laws import DTYPES, TURNED_KINDS, one_at_a_time, rebuilt, seeded, turned
from torch import Tensor
from torch import distributions as td
from torch.testing import assert_close

from hedged.distributions import Distribution, FullGaussian, Gaussian, LowRankGaussian, Point, concatenate, stack
from hedged.errors import HedgedError, ShapeError, ValueRangeError

anything = pytest.mark.parametrize("kind", TURNED_KINDS)


def twin(z: Distribution) -> td.MultivariateNormal:
    """The same distribution as PyTorch knows it, from the matrices that its tensors stand for."""
    if isinstance(z, FullGaussian):
        covariance = torch.stack([m @ m.T for m in z.factor.flatten(0, -3)])
    else:
        (_, own, factor) = z.tensors
        rows = zip(own.flatten(0, -2), factor.flatten(0, -3), strict=True)
        covariance = torch.stack([torch.diag(v) + sum(torch.outer(r, r) for r in f) for v, f in rows])
    return td.MultivariateNormal(z.mean, covariance.view(*z.batch_shape, z.dim, z.dim))


def standard(*shape: int) -> td.MultivariateNormal:
    return td.MultivariateNormal(torch.zeros(shape).double(), torch.eye(shape[-1]).double())


def log_density(twin: td.MultivariateNormal, at: Tensor) -> Tensor:
    result: Tensor = twin.log_prob(at)  # type: ignore[no-untyped-call]
    return result


@anything
@pytest.mark.parametrize("dim", [1, 2, 4])
def test_densities_moments_and_kl_agree_with_pytorch(kind: str, dim: int) -> None:
    z, at = turned(kind, 3, 2, dim=dim), torch.randn(7, 3, 2, dim, generator=seeded(9), dtype=torch.float64)
    other = twin(z)
    density = log_density(other, at)
    assert_close(z.log_prob(at), density)
    assert_close(z.kl(), td.kl_divergence(other, standard(*z.batch_shape, dim)))
    assert_close(z.mean, other.mean)
    assert_close(z.variance, other.variance)
    assert_close(z.covariances()[:, :, 0], other.covariance_matrix)
    assert_close(z.parts()[1][:, :, 0], other.variance)
    assert_close(z[0, 0].log_prob(at[:, 0, 0]), density[:, 0, 0])


@anything
def test_samples_have_its_moments_and_fix_by_a_generator(kind: str) -> None:
    z = turned(kind, 3, dim=3, spread=1.0)
    drawn = z.sample(40_000, seeded())
    assert torch.equal(z.sample(8, seeded(1)), z.sample(8, seeded(1)))
    gap = drawn - z.mean
    found = torch.einsum("knd,kne->nde", gap, gap) / len(drawn)
    scale = z.variance.sqrt()
    assert (gap.mean(0).abs() <= 5 * scale / math.sqrt(len(drawn))).all()
    assert ((found - z.covariances()[:, 0]).abs() <= 8 * scale[:, :, None] * scale[:, None] / 200).all()


@anything
def test_sampled_kl_converges_to_the_closed_form(kind: str) -> None:
    z = turned(kind, 3)
    repeats = torch.stack([z.kl(samples=400, generator=seeded(i)) for i in range(50)])
    assert ((repeats.mean(0) - z.kl()).abs() <= 4 * repeats.std(0) / math.sqrt(50)).all()


@anything
def test_samples_kl_and_densities_have_gradients(kind: str) -> None:
    z = turned(kind, 2)
    leaves = tuple(t.clone().requires_grad_() for t in z.tensors)

    def again(*tensors: Tensor) -> Distribution:
        return rebuilt(z, *(t.tril() if t.shape == (2, 2, 2) else t for t in tensors))

    assert torch.autograd.gradcheck(lambda *t: again(*t).kl(), leaves)
    assert torch.autograd.gradcheck(lambda *t: again(*t).log_prob(torch.ones(2).double()), leaves)
    assert torch.autograd.gradcheck(lambda *t: again(*t).sample(4, seeded()), leaves)


INDICES: dict[str, Any] = {
    "first": 0, "slice": slice(1, 3), "nothing": slice(0, 0), "list": [2, 0, 2],
    "mask": torch.tensor([True, False, True]),
    "new axis": None, "pair": (1, 2), "column": (slice(None), 1), "all": ..., "last axis": (..., 1),
    "new last axis": (..., None),
}  # fmt: skip


@anything
@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES.keys())
def test_indexing_acts_on_the_batch_alone(kind: str, index: Any) -> None:
    z = turned(kind, 3, 4, dim=3)
    order = torch.arange(12).view(3, 4)[index]
    for mine, whole in zip(z[index].tensors, z.tensors, strict=True):
        assert torch.equal(mine, whole.flatten(0, 1)[order])


@anything
@pytest.mark.parametrize("dtype", DTYPES)
def test_batches_are_joined_packed_moved_and_pickled(kind: str, dtype: torch.dtype) -> None:
    z = turned(kind, 4, dim=3, dtype=dtype)
    others = [
        stack(one_at_a_time(z)),
        concatenate([z[:1], z[1:1], z[1:]]),
        z.unsqueeze(1)[:, 0],
        z.take(torch.arange(4)),
    ]
    others += [
        type(z).unpack(z.pack(), 3),
        pickle.loads(pickle.dumps(z)),
        Distribution.named(z.kind).unpack(z.pack(), 3),
    ]
    for other in [*others, z.detach(), z.cpu()]:
        assert type(other) is type(z)
        assert all(torch.equal(a, b) for a, b in zip(other.tensors, z.tensors, strict=True))
    assert z.pack().shape == (4, 9 if kind == "full" else 6 + 3 * z.rank)
    assert torch.equal(z.pack()[:, :3], z.mean)
    assert z.to(torch.float16).dtype == torch.float16
    assert z.n_components == 1
    assert not z.is_diagonal
    assert not z.is_point
    assert len(z) == 4


def test_diagonal_covariances_have_no_factors() -> None:
    z = Gaussian(torch.zeros(3, 2), torch.tensor([[1.0, 2.0]] * 3))
    own, factor = z.spreads()
    assert (z.rank, z.is_diagonal, factor.shape) == (0, True, (3, 1, 0, 2))
    assert torch.equal(own[:, 0], z.variance)
    assert torch.equal(z.covariances()[:, 0], z.variance.diag_embed())
    assert not Point(torch.zeros(3, 2)).covariances().any()


@anything
def test_no_rounding_makes_a_covariance_that_is_none(kind: str) -> None:
    """Both are held by factors: nearly singular covariances keep positive eigenvalues in half precision."""
    z = turned(kind, 50, dim=4)
    thin = rebuilt(z, z.mean, *(t * 1e-2 if t.shape == z.mean.shape else t for t in z.tensors[1:]))
    half = thin.to(torch.float16).to(torch.float64)
    assert torch.linalg.eigvalsh(half.covariances()).min() > 0


MEAN, ROOT = torch.zeros(3, 2), torch.eye(2).expand(3, 2, 2)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: FullGaussian(torch.zeros(5), torch.eye(5)), ShapeError, "at most 4 .* got 5: use LowRankGaussian"),
        (lambda: FullGaussian.of(torch.zeros(5), torch.eye(5)), ShapeError, "at most 4 dimensions, got 5"),
        (lambda: FullGaussian(MEAN, torch.ones(3, 2, 2)), ValueRangeError, r"lower triangular.*FullGaussian\.of"),
        (lambda: FullGaussian(MEAN, -ROOT), ValueRangeError, "positive, got a smallest value of -1"),
        (lambda: FullGaussian(MEAN, ROOT[0]), ShapeError, r"takes .*\(3, 2, 2\).* got \(2, 2\)"),
        (lambda: FullGaussian(MEAN, ROOT.double()), ShapeError, "same dtype"),
        (lambda: FullGaussian(MEAN, ROOT * math.nan), ValueRangeError, "factor .* NaN"),
        (lambda: FullGaussian.of(MEAN, torch.ones(3, 2, 2)), ValueRangeError, "3 of 3 are not: use Point"),
        (lambda: FullGaussian.unpack(torch.ones(3, 6), 2), ShapeError, "rows of 5 numbers"),
        (lambda: FullGaussian.unpack([1.0], 1), ShapeError, "list"),  # type: ignore[arg-type]
        (lambda: LowRankGaussian(MEAN, 0 * MEAN, MEAN[:, None]), ValueRangeError, "positive"),
        (lambda: LowRankGaussian(MEAN, MEAN + 1, MEAN[:, :0, None]), ShapeError, "D ≥ 1|R ≥ 1"),
        (lambda: LowRankGaussian(MEAN, MEAN + 1, MEAN), ShapeError, r"\(3, 3, 2\)"),
        (lambda: LowRankGaussian(MEAN, MEAN + 1, torch.zeros(3, 0, 2)), ShapeError, r"R ≥ 1.*use Gaussian"),
        (lambda: LowRankGaussian.unpack(torch.ones(3, 4), 2), ShapeError, "at least 6 numbers, got 4"),
        (lambda: LowRankGaussian.unpack(torch.ones(3, 7), 2), ShapeError, "multiple of 2 numbers"),
    ],
)  # fmt: skip
def test_what_is_no_covariance_is_refused_in_words(make: Any, error: type[HedgedError], message: str) -> None:
    with pytest.raises(error, match=message):
        make()
