"""Whom a probe shows: fusions against explicit loops, and "none of these" where it is so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from laws import seeded
from search.gallery import KINDS, MODEL, Make, embeddings, rows

from hedged import Gaussian, MatchCurve, Mixture, Point, match_matrix, match_probability
from hedged.distributions import Distribution
from hedged.errors import DataError, ShapeError, ValueRangeError
from hedged.search import (
    Fusion,
    Identifier,
    Identities,
    MixtureFusion,
    NeighbourFusion,
    ProductFusion,
    Rows,
    Where,
    identify,
)
from hedged.search.unknowns import Trials, fit, run_trials

FUSIONS = [ProductFusion(), MixtureFusion(), NeighbourFusion(3)]
CURVE = MatchCurve().requires_grad_(False)


def people(identities: int, of_each: int, seed: int, first: int = 0, noise: float = 0.05) -> Distribution:
    """Images of identities one after the other, sharp and blurred."""
    generator = seeded(seed)
    centres = torch.randn(identities + first, 1, 4, generator=seeded(3))[first:]
    variances = noise**2 * 10 ** torch.rand(identities, of_each, 4, generator=generator)
    means = centres + variances.sqrt() * torch.randn(identities, of_each, 4, generator=generator)
    return Gaussian(means.flatten(0, 1), variances.flatten(0, 1))


def gallery_of(identities: int, of_each: int) -> Identities:
    owner = torch.arange(identities).repeat_interleave(of_each)
    return Identities([f"person {i}" for i in range(identities)], people(identities, of_each, seed=0), owner, CURVE)


def test_the_product_of_gaussians_is_proportional_to_the_product_of_their_densities() -> None:
    z, owner = people(2, 3, seed=1), torch.tensor([0, 0, 0, 1, 1, 1])
    fused, at = CURVE.fuse(z.to(torch.float64), owner), torch.randn(50, 4, generator=seeded(2), dtype=torch.float64)
    for group in range(2):
        each = torch.stack([z[i].to(torch.float64).log_prob(at) for i in range(3 * group, 3 * group + 3)]).sum(0)
        difference = fused[group].log_prob(at) - each
        torch.testing.assert_close(difference, difference[:1].expand(50))


def test_products_of_points_and_mixtures() -> None:
    points = CURVE.fuse(Point(torch.tensor([[0.0, 1.0], [2.0, 3.0], [7.0, 7.0]])), torch.tensor([0, 0, 1]))
    assert points.mean.tolist() == [[1.0, 2.0], [7.0, 7.0]]
    z = embeddings("mixture", 4)
    assert isinstance(z, Mixture)
    moments = CURVE.fuse(Gaussian(z.mean, z.variance), torch.tensor([0, 1, 1, 0]))
    assert torch.equal(CURVE.fuse(z, torch.tensor([0, 1, 1, 0])).pack(), moments.pack())


def test_the_mixture_is_the_mean_of_the_match_probabilities() -> None:
    z, owner, probes = people(3, 2, seed=1), torch.tensor([0, 1, 2, 0, 1, 1]), people(3, 1, seed=2)
    p = match_matrix(probes, z, CURVE)
    found = MixtureFusion().logits(probes, z, owner, CURVE).sigmoid()
    for n in range(3):
        for group in range(3):
            expected = np.mean([p[n, i].item() for i in range(6) if owner[i] == group])
            assert found[n, group].item() == pytest.approx(expected, abs=1e-6)


def test_neighbours_vote_by_match_probability() -> None:
    z, owner, probes = people(3, 4, seed=1, noise=0.5), torch.arange(12) % 3, people(3, 1, seed=2)
    p = match_matrix(probes, z, CURVE)
    found = NeighbourFusion(5).logits(probes, z, owner, CURVE).sigmoid()
    for n in range(3):
        nearest = sorted(range(12), key=lambda i: -p[n, i].item())[:5]
        for group in range(3):
            expected = sum(p[n, i].item() for i in nearest if owner[i] == group) / 5
            assert found[n, group].item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("fusion", FUSIONS)
def test_who_is_known_is_named_and_who_is_not_is_none(fusion: Fusion) -> None:
    gallery = gallery_of(30, 5)
    identifier = Identifier(gallery, fusion, none_prior=0.5)
    known, unknown = identifier.identify(people(30, 4, seed=9)), identifier.identify(people(30, 4, seed=9, first=30))
    right = [one.best[0].label == f"person {i // 4}" for i, one in enumerate(known)]
    assert np.mean(right) > 0.95
    none = [one.none_probability for one in (*known, *unknown)]
    truth = np.repeat([0, 1], 120)
    assert np.mean([a < b for a in none[:120] for b in none[120:]]) > 0.95  # strangers are told from the known
    assert np.mean((np.array(none) - truth) ** 2) < 0.08  # Brier: probabilities that come true
    for one in (*known, *unknown):
        assert one.probability == max(one.none_probability, one.best[0].probability)
        assert (one.label is None) == (one.none_probability >= one.best[0].probability)


@pytest.mark.parametrize("fusion", FUSIONS)
@pytest.mark.parametrize("of_each", [1, 5])  # of one image each, nothing can be learnt
def test_probabilities_add_up_to_one(fusion: Fusion, of_each: int) -> None:
    probes = people(10, 1, seed=4)
    for none_prior in (0.01, 0.9):
        for one in Identifier(gallery_of(8, of_each), fusion, none_prior).identify(probes, top=8):
            total = one.none_probability + sum(each.probability for each in one.best)
            assert total == pytest.approx(1, abs=1e-9)
            assert [each.images for each in one.best] == [of_each] * 8


def test_without_trials_the_odds_decide_alone() -> None:
    gallery, probe = gallery_of(4, 1), people(4, 1, seed=9)[1:2]
    (found,) = Identifier(gallery, none_prior=0.2).identify(probe, top=4)
    p = match_probability(probe, gallery.images, CURVE).double()
    odds = p / (1 - p)
    assert found.none_probability == pytest.approx(0.2 / (0.2 + 0.8 / 4 * odds.sum().item()), rel=1e-4)


def test_the_more_probes_are_of_nobody_the_more_often_it_is_none() -> None:
    probes, gallery = people(6, 2, seed=9), gallery_of(6, 5)
    few, many = (Identifier(gallery, none_prior=prior).identify(probes) for prior in (0.01, 0.99))
    assert all(a.none_probability < b.none_probability for a, b in zip(few, many, strict=True))


def test_other_settings_ask_the_same_gallery_without_learning_again(monkeypatch: pytest.MonkeyPatch) -> None:
    for gallery in (gallery_of(12, 3), gallery_of(12, 2)):
        probes = people(14, 2, seed=9)
        settings = [(0.1, None), (0.3, 0.8), (0.3, 0.9), (0.01, 0.8), (0.5, None)]
        wanted = [Identifier(gallery, none_prior=none, coverage=c).identify(probes) for none, c in settings]
        learned: list[str] = []
        for name in ("learn", "hold_out"):
            monkeypatch.setattr(identify, name, counted(getattr(identify, name), learned))
        one = Identifier(gallery, none_prior=0.7)
        assert [one.asked_for(*some).identify(probes) for some in settings] == wanted
        assert learned == ["learn", "hold_out"]
        assert one.identify(probes) == Identifier(gallery, none_prior=0.7).identify(probes)
        monkeypatch.undo()
    with pytest.raises(ValueRangeError, match="none_prior"):
        one.asked_for(1.0)


def counted(function: Callable[..., Any], names: list[str]) -> Callable[..., Any]:
    """The same function, which also notes its name."""

    def noting(*given: Any) -> Any:
        names.append(function.__name__)
        return function(*given)

    return noting


def test_calibrated_odds_are_used() -> None:
    probes, gallery = people(6, 1, seed=9, noise=0.3), gallery_of(6, 5)
    flat = Identifier(gallery, calibrated=lambda logits: 0 * logits).identify(probes, top=6)
    for one in flat:
        assert max(each.probability for each in one.best) == pytest.approx(min(each.probability for each in one.best))


def test_trials_leave_out_what_they_say() -> None:
    gallery = gallery_of(3, 2)
    found = run_trials(gallery.images, gallery.owner, MixtureFusion(), CURVE)
    p = match_matrix(gallery.images, gallery.images, CURVE)
    assert len(found.known) == 6
    for i in range(6):
        strangers = [p[i, 2 * g : 2 * g + 2].mean().item() for g in range(3) if g != i // 2]
        known = max(p[i, i ^ 1].item(), *strangers)
        for logit, expected in ((found.known[i], known), (found.unknown[i], max(strangers))):
            assert 1 / (1 + np.exp(-logit)) == pytest.approx(expected, rel=1e-3, abs=1e-7)


def test_a_fit_finds_the_curve_that_trials_were_drawn_from() -> None:
    generator = np.random.default_rng(0)
    found = fit(Trials(generator.normal(2, 1, 3000), generator.normal(-1, 1, 3000)))
    assert found.slope == pytest.approx(3, rel=0.1)  # of two normals with one variance: the difference of their means
    assert found.shift == pytest.approx(-1.5, rel=0.15)
    assert fit(Trials(np.zeros(30), np.zeros(30))).log_odds(np.array(5.0)) == pytest.approx(0, abs=1e-3)
    assert fit(Trials(np.zeros(30), np.ones(30))).slope == 0  # better matches never speak for a stranger


@pytest.mark.parametrize("kind", KINDS)
def test_a_gallery_is_read_from_a_store(make: Make, kind: str) -> None:
    store, given = make(kind), rows(kind, 50)
    with pytest.raises(DataError, match="nobody to identify"):
        Identities.read(store)
    store.add(given)
    gallery = Identities.read(store)
    assert gallery.labels == [f"label {i}" for i in range(5)]
    assert len(gallery.images) == len(gallery.owner) == 45  # the others have no label
    assert gallery.owner.tolist() == [i // 10 for i in range(50) if i % 10 != 9]
    assert len(Identifier(gallery).identify(given.z[:3])) == 3
    assert Identities.read(store, [Where("label", "label 3")]).labels == ["label 3"]


def test_what_cannot_be_identified_is_refused(make_sqlite: Make) -> None:
    store = make_sqlite("gaussian")
    store.add(Rows(["a"], embeddings("gaussian", 1), MODEL))
    with pytest.raises(DataError, match=r"no row of .* has a label"):
        Identities.read(store)
    gallery = gallery_of(3, 2)
    with pytest.raises(ValueRangeError, match=r"must lie in \(0, 1\), got 1"):
        Identifier(gallery, none_prior=1)
    with pytest.raises(ValueRangeError, match="top must be at least 1, got 0"):
        Identifier(gallery).identify(gallery.images, top=0)
    with pytest.raises(ShapeError, match="in 4 dimensions"):
        Identifier(gallery).identify(embeddings("gaussian", 2, dim=3))
    with pytest.raises(ValueRangeError, match="k=0"):
        NeighbourFusion(0)
