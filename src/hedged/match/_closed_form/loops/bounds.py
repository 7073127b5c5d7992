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

from hedged._compiled import compiled, inlined
from hedged.match._closed_form.loops.gaussians import exp
from hedged.match._closed_form.loops.limits import TINY_32, TINY_64, TOO_SMALL, PlainCurve

Floats = NDArray[np.floating[Any]]
STEEPEST = 0.0481126  # half of the greatest σ″
SLACK = 1e-3  # of a bound's logarithm, far more than its rounding


@inlined()
def too_small(itemsize: int) -> float:
    """Below this, a sum of terms in floats of this size has no logarithm worth taking."""
    return TOO_SMALL * (TINY_32 if itemsize == 4 else TINY_64)


@inlined({"contract", "nsz", "reassoc", "arcp"})
def log_chernoff(length: Any, along: Any, b: Any) -> Any:
    """The log of the bound above, from ‖m‖² and Σ_d m_d² s_d."""
    square = max(length, np.float32(1e-12))
    gap = max(np.sqrt(square) - b, np.float32(0))
    tau = max(along / square, np.float32(1e-12))
    return np.float32(0.5) * tau - gap if tau <= gap else np.float32(-0.5) * gap * gap / tau


@compiled({"contract", "nsz", "reassoc", "arcp"})
def bound(mean: Floats, variance: Floats, means: Floats, variances: Floats, start: int, b: float, out: Floats) -> None:
    """Raise `out` to the log of the bound for one Gaussian against as many of `(D, M)`, from `start` on."""
    size = len(out)
    length, along = np.zeros(size, np.float32), np.zeros(size, np.float32)
    for d in range(len(mean)):
        mu, var = mean[d], variance[d]
        column, spread = means[d, start : start + size], variances[d, start : start + size]
        for i in range(size):
            m = mu - column[i]
            square = m * m
            length[i] += square
            along[i] += square * (var + spread[i])
    for i in range(size):
        out[i] = max(out[i], log_chernoff(length[i], along[i], np.float32(b)))


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


@compiled({"contract", "nsz", "arcp", "afn"})
def floors(curve: PlainCurve, buffer: Floats, out: Floats) -> None:
    """Put Jensen's bound, the exponential of `log_floor`, in the place of the squared reach, `(n,)`.

    `curve` is in the dtype of the result.
    """
    b, touch, near, far = curve.bias, curve.chord_end, curve.at_zero, curve.at_chord_end
    slope = (far - near) / touch if touch > 0 else touch
    for i in range(len(out)):
        out[i] = np.sqrt(out[i])
        buffer[i] = -abs(out[i] - b)
    exp(buffer)
    for i in range(len(out)):
        tail = (buffer[i] if out[i] > b else np.float32(1)) / (np.float32(1) + buffer[i])
        out[i] = near + slope * out[i] if out[i] < touch else tail


@compiled()
def log_bound(
    r: float, s: float, variance: Floats, terms: Floats, curve: PlainCurve, error: float, volume: Floats
) -> float:
    """A bound from above on log p for means at least r apart, of one Gaussian and any other whose variances are ≤ s.

    It is the lesser of two. One is of the truth (as `bound` has it) and the error that p may have. The other is of
    p as it is worked out: the sum of its positive terms, or its floor, for a Gaussian as narrow as may be but for the
    exponents, where it is as wide as may be.
    """
    b, touch = curve.bias, curve.chord_end
    widest = s + variance.max()
    gap = max(r - b, 0.0)
    truth = 0.5 * widest - gap if widest <= gap else -0.5 * gap * gap / widest
    near = 1 / (1 + math.exp(r - b)) + STEEPEST * widest
    truth = math.log(min(math.exp(truth), near) + error)
    total = 0.0
    for j in range(terms.shape[1]):
        if terms[1, j] > 0:
            c = terms[0, j]
            total += terms[1, j] * volume[j] * math.exp(-c * r * r / (1 + 2 * c * widest))
    floor = log_floor(math.sqrt(r * r + variance.sum()), b, touch)[0]
    return min(truth, max(math.log(total) if total > 0 else -math.inf, floor)) + SLACK
