"""Slow and obvious oracles of the match probability: float64 quadrature and explicit loops.

Every quadrature is first the *law of the distance*: nodes r and weights w with E[f(‖δ‖)] ≈ Σ w f(r), for
δ ~ N(m, diag s). Nothing here shares a formula with hedged: no sum of Gaussians, no Jensen bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from scipy.stats import multivariate_normal, ncx2
from torch import Tensor

from hedged.distributions import Distribution
from hedged.match import MatchCurve

Array = NDArray[np.float64]
REACH = 9.0  # standard deviations that matter: the rest is below 1e-18


class DistanceLaw(NamedTuple):
    """Nodes r and weights w: E[f(r)] ≈ Σ w f(r)."""

    r: Array
    w: Array

    def mean(self, f: Callable[[Array], Array]) -> float:
        return float(self.w @ f(self.r))


def match_probability(law: DistanceLaw, a: float, b: float) -> float:
    """E[σ(b − a r)]."""
    return law.mean(lambda r: expit(b - a * r))


def parameters(curve: MatchCurve) -> tuple[float, float]:
    """The a and b a curve really has, after rounding to its dtype."""
    return curve.scale.item(), curve.bias.item()


# ---- laws of the distance -------------------------------------------------------------------------------------------


def anisotropic(m: ArrayLike, s: ArrayLike, sharpness: float, resolution: int = 1) -> DistanceLaw:
    """‖δ‖ for δ ~ N(m, diag s) in D ≤ 3, in polar coordinates around δ = 0: the cusp of the curve is an end point.

    `sharpness` is the a of the curve to be integrated: panels are no wider than it needs.
    """
    mean, variance = np.asarray(m, dtype=np.float64), np.asarray(s, dtype=np.float64)
    middle = float(np.linalg.norm(mean))
    if not variance.any():
        return DistanceLaw(np.array([middle]), np.ones(1))
    width = REACH * float(np.sqrt(variance.max()))
    r, radial = _radii(middle - width, middle + width, sharpness, 20 * resolution)
    directions, angular = _sphere(len(mean), resolution)
    log_density = sum(
        -0.5 * ((np.multiply.outer(r, directions[:, d]) - mean[d]) ** 2 / variance[d] + np.log(2 * np.pi * variance[d]))
        for d in range(len(mean))
    )
    return DistanceLaw(r, radial * r ** (len(mean) - 1) * (np.exp(log_density) @ angular))


def correlated(m: ArrayLike, covariance: ArrayLike, sharpness: float, resolution: int = 1) -> DistanceLaw:
    """‖δ‖ for δ ~ N(m, S) in D ≤ 3 of any covariance S, in the same coordinates."""
    mean, spread = np.asarray(m, dtype=np.float64), np.asarray(covariance, dtype=np.float64)
    middle, width = float(np.linalg.norm(mean)), REACH * float(np.sqrt(np.trace(spread)))
    r, radial = _radii(middle - width, middle + width, sharpness, 20 * resolution)
    directions, angular = _sphere(len(mean), resolution)
    density = multivariate_normal(mean, spread).pdf(r[:, None, None] * directions)
    return DistanceLaw(r, radial * r ** (len(mean) - 1) * (density @ angular))


def isotropic(distance: float, variance: float, dim: int, sharpness: float, resolution: int = 1) -> DistanceLaw:
    """‖δ‖ for ‖m‖ = `distance` and s = `variance` in every one of D dimensions: r²/s ~ noncentral χ²(D, ‖m‖²/s)."""
    sd = float(np.sqrt(variance))
    middle = float(np.hypot(distance, sd * np.sqrt(dim)))
    r, w = _radii(middle - REACH * sd, middle + REACH * sd, sharpness, 60 * resolution)
    x = (r / sd) ** 2
    return DistanceLaw(r, w * 2 * r / variance * np.asarray(ncx2.pdf(x, dim, _normal((distance / sd) ** 2))))


def _radii(low: float, high: float, sharpness: float, panels: int) -> tuple[Array, Array]:
    """Gauss–Legendre panels on [max(low, 0), high], each at most 2 units of a·r wide, up to 2000 of them."""
    low = max(low, 0.0)
    edges = np.linspace(low, high, max(panels, int(min((high - low) * sharpness / 2, 2000))) + 1)
    x, w = np.polynomial.legendre.leggauss(12)
    half = np.diff(edges) / 2
    nodes = (edges[:-1] + half)[:, None] + half[:, None] * x
    return nodes.ravel(), (half[:, None] * w).ravel()


def _sphere(dim: int, resolution: int) -> tuple[Array, Array]:
    """Directions, `(n, D)`, and weights that integrate over the unit sphere of ℝᴰ, D ≤ 3."""
    if dim == 1:
        return np.array([[1.0], [-1.0]]), np.ones(2)
    count = (192 if dim == 2 else 128) * resolution
    turn = 2 * np.pi * np.arange(count) / count  # the trapezoid rule is spectral on a circle
    circle = np.stack([np.cos(turn), np.sin(turn)], axis=-1)
    if dim == 2:
        return circle, np.full(count, 2 * np.pi / count)
    height, weight = np.polynomial.legendre.leggauss(count // 2)
    ring = np.sqrt(1 - height**2)
    directions = np.concatenate(
        [ring[:, None, None] * circle, np.broadcast_to(height[:, None, None], (len(height), count, 1))], axis=-1
    )
    return directions.reshape(-1, 3), np.repeat(weight * 2 * np.pi / count, count)


# ---- match probabilities --------------------------------------------------------------------------------------------


def exact_match(z1: Distribution, z2: Distribution, a: float, b: float, resolution: int = 1) -> float:
    """p(m | x₁, x₂) of two single embeddings in D ≤ 3: the mean of the quadratures over all pairs of components."""
    (means1, variances1), (means2, variances2) = z1.detach().parts(), z2.detach().parts()
    laws = [
        anisotropic((means1[i] - means2[j]).numpy(), (variances1[i] + variances2[j]).numpy(), a, resolution)
        for i, j in product(range(len(means1)), range(len(means2)))
    ]
    return float(np.mean([match_probability(law, a, b) for law in laws]))


def looped_monte_carlo(first: Tensor, second: Tensor, a: float, b: float) -> float:
    """K⁻² Σ σ(b − a‖z₁ − z₂‖) over all pairs of samples `(K, D)`, one pair at a time."""
    total = 0.0
    for z1, z2 in product(first.tolist(), second.tolist()):
        total += 1 / (1 + math.exp(a * math.dist(z1, z2) - b))
    return total / (len(first) * len(second))


def _normal(noncentrality: float) -> float:
    """Zero in the place of a subnormal number, of which SciPy makes NaN."""
    return noncentrality if noncentrality >= np.finfo(float).tiny else 0.0
