"""The uncertainty: how often pairs with an input are decided wrongly, by what it says of itself and by its quality."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

from hedged.distributions import Gaussian
from hedged.match import Evidence
from hedged.models.evidence.asides import beside
from hedged.models.evidence.front import NEIGHBOURS, Front, nearness
from hedged.retrofit.calibrate import Line
from hedged.retrofit.decline import decline
from hedged.retrofit.doubt import fit_doubt
from hedged.retrofit.select import Pairs


def pairs(count: int, seed: int) -> Pairs:
    """Pairs that are decided rightly with log-odds of 0.05 · own + sign 1 − 2 · sign 2 − 1, of either input."""
    rng = np.random.default_rng(seed)
    own, signs = 40 + 20 * rng.normal(size=(2, count)), rng.normal(size=(2, count, 3)) * [0.3, 0.5, 1e-9]
    chance = 1 / (1 + np.exp(-(0.05 * own + signs @ [1.0, -2.0, 0.0] - 1).mean(0)))
    matches = rng.random(count) < 0.5
    is_right = rng.random(count) < chance
    factors = np.where(matches == is_right, 1.0, -1.0)
    shared = np.zeros(count)
    is_poor = rng.random(count) < 0.5
    return Pairs(factors, shared, matches, is_poor, own[0], own[1], shared, shared, signs[0], signs[1])


def test_the_doubt_is_a_logistic_regression_of_what_is_decided_rightly() -> None:
    found = pairs(20_000, seed=0)
    line, clarity = fit_doubt(found, Line(0.0, 0.1))
    inputs = np.column_stack([np.r_[found.own1, found.own2], np.concatenate([found.signs1, found.signs2])[:, :2]])
    is_right = np.tile((found.factors >= 0) == found.matches, 2)
    weights = np.tile(found.weights, 2) / found.weights.mean()
    oracle = LogisticRegression(C=1e9, max_iter=1000).fit(inputs, is_right, sample_weight=weights)
    np.testing.assert_allclose([line.temper, *clarity[:2]], oracle.coef_[0], rtol=0.03, atol=0.005)
    np.testing.assert_allclose(line.log_odds, oracle.intercept_[0], atol=0.05)
    assert clarity[2] == 0.0  # a sign that never varies says nothing


def test_few_vectors_of_many_features_leave_no_axis_on_which_they_do_not_vary() -> None:
    """On such an axis a new vector would be told as if it were worse, or better, without bounds."""
    rng = np.random.default_rng(0)
    x, new = (rng.normal(size=(40, 100)).astype(np.float32) for _ in range(2))
    worse = x + 0.3
    front = Front.fitted(np.concatenate([x, worse]), 400, unit=True)
    assert front.axes < 79
    (u, _), (poor, _), (of_new, _) = (front(torch.from_numpy(one)) for one in (x, worse, new))
    e = decline(u.numpy(), poor.numpy())
    assert np.abs(of_new.numpy() @ e).max() < 10 * np.abs(np.concatenate([u, poor]) @ e).max()


def test_nearness_is_the_mean_cosine_of_the_five_nearest() -> None:
    rng = np.random.default_rng(0)
    u, known = rng.normal(size=(7, 4)), rng.normal(size=(30, 4))
    cosines = (u / np.linalg.norm(u, axis=1)[:, None]) @ (known / np.linalg.norm(known, axis=1)[:, None]).T
    expected = np.sort(cosines, axis=1)[:, -NEIGHBOURS:].mean(1)
    np.testing.assert_allclose(nearness(torch.tensor(u), torch.tensor(known)).numpy(), expected)
    assert nearness(torch.zeros(0, 4), torch.tensor(known).float()).shape == (0,)


def test_a_front_that_knows_nobody_has_no_nearness() -> None:
    x = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)
    front = Front.fitted(x, axes=4, unit=True)
    assert (front(torch.from_numpy(x))[1][:, 2] == 0).all()


def test_clarity_moves_the_uncertainty_and_no_match() -> None:
    z = Gaussian(torch.randn(5, 4, generator=torch.Generator().manual_seed(0)) / 2, torch.full((5, 4), 0.3))
    said = torch.tensor([-2.0, -1.0, 0.0, 1.0, 2.0])
    plain, model = Evidence(0.2, 0.7, -1.0, 0.1), Evidence(0.2, 0.7, -1.0, 0.1, clarity=100.0)
    clear = beside(z, said)
    torch.testing.assert_close(model.matrix(clear, clear), plain.matrix(z, z))
    torch.testing.assert_close(model.logit(clear, clear), plain.logit(z, z))
    torch.testing.assert_close(model.self_logit(clear), plain.self_logit(z) + said)
    fused = model.fuse(clear, torch.tensor([0, 0, 1, 1, 1]))
    torch.testing.assert_close(fused.mean[:, -1], torch.tensor([-0.015, 0.01]))
    again = Evidence(**model.settings())
    torch.testing.assert_close(again.self_logit(clear), model.self_logit(clear))
