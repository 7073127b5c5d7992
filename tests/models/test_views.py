"""Blended views against samples of them, and models that see each image and its mirror image."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from laws import KINDS, RANDOM_KINDS, embedding, frozen_curve, seeded
from torch.testing import assert_close

from hedged.distributions import Gaussian, concatenate
from hedged.errors import ShapeError, ValueRangeError
from hedged.match import Evidence, match_probability
from hedged.models import Architecture, Embedder, Mirrored, OneView, Views
from hedged.models.views import add_evidence, blend


@pytest.mark.parametrize("kind", KINDS)
def test_a_single_view_is_all_that_is_known(kind: str) -> None:
    z = embedding(kind, 4)
    assert type(blend([z])) is type(z)
    assert_close(blend([z]).pack(), z.pack())


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_views_does_not_matter(kind: str) -> None:
    one, other = embedding(kind, 4, seed=1), embedding(kind, 4, seed=2)
    there, back = blend([one, other]), blend([other, one])
    assert_close(there.mean, back.mean)
    assert_close(there.variance, back.variance)


@pytest.mark.parametrize("kind", RANDOM_KINDS)
def test_moments_are_those_of_samples_of_all_views(kind: str) -> None:
    views = [embedding(kind, 3, seed=seed) for seed in range(3)]
    drawn = torch.cat([z.sample(100_000, seeded(7)) for z in views])
    z = blend(views)
    assert_close(z.mean, drawn.mean(0), atol=0.01, rtol=0)
    assert_close(z.variance, drawn.var(0), atol=0.02, rtol=0)


def test_a_gaussian_has_the_share_of_its_views_disagreement_that_is_asked_for() -> None:
    views = [embedding("gaussian", 3, seed=seed) for seed in range(3)]
    drawn = [z.sample(100_000, seeded(7)) for z in views]
    within, all_of_it = torch.stack([each.var(0) for each in drawn]).mean(0), torch.cat(drawn).var(0)
    z = blend(views, disagreement=0.25)
    assert_close(z.mean, torch.cat(drawn).mean(0), atol=0.01, rtol=0)
    assert_close(z.variance, within + (all_of_it - within) / 4, atol=0.02, rtol=0)


def test_a_mixture_of_views_matches_as_its_views_do_on_average() -> None:
    views, other = [embedding("mixture-2", 5, seed=seed) for seed in (1, 2)], embedding("gaussian", 5, seed=3)
    expected = torch.stack([match_probability(z, other, frozen_curve()) for z in views]).mean(0)
    assert_close(match_probability(blend(views), other, frozen_curve()), expected)


def test_views_of_posteriors_tell_what_evidence_of_several_inputs_tells() -> None:
    views = [Gaussian(seeded_randn(4, 3, seed), torch.rand(4, 3, generator=seeded(seed))) for seed in (1, 2)]
    expected = Evidence().fuse(concatenate(views), torch.arange(4).repeat(2))
    got = add_evidence(views)
    assert_close(got.mean, expected.mean)
    assert_close(got.variance, expected.variance)
    prior = Gaussian(torch.zeros(4, 3), torch.ones(4, 3))
    assert_close(add_evidence([prior, prior]).pack(), prior.pack())
    assert_close(add_evidence([views[0]]).pack(), views[0].pack())


def seeded_randn(*size_and_seed: int) -> torch.Tensor:
    *size, seed = size_and_seed
    return torch.randn(*size, generator=seeded(seed))


def mirrored(head: str = "gaussian") -> Architecture:
    content = {"shape": (3, 32, 32), "backbone": "shallow-hidden", "head": head, "dim": 4, "mirrored": True}
    return Architecture.model_validate(content)


@pytest.mark.parametrize("head", ["point", "gaussian", "mixture", "posterior"])
def test_an_image_and_its_mirror_image_are_one_to_a_mirrored_model(head: str, tmp_path: Path) -> None:
    images = torch.rand(3, 3, 32, 32, generator=seeded())
    e = Embedder.new(mirrored(head), seed=0)
    e.save(tmp_path)
    for model in (e, Embedder.load(tmp_path)):
        here, there = model.embed(images), model.embed(images.flip(-1))
        assert_close(here.mean, there.mean)
        assert_close(here.variance, there.variance)
        each = [model(view) for view in (images, images.flip(-1))]
        assert_close(here.mean, model.views.join(each).mean.detach())


def test_disagreement_of_the_two_is_uncertainty() -> None:
    e = Embedder.new(mirrored(), seed=0)
    lopsided = np.zeros((1, 32, 32, 3), np.uint8)
    lopsided[:, :, :16] = 255
    even = np.maximum(lopsided, lopsided[:, :, ::-1])
    alone = e(torch.rand(1, 3, 32, 32)).variance.mean().item()  # of any one view, before training
    apart = e(torch.from_numpy(lopsided).permute(0, 3, 1, 2) / 255).mean - e.embed(lopsided).mean
    assert e.embed(even).variance.mean().item() == pytest.approx(alone, rel=1e-6)
    assert e.embed(lopsided).variance.mean().item() == pytest.approx(alone + apart.square().mean().item() / 4, rel=1e-6)
    assert apart.abs().max() > 1e-3


def test_a_model_that_is_not_mirrored_is_described_as_before() -> None:
    plain = Architecture.model_validate(mirrored().model_dump() | {"mirrored": False})
    assert "mirrored" not in plain.model_dump()
    assert mirrored().model_dump()["mirrored"]


def test_only_images_have_mirror_images() -> None:
    with pytest.raises(ValueError, match='backbone = "vectors" takes vectors'):
        Architecture(backbone="vectors", shape=(16,), mirrored=True)
    with pytest.raises(ValueError, match=r"got shape = \(16,\)"):
        Architecture(backbone="module", shape=(16,), mirrored=True)


def test_views_are_made_again_from_what_is_saved_of_them() -> None:
    for views in (OneView(), Mirrored(), Mirrored(disagreement=0.25), Mirrored(disagreement=None)):
        assert Views.restore(views.describe()) == views
        assert hash(Views.restore(views.describe())) == hash(views)
    assert Mirrored() == Mirrored(1.0) != Mirrored(0.25) != OneView()
    assert repr(Mirrored(0.25)) == "Mirrored(disagreement=0.25)"
    with pytest.raises(ValueRangeError, match="one of one, mirrored, got 'turned'"):
        Views.restore({"kind": "turned"})
    with pytest.raises(ValueRangeError, match="at least 0"):
        Mirrored(disagreement=-1)
    with pytest.raises(ShapeError, match=r"got inputs of shape \(2, 7\)"):
        Mirrored().of(torch.zeros(2, 7))


def test_a_config_that_says_mirrored_means_the_recipes_share() -> None:
    assert mirrored().section.views == Mirrored(disagreement=0.25)
    assert Architecture().section.views == OneView()
