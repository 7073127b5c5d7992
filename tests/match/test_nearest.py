"""The best matches, found with a bound, against the whole matrix sorted."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import seeded

from hedged import Gaussian, MatchCurve, Mixture, Point
from hedged.distributions import Distribution
from hedged.errors import ShapeError, ValueRangeError
from hedged.match import _pairs, best_matches


def embeddings(kind: str, count: int, dim: int, spread: float, reach: float, seed: int) -> Distribution:
    """As trained models give them: clusters, most embeddings narrow, some very wide."""
    generator = seeded(seed)
    components = {"point": 1, "gaussian": 1, "mixture": 3}[kind]
    shape = (count, components, dim)
    means = reach * torch.randn(10, 1, dim, generator=generator)[torch.randint(10, (count,), generator=generator)]
    means = means + 0.1 * torch.randn(shape, generator=generator)
    variances = spread * torch.exp(2 * torch.randn(shape, generator=generator))
    if kind == "mixture":
        return Mixture(means, variances)
    return Point(means[:, 0]) if kind == "point" else Gaussian(means[:, 0], variances[:, 0])


def assert_best(probes: Distribution, gallery: Distribution, curve: MatchCurve, k: int, exclude_self: bool) -> None:
    found = best_matches(probes, gallery, curve, k, exclude_self=exclude_self)
    logits = curve.matrix(probes, gallery).double()
    if exclude_self:
        logits.fill_diagonal_(-torch.inf)
    wanted = logits.sort(dim=1, descending=True, stable=True).values[:, :k]
    own = logits.gather(1, found.items)
    assert found.items.sort(dim=1).values.diff(dim=1).min() > 0 if k > 1 else True, "each item once"
    # Sums of terms in another order differ in their last digits, and so may the order of all but equal matches.
    torch.testing.assert_close(found.logits.double(), wanted, rtol=1e-3, atol=2e-4)
    torch.testing.assert_close(own, wanted, rtol=1e-3, atol=2e-4)


@settings(max_examples=60)
@given(
    kinds=st.sampled_from([("gaussian", "gaussian"), ("mixture", "gaussian"), ("mixture", "mixture"),
                           ("point", "gaussian"), ("point", "point")]),
    dim=st.sampled_from([1, 2, 20]),
    spread=st.sampled_from([1e-6, 1e-3, 1e-1, 1.0]),
    reach=st.sampled_from([0.01, 1.0, 10.0]),
    bias=st.floats(-6, 14),
    gallery=st.sampled_from([5, 511, 1300]),
    seed=st.integers(0, 2**31),
)  # fmt: skip
def test_they_are_those_of_the_whole_matrix(
    kinds: tuple[str, str], dim: int, spread: float, reach: float, bias: float, gallery: int, seed: int
) -> None:
    curve = MatchCurve(5.0, bias).requires_grad_(False)
    probes = embeddings(kinds[0], 7, dim, spread, reach, seed)
    items = embeddings(kinds[1], gallery, dim, spread, reach, seed)
    assert_best(probes, items, curve, k=5, exclude_self=False)


@pytest.mark.parametrize("kind", ["point", "gaussian", "mixture"])
def test_an_image_is_never_its_own_match(kind: str) -> None:
    z = embeddings(kind, 600, 2, 1e-2, 1.0, seed=3)
    assert_best(z, z, MatchCurve(), k=3, exclude_self=True)
    items = best_matches(z, z, MatchCurve(), k=3, exclude_self=True).items
    assert (items != torch.arange(600).unsqueeze(1)).all()


def test_the_first_among_equals_comes_first() -> None:
    z = Gaussian(torch.zeros(1500, 2), torch.full((1500, 2), 0.1))
    items = best_matches(z[:3], z, MatchCurve(), k=4).items
    assert items.tolist() == [[0, 1, 2, 3]] * 3


def test_far_beyond_the_curve_the_nearer_still_comes_first() -> None:
    gallery = Gaussian(torch.linspace(50, 60, 700).flip(0).unsqueeze(1), torch.full((700, 1), 1e-3))
    probe = Gaussian(torch.zeros(1, 1), torch.full((1, 1), 1e-3))
    assert best_matches(probe, gallery, MatchCurve(), k=3).items.tolist() == [[699, 698, 697]]


@pytest.mark.parametrize("is_point", [True, False])
def test_whatever_the_distances_there_are_k_matches(is_point: bool) -> None:
    for reach in (1e-30, 1e10, 1e25):
        means = reach * torch.randn(600, 2, generator=seeded(1))
        gallery = Point(means) if is_point else Gaussian(means, torch.full((600, 2), 1e-3))
        items = best_matches(gallery[:5], gallery, MatchCurve(), k=7).items
        assert ((items >= 0) & (items < 600)).all()
        assert all(len(set(row)) == 7 for row in items.tolist())


def test_without_the_compiled_loops_they_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    z = embeddings("gaussian", 400, 2, 1e-2, 1.0, seed=3)
    found = best_matches(z, z, MatchCurve(), k=4, exclude_self=True)
    plain = _pairs.nearest(MatchCurve().requires_grad_(False).matrix, z, z, 4, exclude_self=True)
    torch.testing.assert_close(found.logits.float(), plain.logits, rtol=1e-3, atol=2e-4)
    assert (found.items == plain.items).float().mean() > 0.99


def test_results_do_not_depend_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    z = embeddings("gaussian", 200, 3, 1e-2, 1.0, seed=5)
    results = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        results.append(best_matches(z, z, MatchCurve()))
    for other in results[1:]:
        assert torch.equal(other.logits, results[0].logits)
        assert torch.equal(other.items, results[0].items)


def test_what_cannot_be_ranked_is_refused() -> None:
    z, flat = embeddings("gaussian", 6, 2, 1e-2, 1.0, seed=5), embeddings("gaussian", 6, 3, 1e-2, 1.0, seed=5)
    with pytest.raises(ValueRangeError, match="k is 6; a gallery of 6 has 1 to 5"):
        best_matches(z, z, MatchCurve(), k=6, exclude_self=True)
    with pytest.raises(ShapeError, match="same dimension, got 2 and 3"):
        best_matches(z, flat, MatchCurve())
    with pytest.raises(ShapeError, match="cannot be the same items"):
        best_matches(z[:2], z, MatchCurve(), exclude_self=True)
    with pytest.raises(ShapeError, match="at least one"):
        best_matches(z[:0], z, MatchCurve())
    with pytest.raises(ShapeError, match=r"best_matches takes embeddings, got a Tensor: wrap it, as Point\(z\)"):
        best_matches(z.mean, z.mean, MatchCurve())  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="best_matches takes two lists of embeddings, the second is Gaussian"):
        best_matches(z, z[0], MatchCurve())
