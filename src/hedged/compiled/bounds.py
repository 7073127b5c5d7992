"""Bounds on E[σ(b − ‖v‖)] for v ~ N(m, diag s), from above and from below, without an exponential of the sum.

With r = ‖m‖ and τ² = Σ_d m_d² s_d / r², the length of v is at least its part along m, which is X ~ N(r, τ²), and
σ(b − x) ≤ exp(λ(b − x)) for any λ in [0, 1]. Hence E[σ(b − ‖v‖)] ≤ exp(λ(b − r) + λ²τ²/2), least at
λ = min(1, (r − b)/τ²).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedged.compiled import compiled

Floats = NDArray[np.floating[Any]]


@compiled({"contract", "nsz", "reassoc", "arcp"})
def bound(mean: Floats, variance: Floats, means: Floats, variances: Floats, b: float, out: Floats) -> None:
    """Raise `out` to the log of the bound for one Gaussian against a strip of them, `(D, n)`."""
    size = means.shape[1]
    length, along = np.zeros(size, np.float32), np.zeros(size, np.float32)
    for d in range(len(mean)):
        mu, var, column, spread = mean[d], variance[d], means[d], variances[d]
        for i in range(size):
            m = mu - column[i]
            square = m * m
            length[i] += square
            along[i] += square * (var + spread[i])
    for i in range(size):
        square = max(length[i], np.float32(1e-12))
        gap = max(np.sqrt(square) - np.float32(b), np.float32(0))
        tau = max(along[i] / square, np.float32(1e-12))
        value = np.float32(0.5) * tau - gap if tau <= gap else np.float32(-0.5) * gap * gap / tau
        out[i] = max(out[i], value)


@compiled()
def log_floor(reach: float, b: float, touch: float) -> tuple[float, float, float]:
    """Jensen's bound, as `MatchCurve.log_floor`, and its slopes in the reach and in b."""
    if reach < touch:
        share = reach / touch
        near, far = 1 / (1 + math.exp(-b)), 1 / (1 + math.exp(touch - b))
        chord = near * (1 - share) + far * share
        rise = near * (1 - near) * (1 - share) + far * (1 - far) * share
        return math.log(chord), (far - near) / touch / chord, rise / chord
    u = b - reach
    rest = 1 / (1 + math.exp(u)) if u < 0 else math.exp(-u) / (1 + math.exp(-u))  # 1 − σ(u)
    value = u - math.log1p(math.exp(u)) if u < 0 else -math.log1p(math.exp(-u))
    return value, -rest, rest
