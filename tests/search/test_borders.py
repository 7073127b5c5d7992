"""Borders between the identities of a gallery: against scikit-learn, against loops, and what they are good for."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from laws import seeded
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

from hedged import Evidence, Gaussian
from hedged.errors import ValueRangeError
from hedged.search import BorderFusion, Identifier, Identities, ProductFusion, borders
from hedged.search.borders import _Borders, nearest_matches

DIM, IDENTITIES, EACH = 6, 12, 12


def classes(seed: int, apart: float = 1.0) -> tuple[Gaussian, torch.Tensor]:
    """Identities that spread as far as they lie apart, each in a direction of its own."""
    generator, own = seeded(seed), seeded(99)
    centres = apart * torch.randn(IDENTITIES, DIM, generator=own)
    spread = 0.9 * torch.randn(IDENTITIES, 1, DIM, generator=own)
    along = torch.randn(IDENTITIES, EACH, 1, generator=generator)
    seen = centres[:, None] + along * spread + 0.2 * torch.randn(IDENTITIES, EACH, DIM, generator=generator)
    mean = seen.reshape(-1, DIM)
    return Gaussian(mean / 2, torch.full_like(mean, 0.5)), torch.arange(IDENTITIES).repeat_interleave(EACH)


def test_weights_are_those_of_logistic_regression(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(borders, "STEPS", 2000)
    z, owner = classes(0)
    mean = z.mean.double()
    found = _Borders.learnt(mean, torch.zeros(len(mean), IDENTITIES, dtype=torch.float64), owner, penalty=0.5)
    scaled = (mean / mean.square().sum(1).mean().sqrt()).numpy()
    other = LogisticRegression(C=2.0, max_iter=2000, tol=1e-8).fit(scaled, owner.numpy())
    apart = found.scores(mean, torch.zeros(len(mean), IDENTITIES)).softmax(1).numpy() - other.predict_proba(scaled)
    assert np.abs(apart).max() < 0.01


def test_the_nearest_images_are_those_of_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(borders, "PAIRS_AT_ONCE", 50)
    z, _ = classes(0)
    z, owner = z[:20], torch.tensor([3, 0, 0, 2] * 4 + [1, 0, 0, 0])  # 1 has one image
    places = torch.arange(20)
    found = nearest_matches(z, z, owner, Evidence(), places)
    logits = Evidence().matrix(z, z).double()
    for i in range(20):
        for j in range(4):
            others = sorted(logits[i, k].item() for k in range(20) if k != i and owner[k] == j)[-3:]
            assert found[i, j].item() == pytest.approx(np.mean(others) if others else -np.inf, rel=1e-4, abs=1e-4)
    assert torch.isneginf(found).sum() == 1
    assert torch.isfinite(nearest_matches(z, z, owner, Evidence())).all()


def test_borders_name_the_known_better_where_a_template_is_a_poor_picture() -> None:
    (z, owner), (new, whose) = classes(0), classes(1)
    with torch.no_grad():
        right = {
            type(fusion): float((fusion.logits(new, z, owner, Evidence()).argmax(1) == whose).float().mean())
            for fusion in (ProductFusion(), BorderFusion())
        }
    assert right[BorderFusion] > right[ProductFusion] + 0.05


def test_strangers_are_nobody_more_often_than_the_known() -> None:
    (z, owner), (new, whose) = classes(0, apart=4), classes(1, apart=4)
    known = owner < 9
    gallery = Identities([str(k) for k in range(9)], z[known], owner[known], Evidence())
    nobody = np.array([one.none_probability for one in Identifier(gallery, BorderFusion(), 0.5).identify(new, top=1)])
    assert np.median(nobody[whose.numpy() >= 9]) > np.median(nobody[whose.numpy() < 9]) + 0.2


def test_what_is_tried_was_left_out() -> None:
    """The label of a tried image is wrong: learnt with it, it would be found; held out, it is not."""
    z, owner = classes(0)
    wrong, tried = owner.clone(), torch.tensor([5, 40, 100])
    wrong[tried] = (owner[tried] + 5) % IDENTITIES
    known, strangers = BorderFusion(penalty=1e-6).held_out(z, wrong, tried, Evidence())
    assert (known.argmax(1) != wrong[tried]).all()
    assert torch.isneginf(strangers[torch.arange(3), wrong[tried]]).all()
    assert (torch.isfinite(strangers).sum(1) == IDENTITIES * 3 // 4).all()


def test_penalties_are_positive() -> None:
    with pytest.raises(ValueRangeError, match="got 0"):
        BorderFusion(penalty=0)
