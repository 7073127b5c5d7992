"""Branches blended into one head: what a blend says is what the head says, and it is the best of its kind."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hedged.distributions import Gaussian
from hedged.match import Evidence
from hedged.models.evidence.front import SIGNS, Front
from hedged.retrofit.blend import blended, fit_blend
from hedged.retrofit.select import Pairs, held_out_pairs
from hedged.retrofit.simple import COSINE_SLOPE, centred_cosine

Y = np.repeat(np.arange(30), 4)


def pairs_of(z: Gaussian) -> Pairs:
    return held_out_pairs([(z, torch.zeros(len(z), SIGNS))], Y)


def branch(dim: int, groups: int, seed: int) -> Gaussian:
    """Posteriors in which the evidence differs by input and by group."""
    rng = np.random.default_rng(seed)
    evidence = np.exp(rng.normal(size=(len(Y), groups))).repeat(dim // groups, 1)
    truth = rng.normal(size=(Y.max() + 1, dim))[Y]
    seen = truth + rng.normal(size=truth.shape) / np.sqrt(evidence)
    return Gaussian(torch.tensor(seen * evidence / (1 + evidence)), torch.tensor(1 / (1 + evidence)))


def scaled(z: Gaussian, gain: float) -> Gaussian:
    return Gaussian(z.mean * gain**0.5, z.variance)


def joined(zs: list[Gaussian]) -> Gaussian:
    return Gaussian(torch.cat([z.mean for z in zs], 1), torch.cat([z.variance for z in zs], 1))


def cost(pairs: Pairs, log_odds: float, temper: float) -> float:
    signed = np.where(pairs.matches, -1, 1) * (log_odds + temper * pairs.factors)
    return float(pairs.weights @ np.logaddexp(0, signed))


def test_a_blend_of_pairs_is_that_of_embeddings_with_scaled_means() -> None:
    zs, gains = [branch(6, 2, 0), branch(4, 1, 1)], (0.3, 2.5)
    found = blended([pairs_of(z) for z in zs], gains)
    whole = pairs_of(joined([scaled(z, g) for z, g in zip(zs, gains, strict=True)]))
    for name in ("factors", "shared", "own1", "own2"):
        np.testing.assert_allclose(getattr(found, name), getattr(whole, name), rtol=1e-6, atol=1e-6)


def test_what_means_have_no_say_in_is_the_factor_of_means_at_zero() -> None:
    z = branch(6, 3, 0)
    pairs = pairs_of(z)
    silent = pairs_of(Gaussian(torch.zeros_like(z.mean), z.variance))
    np.testing.assert_allclose(pairs.shared, silent.factors, rtol=1e-9, atol=1e-9)


def test_honest_posteriors_need_no_blending() -> None:
    parts = [pairs_of(branch(12, 2, seed)) for seed in (0, 1)]
    blend = fit_blend(parts)
    assert blend.temper * np.array(blend.gains) == pytest.approx([1, 1], abs=0.35)
    assert abs(blend.log_odds) < 0.6


@pytest.mark.parametrize("gains", [(1.0, 1.0), (0.5, 1.0), (1.0, 2.0)])
def test_no_other_gains_fit_held_out_pairs_better(gains: tuple[float, float]) -> None:
    noise = branch(4, 1, 2)
    noise = Gaussian(noise.mean[torch.randperm(len(Y), generator=torch.Generator().manual_seed(0))], noise.variance)
    parts = [pairs_of(branch(8, 1, 0)), pairs_of(noise)]
    best = fit_blend(parts)
    assert best.gains[1] < 0.5 * best.gains[0]  # the branch that knows nothing is hardly heard
    ours = cost(blended(parts, best.gains), best.log_odds, best.temper)
    others = blended(parts, gains)
    assert all(ours <= cost(others, c, k) + 1e-3 for c in np.linspace(-2, 2, 9) for k in np.geomspace(0.05, 2, 9))


def test_the_cosine_branch_is_a_straight_line_in_the_cosine_of_centred_vectors() -> None:
    x = np.random.default_rng(0).normal(size=(50, 7)) * np.arange(1, 8) + 3
    front = Front.fitted(x, 7, unit=True)
    with torch.no_grad():
        u, length = front(torch.from_numpy(x).float())
        z = centred_cosine(front, u.double().numpy(), 7)(u, length)
        factors = Evidence().matrix(z, z).double().numpy()
    centred = x - x.mean(0)
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    cosine = centred @ centred.T
    np.testing.assert_allclose(factors - factors[0, 1], COSINE_SLOPE * (cosine - cosine[0, 1]), atol=1e-3)
