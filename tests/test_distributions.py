"""Laws of every distribution, each against PyTorch's own distributions, explicit loops or plain tensor indexing."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from laws import COMPONENTS, DTYPES, KINDS, RANDOM_KINDS, embedding, one_at_a_time, rebuilt, seeded, with_gradients
from torch import Tensor
from torch import distributions as td
from torch.testing import assert_close

from hedged.distributions import Distribution, Gaussian, Mixture, Point, concatenate, stack
from hedged.errors import HedgedError, ShapeError, ValueRangeError

anything = pytest.mark.parametrize("kind", KINDS)
anything_random = pytest.mark.parametrize("kind", RANDOM_KINDS)


def assert_same(z: Distribution, expected: Distribution) -> None:
    assert type(z) is type(expected)
    for mine, theirs in zip(z.tensors, expected.tensors, strict=True):
        assert_close(mine, theirs, rtol=0, atol=0)


def torch_twin(z: Distribution) -> td.Distribution:
    """The same distribution as PyTorch knows it."""
    mean, variance = z.parts()
    components = td.Independent(td.Normal(mean, variance.sqrt()), 1)
    return td.MixtureSameFamily(td.Categorical(torch.ones(mean.shape[:-1], dtype=mean.dtype)), components)


def log_density(twin: td.Distribution, at: Tensor) -> Tensor:
    result: Tensor = twin.log_prob(at)
    return result


@anything
@pytest.mark.parametrize("batch", [(), (3,), (2, 3), (0,)])
def test_it_knows_its_components_and_whether_it_is_a_point(kind: str, batch: tuple[int, ...]) -> None:
    z = embedding(kind, *batch, dim=5)
    assert z.n_components == z.parts()[0].shape[-2]
    assert z.is_point == isinstance(z, Point)


# ---- samples and moments --------------------------------------------------------------------------------------------


@anything
@pytest.mark.parametrize("batch", [(), (3,), (2, 3), (0,)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_samples_have_a_leading_axis_and_the_dtype_of_the_batch(
    kind: str, batch: tuple[int, ...], dtype: torch.dtype
) -> None:
    z = embedding(kind, *batch, dim=5, dtype=dtype)
    drawn = z.sample(8, seeded())
    assert drawn.shape == (8, *batch, 5)
    assert {drawn.dtype, z.mean.dtype, z.variance.dtype, z.dtype} == {dtype}
    assert z.mean.shape == z.variance.shape == (*batch, 5)


@anything
def test_a_generator_fixes_the_samples_and_the_global_one_is_left_alone(kind: str) -> None:
    z = embedding(kind, 3)
    before = torch.get_rng_state()
    first, again, other = z.sample(8, seeded(1)), z.sample(8, seeded(1)), z.sample(8, seeded(2))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first, again)
    assert torch.equal(first, other) == (kind == "point")


@anything
def test_moments_are_those_of_the_samples(kind: str) -> None:
    z = embedding(kind, 3, spread=1.0)
    count = 40_000
    drawn = z.sample(count, seeded())
    fourth = (drawn - z.mean).pow(4).mean(0)
    assert ((drawn.mean(0) - z.mean).abs() <= 5 * (z.variance / count).sqrt() + 1e-12).all()
    assert ((drawn - z.mean).square().mean(0) - z.variance).abs().le(5 * (fourth / count).sqrt() + 1e-12).all()


@anything_random
def test_moments_agree_with_pytorch(kind: str) -> None:
    z = embedding(kind, 4, dim=3)
    assert_close(z.mean, torch_twin(z).mean)
    assert_close(z.variance, torch_twin(z).variance)


@anything
def test_samples_are_reparametrised(kind: str) -> None:
    """μ ↦ μ + 1 moves each sample by 1; σ ↦ 2 σ doubles its distance to its component's mean."""
    z = embedding(kind, 3)
    drawn = z.sample(8, seeded())
    centre = rebuilt(z, z.tensors[0], *(t * 1e-30 for t in z.tensors[1:])).sample(8, seeded())
    moved = rebuilt(z, z.tensors[0] + 1, *(4 * t for t in z.tensors[1:])).sample(8, seeded())
    assert_close(moved, centre + 1 + 2 * (drawn - centre))


@anything_random
def test_samples_carry_gradients_to_mean_and_variance(kind: str) -> None:
    z = with_gradients(embedding(kind, 3))
    noise = torch.randn(8, 3, 2, generator=seeded(5), dtype=torch.float64)
    mean, variance = torch.autograd.grad((z.sample(8, seeded()) * noise).sum(), z.tensors)
    components = mean.shape[-2] if kind.startswith("mixture") else 1
    by_component = noise.view(components, -1, 3, 2).sum(1)  # each component has its 8 / C samples
    assert_close(mean, by_component.movedim(0, -2) if kind.startswith("mixture") else by_component[0])
    assert torch.isfinite(variance).all()
    assert (variance != 0).all()


@pytest.mark.parametrize("components", [1, 2, 4])
def test_a_mixture_is_sampled_equally_from_each_component_in_turn(components: int) -> None:
    mean = 100.0 * torch.arange(components).view(components, 1).expand(3, components, 2)
    drawn = Mixture(mean, torch.ones_like(mean)).sample(8, seeded())
    expected = torch.arange(components).repeat_interleave(8 // components)
    assert torch.equal((drawn / 100).round(), expected.view(8, 1, 1).expand(8, 3, 2).float())


@pytest.mark.parametrize("components", [2, 4])
def test_stratified_samples_have_less_noise_than_a_lottery_over_components(components: int) -> None:
    mean = 10.0 * torch.arange(components).view(components, 1).expand(500, components, 1)
    z = Mixture(mean, torch.ones_like(mean))
    means = z.sample(8, seeded()).mean(0)
    assert_close(means.std().item(), math.sqrt(1 / 8), rtol=0.15, atol=0)  # a lottery: over 1.8


# ---- densities and KL -----------------------------------------------------------------------------------------------


@anything_random
def test_log_prob_agrees_with_pytorch(kind: str) -> None:
    z = embedding(kind, 4, dim=3)
    at = torch.randn(7, 4, 3, generator=seeded(9), dtype=torch.float64)
    assert_close(z.log_prob(at), log_density(torch_twin(z), at))


@given(
    mean=st.lists(st.floats(-5, 5), min_size=1, max_size=4),
    log_variance=st.floats(-12, 5),
)
def test_kl_of_a_gaussian_is_exact(mean: list[float], log_variance: float) -> None:
    mu = torch.tensor(mean, dtype=torch.float64)
    variance = torch.full_like(mu, math.exp(log_variance))
    standard = td.Normal(torch.zeros_like(mu), torch.ones_like(mu))
    exact = td.kl_divergence(td.Normal(mu, variance.sqrt()), standard).sum()
    assert_close(Gaussian(mu, variance).kl(), exact, rtol=1e-9, atol=1e-12)


@anything_random
def test_sampled_kl_is_the_mean_log_ratio_of_the_samples(kind: str) -> None:
    z = embedding(kind, 3)
    standard = td.Independent(td.Normal(torch.zeros(2).double(), torch.ones(2).double()), 1)
    terms = [log_density(torch_twin(z), x) - log_density(standard, x) for x in z.sample(16, seeded())]
    assert_close(z.kl(samples=16, generator=seeded()), torch.stack(terms).mean(0))


@anything_random
def test_sampled_kl_converges_to_the_integral(kind: str) -> None:
    """In one dimension ∫ p log(p/r) is a sum over a fine grid."""
    z = embedding(kind, 3, dim=1, spread=0.6)
    x = torch.linspace(-12, 12, 40_001, dtype=torch.float64).view(-1, 1, 1)
    log_p, log_r = log_density(torch_twin(z), x), log_density(td.Normal(0.0, 1.0), x[..., 0])
    exact = (log_p.exp() * (log_p - log_r)).sum(0) * (24 / 40_000)
    repeats = torch.stack([z.kl(samples=400, generator=seeded(i)) for i in range(50)])
    error = (repeats.mean(0) - exact).abs()
    assert (error <= 4 * repeats.std(0) / math.sqrt(50)).all()
    assert (z.kl() >= exact - 1e-9).all()  # an equality for one component, an upper bound for more


@pytest.mark.parametrize("components", [1, 2, 4])
def test_kl_of_a_mixture_of_equal_components_is_that_of_one(components: int) -> None:
    one = Gaussian(torch.randn(3, 2, generator=seeded()), torch.full((3, 2), 0.3))
    same = Mixture(*(t.unsqueeze(-2).repeat(1, components, 1) for t in one.tensors))
    assert_close(same.kl(), one.kl())
    assert_close(same.log_prob(torch.ones(2)), one.log_prob(torch.ones(2)))
    assert_close(same.mean, one.mean)
    assert_close(same.variance, one.variance)


def test_kl_of_a_mixture_is_the_mean_over_its_components() -> None:
    z = embedding("mixture-4", 3)
    assert isinstance(z, Mixture)
    assert_close(z.kl(), torch.stack([z.components[:, c].kl() for c in range(4)]).mean(0))


@anything_random
def test_kl_and_log_prob_have_gradients(kind: str) -> None:
    z = embedding(kind, 2)
    tensors = tuple(t.clone().requires_grad_() for t in z.tensors)
    assert torch.autograd.gradcheck(lambda *t: rebuilt(z, *t).kl(), tensors)
    assert torch.autograd.gradcheck(lambda *t: rebuilt(z, *t).kl(samples=8, generator=seeded()), tensors)
    assert torch.autograd.gradcheck(lambda *t: rebuilt(z, *t).log_prob(torch.ones(2).double()), tensors)


def test_a_point_has_neither_density_nor_finite_kl() -> None:
    z = Point(torch.zeros(2))
    with pytest.raises(ValueRangeError, match=r"infinite.*beta=0"):
        z.kl()
    with pytest.raises(ValueRangeError, match="no density"):
        z.log_prob(torch.zeros(2))


# ---- batching -------------------------------------------------------------------------------------------------------


@anything
def test_a_batch_is_its_members_one_at_a_time(kind: str) -> None:
    z = embedding(kind, 4, dim=3)
    members = one_at_a_time(z)
    questions: list[Callable[[Distribution], Tensor]] = [lambda d: d.mean, lambda d: d.variance, Distribution.pack]
    if kind != "point":
        questions += [lambda d: d.kl(), lambda d: d.log_prob(torch.ones(3).double())]
    for question in questions:
        assert_close(question(z), torch.stack([question(member) for member in members]))


INDICES: dict[str, Any] = {
    "first": 0,
    "last": -1,
    "slice": slice(1, 3),
    "every other": slice(None, None, 2),
    "nothing": slice(0, 0),
    "list": [2, 0, 2],
    "tensor": torch.tensor([[2, 0], [1, 1]]),
    "numpy": np.array([2, 0]),
    "mask": torch.tensor([True, False, True]),
    "full mask": torch.arange(12).view(3, 4) % 5 == 0,
    "new axis": None,
    "pair": (1, 2),
    "column": (slice(None), 1),
    "column as a batch": (slice(None), None, 1),
    "all": ...,
    "last axis": (..., 1),
    "new last axis": (..., None),
    "first, whatever follows": (0, ...),
}


@anything
@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES.keys())
def test_indexing_acts_on_the_batch_as_on_a_tensor(kind: str, index: Any) -> None:
    z = embedding(kind, 3, 4, dim=4)
    order = torch.arange(12).view(3, 4)[index]
    expected = rebuilt(z, *(t.flatten(0, 1)[order] for t in z.tensors))
    assert z[index].batch_shape == order.shape
    assert_same(z[index], expected)


@anything
@pytest.mark.parametrize("index", [3, -4, (0, 4), (0, 0, 0), [5], torch.tensor([7]), torch.ones(4).bool()])
def test_an_index_outside_the_batch_is_an_index_error(kind: str, index: Any) -> None:
    with pytest.raises(IndexError):
        embedding(kind, 3, 4)[index]


@anything
def test_a_single_distribution_has_no_length_and_no_members(kind: str) -> None:
    z = embedding(kind)
    with pytest.raises(TypeError, match="single"):
        len(z)
    with pytest.raises(IndexError, match=r"shape \(\)"):
        z[0]


@anything
def test_iterating_visits_the_members(kind: str) -> None:
    z = embedding(kind, 3)
    assert len(z) == 3
    members = list(z)  # type: ignore[call-overload]  # by __len__ and __getitem__
    for member, expected in zip(members, one_at_a_time(z), strict=True):
        assert_same(member, expected)


@anything
def test_unsqueeze_adds_a_batch_axis(kind: str) -> None:
    z = embedding(kind, 3, 4)
    assert_same(z.unsqueeze(0), z[None])
    assert_same(z.unsqueeze(1), z[:, None])
    assert_same(z.unsqueeze(2), z[:, :, None])


@anything
@pytest.mark.parametrize("axis", [3, 7])
def test_unsqueeze_never_reaches_into_the_embedding_space(kind: str, axis: int) -> None:
    with pytest.raises((IndexError, HedgedError)):
        embedding(kind, 3, 4).unsqueeze(axis)


@anything
def test_unsqueeze_from_the_end_counts_batch_axes_or_is_refused(kind: str) -> None:
    z = embedding(kind, 3, 4)
    try:
        result = z.unsqueeze(-1)
    except (IndexError, HedgedError):
        return
    assert result.batch_shape == (3, 4, 1)


@anything
def test_stack_and_concatenate_undo_indexing(kind: str) -> None:
    z = embedding(kind, 4)
    assert_same(stack(one_at_a_time(z)), z)
    assert_same(concatenate([z[:1], z[1:1], z[1:]]), z)
    assert_same(stack([z, z])[1], z)


@anything
def test_joining_what_does_not_fit_is_refused(kind: str) -> None:
    z = embedding(kind, 3)
    with pytest.raises(ShapeError, match="cannot be joined"):
        stack([z, z[:2]])
    with pytest.raises(ShapeError, match="cannot be joined"):
        concatenate([z, embedding(kind, 3, dim=3)])
    with pytest.raises(ShapeError, match="none"):
        stack([])
    other: Distribution = Point(torch.zeros(3, 2)) if kind != "point" else embedding("gaussian", 3)
    with pytest.raises(ShapeError, match="one kind"):
        concatenate([z, other])


@anything
def test_concatenate_never_joins_the_embedding_space(kind: str) -> None:
    """Two single embeddings have no batch axis to be joined along: stack makes one."""
    z = embedding(kind)
    with pytest.raises(ShapeError, match="stack"):
        concatenate([z, z])


# ---- tensors --------------------------------------------------------------------------------------------------------


@anything
@pytest.mark.parametrize("batch", [(), (3,), (2, 3), (0,), (2, 0)])
def test_unpack_undoes_pack(kind: str, batch: tuple[int, ...]) -> None:
    z = embedding(kind, *batch, dim=3)
    packed = z.pack()
    assert packed.shape == (*batch, {"point": 3, "gaussian": 6}.get(kind) or 6 * COMPONENTS[kind])
    assert_same(type(z).unpack(packed, dim=3), z)


@anything
def test_packing_keeps_gradients(kind: str) -> None:
    z = with_gradients(embedding(kind, 3))
    grads = torch.autograd.grad(type(z).unpack(z.pack() * 2, dim=2).pack().sum(), z.tensors)
    assert all((grad == 2).all() for grad in grads)


@anything
def test_moves_change_dtype_and_device_and_nothing_else(kind: str) -> None:
    z = embedding(kind, 3)
    half = z.to(torch.float32)
    assert half.dtype == torch.float32
    assert_same(half, rebuilt(z, *(t.float() for t in z.tensors)))
    assert_same(half.to("cpu"), half)
    assert z.to(torch.device("meta")).device.type == "meta"
    assert z.device.type == "cpu"
    assert z.dtype == torch.float64


@anything
def test_a_move_to_integers_is_refused(kind: str) -> None:
    with pytest.raises(HedgedError, match="float"):
        embedding(kind, 3).to(torch.int64)


def test_a_move_that_rounds_a_variance_to_zero_is_not_silent() -> None:
    tiny = Gaussian(torch.zeros(2), torch.full((2,), 1e-9))
    with pytest.raises(ValueRangeError, match="variance"):
        tiny.to(torch.float16)


@anything
def test_detach_cuts_gradients(kind: str) -> None:
    z = with_gradients(embedding(kind, 3))
    assert all(t.requires_grad for t in z.tensors)
    assert not any(t.requires_grad for t in z.detach().tensors)
    assert_same(z.detach(), rebuilt(z, *(t.detach() for t in z.tensors)))


@anything
def test_copies_and_pickles_are_equal(kind: str) -> None:
    z = embedding(kind, 3)
    assert_same(pickle.loads(pickle.dumps(z)), z)
    assert_same(copy.deepcopy(z), z)
    assert_same(copy.copy(z), z)


@anything
def test_repr_says_what_it_is(kind: str) -> None:
    text = repr(embedding(kind, 3, dim=7))
    assert kind.split("-")[0] in text.lower()
    assert "(3,)" in text
    assert "dim=7" in text


# ---- errors ---------------------------------------------------------------------------------------------------------

ONE = torch.ones(3, 2)
NAN, INFINITE = torch.full((3, 2), math.nan), torch.full((3, 2), math.inf)
CONSTRUCTORS: list[Any] = [Gaussian, Mixture]


@pytest.mark.parametrize("make", CONSTRUCTORS)
@pytest.mark.parametrize(
    ("mean", "variance", "error", "message"),
    [
        (NAN, ONE, ValueRangeError, "mean .* 6 of 6 values that are NaN"),
        (ONE, NAN, ValueRangeError, "variance .* NaN"),
        (INFINITE, ONE, ValueRangeError, "infinite"),
        (ONE, INFINITE, ValueRangeError, "infinite"),
        (ONE, 0 * ONE, ValueRangeError, r"positive, got a smallest value of 0: use Point\(mean\)"),
        (ONE, -2 * ONE, ValueRangeError, r"smallest value of -2.*exp\(log_variance\)"),
        (ONE, torch.ones(1, 2), ShapeError, r"\(3, 2\).*\(1, 2\).*expand_as"),
        (ONE, torch.ones(2), ShapeError, r"one shape"),
        (ONE, ONE.double(), ShapeError, r"float32 and .*float64.*\.to\(mean.dtype\)"),
        (ONE.long(), ONE.long(), ShapeError, "floating-point mean.*got torch.int64"),
        (ONE[:, :0], ONE[:, :0], ShapeError, "D ≥ 1"),
        ([[0.0, 1.0]], ONE, ShapeError, r"got a list as mean: wrap it in torch.as_tensor"),
        (ONE, 1.0, ShapeError, r"got a float as variance"),
        (ONE.numpy(), ONE, ShapeError, r"got a ndarray as mean"),
    ],
)
def test_a_bad_mean_or_variance_gets_a_clear_error(
    make: Callable[..., Distribution], mean: Any, variance: Any, error: type[HedgedError], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        make(mean, variance)
    assert make.__name__ in str(caught.value), "the error names what the user called"


@pytest.mark.parametrize("bad", [NAN, INFINITE, ONE.long(), torch.tensor(1.0), ONE[:, :0], [1.0], None])
def test_a_bad_point_gets_a_clear_error(bad: Any) -> None:
    with pytest.raises(HedgedError, match="Point"):
        Point(bad)


def test_a_mixture_needs_a_component_axis() -> None:
    with pytest.raises(ShapeError, match=r"\(\.\.\., C, D\).*unsqueeze\(-2\)"):
        Mixture(torch.zeros(2), torch.ones(2))
    with pytest.raises(ShapeError, match="C ≥ 1"):
        Mixture(torch.zeros(3, 0, 2), torch.ones(3, 0, 2))


@anything
@pytest.mark.parametrize("count", [0, -4])
def test_samples_are_at_least_one(kind: str, count: int) -> None:
    with pytest.raises(ValueRangeError, match="positive multiple"):
        embedding(kind, 3).sample(count)


def test_samples_of_a_mixture_are_a_multiple_of_its_components() -> None:
    z = embedding("mixture-4", 3)
    with pytest.raises(ValueRangeError, match=r"6 samples .* 4 component\(s\): ask for a positive multiple of 4"):
        z.sample(6)
    with pytest.raises(ValueRangeError, match="multiple of 4"):
        z.kl(samples=6)


@pytest.mark.parametrize(
    ("make", "width", "dim", "message"),
    [
        (Point, 3, 2, "rows of 2 numbers, got 3"),
        (Gaussian, 6, 2, "rows of 4 numbers, got 6"),
        (Mixture, 6, 2, "a multiple of 4 numbers, got 6"),
        (Mixture, 0, 2, "got 0"),
        (Gaussian, 4, 0, "dimension 0"),
    ],
)
def test_unpacking_rows_of_the_wrong_width_is_refused(
    make: type[Distribution], width: int, dim: int, message: str
) -> None:
    with pytest.raises(ShapeError, match=message):
        make.unpack(torch.ones(3, width), dim)


@pytest.mark.parametrize("make", [Point, Gaussian, Mixture])
def test_unpacking_checks_values_and_types(make: type[Distribution]) -> None:
    with pytest.raises(ValueRangeError, match="NaN"):
        make.unpack(torch.full((3, 4), math.nan), 4 if make is Point else 2)
    with pytest.raises(ShapeError, match="list"):
        make.unpack([1.0, 2.0], 1)  # type: ignore[arg-type]


def test_one_variance_stands_for_all_dimensions() -> None:
    one = Gaussian(torch.zeros(3, 2), torch.tensor([[1.0], [2.0], [3.0]]))
    assert torch.equal(one.variance, torch.tensor([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]))
    assert torch.equal(Gaussian.unpack(one.pack(), 2).pack(), one.pack())
