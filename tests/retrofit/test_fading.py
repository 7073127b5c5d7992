"""Beyond the vectors that taught, evidence fades: the formula, what it leaves alone, and what strange inputs get."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from retrofit.people import people

from hedged.distributions import Gaussian
from hedged.match import Evidence
from hedged.models.evidence.front import NEVER_NEAR, Front
from hedged.models.evidence.head import EvidenceHead, faded
from hedged.retrofit import Retrofit

variances = st.floats(0.01, 0.99)


@given(st.floats(-3, 3), variances, st.floats(0, 20))
def test_evidence_falls_and_the_observation_stays(observed: float, variance: float, by: float) -> None:
    """N(μ, σ²) says that a latent identity from N(0, 1) was observed at o with precision λ: μ = λo/(1 + λ)."""
    precision = 1 / variance - 1
    z = Gaussian(torch.tensor([[observed * (1 - variance)]]), torch.tensor([[variance]])).to(torch.float64)
    left = precision * np.exp(-by)
    weaker = faded(z, torch.tensor([by], dtype=torch.float64))
    np.testing.assert_allclose(weaker.variance.item(), 1 / (1 + left), rtol=1e-5)
    np.testing.assert_allclose(weaker.mean.item(), observed * left / (1 + left), rtol=1e-4, atol=1e-12)


def test_what_has_faded_altogether_says_nothing() -> None:
    z = Gaussian(torch.tensor([[0.7, -0.6]]), torch.tensor([[0.3, 0.4]]))
    nothing = faded(z, torch.tensor([60.0]))
    assert Evidence().log_factor(nothing, z).abs().item() < 1e-6


def test_a_front_that_knows_no_vectors_finds_nothing_strange() -> None:
    front = Front(4, 4, unit=True)
    _, signs = front(torch.randn(50, 4, generator=torch.Generator().manual_seed(0)))
    assert (front.strangeness(signs) == 0).all()


def test_inputs_that_collapse_far_from_all_that_taught_do_not_match() -> None:
    """Whatever ruins inputs often makes them alike: blurred photos of anybody are alike, and unlike any sharp one."""
    train, new = people(80), people(60, seed=1)
    head = Retrofit(steps=50).fit(train.x, train.y)
    made = head.embedder_.head
    assert isinstance(made, EvidenceHead)
    front = made.front
    away = (front.basis[:, -1] * front.scale).numpy()
    ruined = (front.mean.numpy() + 0.3 * (new.x - front.mean.numpy()) + 10 * away).astype(np.float32)
    assert (front.strangeness(front(torch.from_numpy(ruined))[1]) > 1).all()
    assert (front.strangeness(front(torch.from_numpy(new.x))[1]) > 1).float().mean() < 0.1
    others = new.y[:, None] != new.y
    assert np.median(head.match_proba(ruined, ruined)[others]) < 0.5
    front.least.fill_(NEVER_NEAR)
    assert np.median(head.match_proba(ruined, ruined)[others]) > 0.75, "the rule is not needed here: test it elsewhere"
