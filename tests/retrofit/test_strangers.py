"""Strangers tell how rare an input is: the formula, its law, and that an input is as rare in any batch."""

from __future__ import annotations

import numpy as np
import torch
from retrofit.people import people

from hedged.distributions import Gaussian
from hedged.match import Evidence
from hedged.models.evidence.asides import ASIDE
from hedged.models.evidence.strangers import Strangers
from hedged.retrofit import Retrofit
from hedged.retrofit.fitting import drawn_in_turn

GROUPS = [slice(0, 2), slice(2, 6)]


def gaussians(count: int, seed: int) -> Gaussian:
    g = torch.Generator().manual_seed(seed)
    spread = torch.rand(count, 2, generator=g).clamp(min=0.05).repeat_interleave(torch.tensor([2, 4]), dim=1)
    return Gaussian(torch.randn(count, 6, generator=g) * (1 - spread).sqrt(), spread)


def test_the_excess_is_the_soft_mean_of_log_factors() -> None:
    z, others, sharpness = gaussians(9, 0), gaussians(30, 1), 0.7
    factors = Evidence().log_factor(z.to(torch.float64).unsqueeze(1), others.to(torch.float64).unsqueeze(0))
    expected = ((sharpness * factors).exp().mean(1)).log() / sharpness
    torch.testing.assert_close(Strangers.of(others, sharpness).excess(z, GROUPS), expected.detach())


def test_ratios_less_all_of_the_excess_average_one_over_strangers() -> None:
    z, others, sharpness = gaussians(9, 0), gaussians(30, 1), 0.7
    heard = Strangers.of(others, sharpness)
    factors = Evidence().matrix(z, others).double() - heard.excess(z, GROUPS)[:, None]
    torch.testing.assert_close(
        (sharpness * factors).exp().mean(1), torch.ones(9, dtype=torch.float64), atol=1e-4, rtol=0
    )


def test_an_input_is_as_rare_in_any_batch() -> None:
    z, heard = gaussians(9, 0), Strangers.of(gaussians(30, 1), 0.7)
    together = heard(z, GROUPS)
    alone = torch.cat([heard(z[k : k + 1], GROUPS).mean for k in range(9)])
    torch.testing.assert_close(together.mean, alone, atol=1e-7, rtol=0)
    torch.testing.assert_close(together.mean[:, -1].double(), heard.excess(z, GROUPS) / (-2 * ASIDE), atol=1e-6, rtol=0)
    assert (together.variance[:, -1] == 1).all()


def test_where_identities_crowd_inputs_are_less_rare() -> None:
    crowd = Gaussian(torch.full((50, 6), 1.0) + 0.05 * gaussians(50, 2).mean, torch.full((50, 6), 0.2))
    heard = Strangers.of(crowd, 0.5)
    inside, outside = (Gaussian(torch.full((1, 6), m), torch.full((1, 6), 0.2)) for m in (1.0, -1.0))
    rarity = [heard(z, [slice(0, 6)]).mean[0, -1].item() for z in (inside, outside)]
    assert rarity[0] < rarity[1]


def test_rows_are_drawn_one_of_every_identity_in_turn() -> None:
    y = np.repeat(np.arange(5), [3, 1, 4, 1, 5])
    rows = drawn_in_turn(y, y != 2, seed=3)
    assert sorted(rows.tolist()) == np.flatnonzero(y != 2).tolist()
    assert sorted(y[rows[:4]].tolist()) == [0, 1, 3, 4]
    assert sorted(y[rows[4:6]].tolist()) == [0, 4]


def test_choices_that_are_given_are_taken_and_repeat_the_fit() -> None:
    train, new = people(30), people(20, seed=1)
    given = Retrofit(branches="unit+wide", ridge=1.0, strangers=True, steps=20).fit(train.x, train.y, train.poor)
    settings = {"ridge": 1.0, "axes": 24, "branches": "unit+wide", "strangers": True, "held_out": "identities"}
    assert given.report_.settings == settings
    assert given.report_.chosen == "evidence unit+wide, strangers"
    assert {m.way.split(",")[0] for m in given.report_.compared} == {"evidence unit+wide"}
    assert given.match_model.settings()["rarity"] == ASIDE
    assert given.score(new.x, new.y) > 0.8
    silent = Retrofit(branches="unit+wide", ridge=1.0, strangers=False, steps=20).fit(train.x, train.y, train.poor)
    assert silent.embed(new.x).dim == given.embed(new.x).dim - 1
    chosen = Retrofit(steps=20).fit(train.x, train.y, train.poor)
    again = Retrofit(steps=20, **chosen.report_.settings).fit(train.x, train.y, train.poor)
    np.testing.assert_allclose(again.match_proba(new.x, new.x), chosen.match_proba(new.x, new.x), atol=1e-5)
