"""Laws of every estimator for every pair of kinds; match_matrix and Monte Carlo against explicit loops; errors."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from itertools import product

import pytest
import references
import torch
from laws import DTYPES, KINDS, RANDOM_KINDS, embedding, frozen_curve, one_at_a_time, rebuilt, seeded, with_gradients
from torch import Tensor
from torch.testing import assert_close

from hedged.distributions import Distribution, Gaussian, Mixture, Point
from hedged.errors import ShapeError, ValueRangeError
from hedged.match import (
    ClosedForm,
    Estimator,
    MatchCurve,
    MonteCarlo,
    _pairs,
    log_match_probability,
    match_logit,
    match_matrix,
    match_probability,
    self_mismatch,
)
from hedged.match._closed_form import matrix

ESTIMATORS: dict[str, Callable[[], Estimator]] = {
    "closed form": ClosedForm,
    "monte carlo": lambda: MonteCarlo(samples=8, generator=seeded(3)),
}
every_pair = pytest.mark.parametrize(("one", "two"), list(product(KINDS, KINDS)))
every_estimator = pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS.keys())
everything = pytest.mark.parametrize("kind", KINDS)
CURVE = frozen_curve(2.0, 3.0)


# ---- shared laws ----------------------------------------------------------------------------------------------------


@every_pair
@every_estimator
def test_shape_and_dtype_follow_the_embeddings(one: str, two: str, make: Callable[[], Estimator]) -> None:
    for dtype, curve in product(DTYPES, (CURVE, frozen_curve(2.0, 3.0, torch.float32))):
        z1, z2 = embedding(one, 4, dim=3, dtype=dtype, seed=1), embedding(two, 4, dim=3, dtype=dtype, seed=2)
        for question in (match_logit, match_probability, log_match_probability):
            answer = question(z1, z2, curve, make())
            assert answer.shape == (4,)
            assert answer.dtype == dtype


@every_pair
@every_estimator
def test_the_three_answers_are_one(one: str, two: str, make: Callable[[], Estimator]) -> None:
    z1, z2 = embedding(one, 4, seed=1), embedding(two, 4, seed=2)
    p = match_probability(z1, z2, CURVE, make())
    assert ((p > 0) & (p < 1)).all()
    assert_close(match_logit(z1, z2, CURVE, make()), p.logit())
    assert_close(log_match_probability(z1, z2, CURVE, make()), p.log())


@every_pair
def test_a_batch_is_its_pairs_one_at_a_time(one: str, two: str) -> None:
    z1, z2 = embedding(one, 5, dim=3, seed=1), embedding(two, 5, dim=3, seed=2)
    each = [match_logit(x, y, CURVE) for x, y in zip(one_at_a_time(z1), one_at_a_time(z2), strict=True)]
    assert_close(match_logit(z1, z2, CURVE), torch.stack(each))


Shape = tuple[int, ...]
BATCHES: list[tuple[Shape, Shape]] = [
    ((), (3,)),
    ((3,), ()),
    ((3,), (1,)),
    ((2, 1), (3,)),
    ((3,), (2, 1)),
    ((2, 3), ()),
    ((3,), (2, 3)),
    ((0,), ()),
]


def broadcast_members(z: Distribution, shape: Shape) -> Distribution:
    """The members of z that a batch of `shape` pairs up, in one batch of shape `(N,)`."""
    axes = len(z.batch_shape)
    flat = rebuilt(z, *(t.flatten(0, axes - 1) if axes else t.unsqueeze(0) for t in z.tensors))
    return flat[torch.arange(len(flat)).view(z.batch_shape).expand(shape).flatten()]


@every_pair
def test_batches_broadcast_as_tensors_do(one: str, two: str) -> None:
    """Also when one has more batch axes than the other, and when D and the batch have the same size."""
    for batch1, batch2 in BATCHES:
        z1, z2 = embedding(one, *batch1, dim=3, seed=1), embedding(two, *batch2, dim=3, seed=2)
        shape = torch.broadcast_shapes(batch1, batch2)  # type: ignore[no-untyped-call]
        expected = match_logit(broadcast_members(z1, shape), broadcast_members(z2, shape), CURVE)
        assert_close(match_logit(z1, z2, CURVE), expected.view(shape))


@every_pair
@pytest.mark.parametrize("samples", [4, 8])
def test_batches_broadcast_under_monte_carlo(one: str, two: str, samples: int) -> None:
    """The samples of a batch, as points, broadcast as the batch does: no axis of samples is taken for one of pairs."""
    for batch1, batch2 in BATCHES:
        z1, z2 = embedding(one, *batch1, seed=1), embedding(two, *batch2, seed=2)
        shape = torch.broadcast_shapes(batch1, batch2)  # type: ignore[no-untyped-call]
        generator = seeded()
        drawn = [Point(z.sample(samples, generator).movedim(0, -2)) for z in (z1, z2)]
        rows1, rows2 = (broadcast_members(z, (*shape, samples)).mean.view(-1, samples, 2) for z in drawn)
        a, b = references.parameters(CURVE)
        loop = [references.looped_monte_carlo(x1, x2, a, b) for x1, x2 in zip(rows1, rows2, strict=True)]
        answer = match_probability(z1, z2, CURVE, MonteCarlo(samples, seeded()))
        assert_close(answer, torch.tensor(loop, dtype=torch.float64).view(shape))


@every_pair
def test_the_closed_form_is_symmetric(one: str, two: str) -> None:
    z1, z2 = embedding(one, 5, seed=1), embedding(two, 5, seed=2)
    assert_close(match_logit(z1, z2, CURVE), match_logit(z2, z1, CURVE), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("one", "two"), [("point", "gaussian"), ("gaussian", "mixture-2"), ("mixture-2", "mixture-4")])
def test_monte_carlo_is_symmetric_on_average(one: str, two: str) -> None:
    z1, z2 = (embedding(kind, 1, seed=7)[torch.zeros(2000, dtype=torch.long)] for kind in (one, two))
    forward = match_probability(z1, z2, CURVE, MonteCarlo(8, seeded(1)))
    backward = match_probability(z2, z1, CURVE, MonteCarlo(8, seeded(2)))
    error = ((forward.var() + backward.var()) / 2000).sqrt()
    assert abs(forward.mean() - backward.mean()) <= 4 * error


@every_pair
@every_estimator
def test_gradients_exist_and_are_finite(one: str, two: str, make: Callable[[], Estimator]) -> None:
    z1, z2 = with_gradients(embedding(one, 4, seed=1)), with_gradients(embedding(two, 4, seed=2))
    curve = MatchCurve(2.0, 3.0).double()
    loss = -log_match_probability(z1, z2, curve, make()).sum()
    for grad in torch.autograd.grad(loss, [*z1.tensors, *z2.tensors, *curve.parameters()]):
        assert torch.isfinite(grad).all()
        assert (grad != 0).any()


@every_estimator
def test_an_estimator_survives_pickling(make: Callable[[], Estimator]) -> None:
    z = embedding("gaussian", 4)
    twin = pickle.loads(pickle.dumps(make()))
    assert type(twin) is type(make())
    assert_close(match_logit(z, z, CURVE, twin), match_logit(z, z, CURVE, make()))


@everything
def test_self_mismatch_is_what_is_left_of_a_match_with_itself(kind: str) -> None:
    z = embedding(kind, 4)
    assert_close(self_mismatch(z, CURVE), 1 - match_probability(z, z, CURVE))
    drawn = self_mismatch(z, CURVE, MonteCarlo(8, seeded()))
    assert_close(drawn, 1 - match_probability(z, z, CURVE, MonteCarlo(8, seeded())))
    if kind != "point":
        samples = z.sample(8, seeded())
        a, b = references.parameters(CURVE)
        same = torch.tensor([references.looped_monte_carlo(s, s, a, b) for s in samples.unbind(1)])
        assert ((1 - drawn - same).abs() > 1e-3).all(), "the copy of x is independent of x"


@pytest.mark.parametrize("bias", torch.linspace(2, 12, 60).tolist())
def test_points_are_equally_sure_to_the_last_bit(bias: float) -> None:
    """A vector unit rounds σ(−b) in one way and the rest of a batch in another: η would rank points by their place."""
    eta = self_mismatch(Point(torch.zeros(649, 20)), frozen_curve(2.0, bias, torch.float32))
    assert eta.shape == (649,)
    assert eta.min() == eta.max()


@pytest.mark.parametrize("kind", RANDOM_KINDS)
def test_self_mismatch_grows_with_uncertainty(kind: str) -> None:
    one = embedding(kind)
    spreads = torch.logspace(-3, 2, 30, dtype=torch.float64).view(-1, *[1] * one.tensors[1].ndim)
    z = rebuilt(one, (0 * one.tensors[0]).expand(30, *one.tensors[0].shape), spreads * one.tensors[1])
    eta = self_mismatch(z, CURVE)
    assert (eta.diff() > 0).all()
    assert eta[0] >= 1 - CURVE.bias.sigmoid() - 1e-12
    assert eta[-1] < 1


def test_a_sure_answer_keeps_its_digits_at_the_top() -> None:
    """1 − p of a coincident pair at b = 8 is 3e-4: in float32, to three digits and not to one."""
    z = Gaussian(torch.zeros(2), torch.full((2,), 1e-12))
    eta = self_mismatch(z, frozen_curve(1.0, 8.0, torch.float32)).item()
    assert eta == pytest.approx(torch.sigmoid(torch.tensor(-8.0, dtype=torch.float64)).item(), rel=1e-3)


def test_two_dtypes_give_the_wider_one() -> None:
    narrow, wide = embedding("gaussian", 4, dtype=torch.float32), embedding("mixture-2", 4)
    for z1, z2 in ((narrow, wide), (wide, narrow)):
        assert match_probability(z1, z2, CURVE).dtype == torch.float64
        assert match_matrix(z1, z2, CURVE).dtype == torch.float64


# ---- Monte Carlo ----------------------------------------------------------------------------------------------------


@every_pair
def test_monte_carlo_is_the_mean_over_all_pairs_of_samples(one: str, two: str) -> None:
    z1, z2 = embedding(one, 3, dim=2, seed=1), embedding(two, 3, dim=2, seed=2)
    generator = seeded(5)
    drawn1, drawn2 = z1.sample(8, generator), z2.sample(8, generator)
    a, b = references.parameters(CURVE)
    loop = [references.looped_monte_carlo(drawn1[:, i], drawn2[:, i], a, b) for i in range(3)]
    found = match_probability(z1, z2, CURVE, MonteCarlo(8, seeded(5)))
    assert_close(found, torch.tensor(loop, dtype=torch.float64))


@pytest.mark.parametrize("dtype", DTYPES)
def test_monte_carlo_keeps_log_probabilities_of_far_pairs(dtype: torch.dtype) -> None:
    z1, z2 = embedding("gaussian", dtype=dtype), Point(torch.tensor([500.0, 0.0], dtype=dtype))
    log_p = log_match_probability(z1, z2, CURVE, MonteCarlo(8, seeded()))
    assert -1100 < log_p.item() < -900


def test_monte_carlo_leaves_the_global_generator_alone() -> None:
    z = embedding("gaussian", 3)
    before = torch.get_rng_state()
    match_matrix(z, z, CURVE, MonteCarlo(8, seeded()))
    assert torch.equal(torch.get_rng_state(), before)


# ---- all pairs ------------------------------------------------------------------------------------------------------


def looped_matrix(z1: Distribution, z2: Distribution) -> Tensor:
    rows = [[match_probability(x, y, CURVE) for y in one_at_a_time(z2)] for x in one_at_a_time(z1)]
    return torch.stack([torch.stack(row) for row in rows])


@every_pair
def test_the_matrix_holds_all_pairs(one: str, two: str) -> None:
    z1, z2 = embedding(one, 4, dim=3, seed=1), embedding(two, 6, dim=3, seed=2)
    assert_close(match_matrix(z1, z2, CURVE), looped_matrix(z1, z2))


@pytest.mark.parametrize(("rows", "columns"), [(1, 7), (7, 1), (1, 1), (5, 7), (7, 5)])
@pytest.mark.parametrize("chunk", [1, 30, 100, 1000])
def test_the_matrix_does_not_depend_on_how_it_is_cut(
    rows: int, columns: int, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    z1, z2 = embedding("mixture-2", rows, seed=1), embedding("gaussian", columns, seed=2)
    expected = looped_matrix(z1, z2)
    monkeypatch.setattr(_pairs, "VALUES_PER_BLOCK", chunk)
    monkeypatch.setattr(matrix, "BLOCK", chunk // 2)
    assert_close(match_matrix(z1, z2, CURVE), expected)
    assert_close(CURVE.matrix(z1, z2).sigmoid(), expected)


@everything
@pytest.mark.parametrize(("rows", "columns"), [(0, 3), (3, 0), (0, 0), (1, 40), (40, 1)])
def test_the_matrix_may_have_any_size(kind: str, rows: int, columns: int) -> None:
    z1, z2 = embedding(kind, rows, seed=1), embedding(kind, columns, seed=2)
    for estimator in (ClosedForm(), MonteCarlo(8, seeded())):
        found = match_matrix(z1, z2, CURVE, estimator)
        assert found.shape == (rows, columns)
        assert torch.isfinite(found).all()


@pytest.mark.parametrize(("dim", "components"), [(1, 1), (2, 1), (2, 2), (5, 1)])
@pytest.mark.parametrize("spread", [0.01, 0.5, 3.0])
def test_the_matrix_of_strips_that_are_near_or_far_or_both(dim: int, components: int, spread: float) -> None:
    """More columns than a strip has, in clusters: of wide and of narrow embeddings, at all distances of each other."""
    g = seeded()
    centres = torch.tensor([0.0, 0.3, 5.0, 100.0]).repeat_interleave(400)[:, None, None]
    mean = centres + spread * torch.randn(1600, components, dim, generator=g)
    z = Mixture(mean, torch.exp(4 * torch.randn(1600, components, dim, generator=g) - 6))
    found, wanted = match_matrix(z[::40], z, CURVE), match_probability(z[::40][:, None], z[None], CURVE)
    assert_close(found, wanted, rtol=0, atol=1.1e-5)  # what is far counts as less than 10⁻⁵
    near = wanted > 1e-4
    assert_close(found[near], wanted[near], rtol=1e-5, atol=2e-6)


def test_the_matrix_by_monte_carlo_is_near_the_closed_form() -> None:
    z1, z2 = embedding("mixture-2", 6, seed=1), embedding("gaussian", 5, seed=2)
    repeats = torch.stack([match_matrix(z1, z2, CURVE, MonteCarlo(16, seeded(i))) for i in range(100)])
    error = (repeats.mean(0) - match_matrix(z1, z2, CURVE)).abs()
    assert (error <= CURVE.error_bound() + 4.5 * repeats.std(0) / 10).all()


def test_the_matrix_carries_no_gradient() -> None:
    z = with_gradients(embedding("gaussian", 3))
    assert not match_matrix(z, z, MatchCurve()).requires_grad


MEASURE = """
import torch
from hedged import Gaussian, MatchCurve, MonteCarlo, match_matrix
from hedged.bench.memory import growth
from hedged.distributions import concatenate
torch.set_num_threads(1)
curve, g = MatchCurve(), torch.Generator().manual_seed(0)
def gaussian(n, d): return Gaussian(torch.randn(n, d, generator=g), torch.rand(n, d, generator=g) + 0.1)
warm = gaussian(600, 2)
match_matrix(warm, warm, curve); match_matrix(warm[:50], warm[:50], curve, MonteCarlo(8, g))
{prepare}
results = []
print(growth(lambda: results.append({call})), results[0].numel() * 4 / 1e6)
"""


@pytest.mark.parametrize(
    ("prepare", "call"),
    [
        ("z = gaussian(3000, 2)", "match_matrix(z, z, curve)"),
        (
            "z = concatenate([gaussian(1000, 64)] * 160)",
            "match_matrix(z, z[:1], curve) + match_matrix(z[:1], z, curve).T",
        ),
        ("z = gaussian(300, 4)", "match_matrix(z, z, curve, MonteCarlo(8, g))"),
    ],
    ids=["square", "tall and wide", "monte carlo"],
)
def test_the_matrix_needs_little_memory_beyond_its_result(prepare: str, call: str) -> None:
    """Pairs and lists are visited in blocks: 40 MB hold all that is in between, whatever N and M are."""
    script = MEASURE.format(prepare=prepare, call=call)
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    grown, result = map(float, run.stdout.split())
    assert grown <= result + 40


# ---- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("question", [match_probability, match_logit, log_match_probability, match_matrix])
def test_embeddings_of_two_spaces_are_not_compared(question: Callable[..., Tensor]) -> None:
    with pytest.raises(ShapeError, match=f"^{question.__name__} takes embeddings of the same dimension, got 2 and 5"):
        question(embedding("gaussian", 3, dim=2), embedding("gaussian", 3, dim=5), CURVE)


@every_estimator
def test_batches_that_do_not_broadcast_are_refused(make: Callable[[], Estimator]) -> None:
    with pytest.raises(ShapeError, match=r"\(3,\) and \(4,\) do not broadcast.*match_matrix\(z1, z2, model\)"):
        match_probability(embedding("gaussian", 3), embedding("gaussian", 4), CURVE, make())


@pytest.mark.parametrize("batch", [(), (2, 3)])
def test_the_matrix_takes_lists(batch: tuple[int, ...]) -> None:
    z = embedding("gaussian", 3)
    with pytest.raises(ShapeError, match="match_matrix takes two lists of embeddings, the second is Gaussian"):
        match_matrix(z, embedding("gaussian", *batch), CURVE)
    with pytest.raises(ShapeError, match="the first is Gaussian"):
        match_matrix(embedding("gaussian", *batch), z, CURVE)


@pytest.mark.parametrize("samples", [0, -1])
def test_monte_carlo_takes_at_least_one_sample(samples: int) -> None:
    with pytest.raises(ValueRangeError, match=f"at least one sample, got samples={samples}"):
        MonteCarlo(samples=samples)


def test_monte_carlo_shares_its_samples_among_components() -> None:
    z = embedding("mixture-4", 3)
    with pytest.raises(ValueRangeError, match=r"6 samples .* 4 component\(s\)"):
        match_probability(z, z, CURVE, MonteCarlo(samples=6))


def test_an_embedding_must_be_a_distribution() -> None:
    with pytest.raises(ShapeError, match=r"Tensor.*Point"):
        match_probability(torch.zeros(3, 2), torch.zeros(3, 2), CURVE)  # type: ignore[arg-type]
