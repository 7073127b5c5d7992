"""Fit the Gaussian expansion of the match curve and write src/hedged/match/_closed_form/expansion.json.

    python tools/fit_expansion.py        (about a minute; the committed file is its output)

For each knot b_k we look for weights θ_k such that g_k(u) = Σ_j θ_kj exp(−c_j u²) follows a target G_k(u), where the
targets are the cubic B-spline coefficients of b ↦ σ(b − u); so Σ_k B_k(b) G_k(u) is σ(b − u) to within 3e-5. Each fit
is a linear programme: the smallest sup error for which g_k never rises with u; then, allowed a little more error, the
smallest Σ|θ|, which keeps the terms few and the rounding small. B-splines are non-negative, so a curve between two
knots, being a positive combination of decreasing curves, does not rise either. See docs/closed-form.md.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.special import expit

Array = NDArray[np.float64]

FIRST, LAST, SPACING = -6.0, 12.0, 0.5
TERMS = 24
LARGEST_SUM = 5000.0  # of |θ|: float64 then loses 1e-12
SWEEPS = 6
ENOUGH = 1.2e-4  # sup error below which fewer terms are worth more than accuracy
OUTPUT = Path(__file__).parents[1] / "src" / "hedged" / "match" / "_closed_form" / "expansion.json"


def widths() -> Array:
    """c_j: dense where a sharp knee (large b) needs them, then sparse up to the cusp at u = 0 (small b)."""
    j = np.arange(TERMS) / (TERMS - 1)
    low, step, top = -1.75, 0.1, 4.5
    span = step * (TERMS - 1)
    exponents: Array = low + span * j + (top - low - span) * j**6
    return 10.0**exponents


def spline_coefficient(b: float, u: Array) -> Array:
    """G_k(u): the cubic B-spline prefilter of b ↦ σ(b − u) at knot b, Σ_m √3 (√3 − 2)^|m| σ(b + m h − u)."""
    m = np.arange(-40, 41)
    taps = np.sqrt(3.0) * (np.sqrt(3.0) - 2.0) ** np.abs(m)
    coefficient: Array = expit(b + SPACING * m[None, :] - u[:, None]) @ taps
    return coefficient


def distances(b: float) -> Array:
    """Where the constraints are imposed: fine near the cusp and the knee, coarse in the tail."""
    knee = max(b, 0.0)
    near, far = (80, 240) if b < 8.5 else (160, 900)  # the sharpest knees tempt a fit to rise between two points
    parts = [
        np.zeros(1),
        np.geomspace(1e-3, 1, near),
        np.linspace(1, knee + 14, far),
        np.geomspace(knee + 14, 80, 60),
    ]
    return np.unique(np.concatenate(parts))


def fit(b: float, c: Array, price: Array) -> Array:
    """θ_k for the knot at b; `price` is what a unit of each |θ_kj| costs."""
    u = distances(b)
    gaussians = np.exp(-np.outer(u**2, c))
    slopes = gaussians * c
    slopes /= slopes.max(axis=1, keepdims=True)
    target = spline_coefficient(b, u)
    scale = min(1.0, float(target[0]))  # the curve of a very negative b is small: fit it relative to its own height
    error = np.full((len(u), 1), scale)
    none = np.zeros((len(u), 1))
    rows = np.vstack(
        [
            np.hstack([gaussians, -gaussians, -error]),
            np.hstack([-gaussians, gaussians, -error]),
            np.hstack([-slopes, slopes, none]),
            np.hstack([np.ones(2 * TERMS), [0.0]])[None],
        ]
    )
    limits = np.concatenate([target, -target, np.zeros(len(u)), [LARGEST_SUM]])
    height = np.hstack([np.ones(TERMS), -np.ones(TERMS), [0.0]])[None]

    def solve(cost: Array, most: float | None) -> Array:
        bounds = [(0.0, None)] * TERMS + [(0.0, 0.0)] + [(0.0, None)] * (TERMS - 1) + [(0.0, most)]
        found = linprog(cost, A_ub=rows, b_ub=limits, A_eq=height, b_eq=target[:1], bounds=bounds)
        if not found.success:
            raise SystemExit(f"no fit at b = {b}: {found.message}")
        solution: Array = np.asarray(found.x)
        return solution

    least = solve(np.append(np.zeros(2 * TERMS), 1.0), None)[-1]
    allowed = max(1.05 * float(least), ENOUGH)
    x = solve(np.concatenate([price, price, [0.0]]), allowed)
    weights: Array = x[:TERMS] - x[TERMS : 2 * TERMS]
    weights[np.abs(weights) < 1e-12] = 0.0
    weights[0] = max(weights[0], 0.0)  # the widest term, which is the last to fall: the solver may leave it at −1e-8
    return weights


def share_terms(table: Array) -> Array:
    """Prices that make neighbouring knots choose the same terms: a term is cheap where its neighbours use it."""
    padded = np.pad(np.abs(table), ((2, 2), (0, 0)), mode="edge")
    usage = np.mean([padded[i : i + len(table)] for i in range(5)], axis=0)
    prices: Array = 1.0 / (usage / usage.sum(axis=1, keepdims=True) + 1e-3)
    return prices


def main() -> None:
    c = widths()
    knots = np.arange(FIRST - SPACING, LAST + SPACING + 1e-9, SPACING)
    table = np.zeros((len(knots), TERMS))
    prices = np.ones_like(table)
    for sweep in range(1, SWEEPS + 1):
        table = np.array([fit(float(b), c, price) for b, price in zip(knots, prices, strict=True)])
        prices = share_terms(table)
        used = [np.count_nonzero(table[k : k + 4].any(axis=0)) for k in range(len(knots) - 3)]
        print(f"sweep {sweep}: {np.mean(used):.1f} terms at a time, {max(used)} at most")
    content = {
        "made by": "tools/fit_expansion.py",
        "first": FIRST,
        "last": LAST,
        "spacing": SPACING,
        "widths": c.tolist(),
        "weights": table.tolist(),
    }
    OUTPUT.write_text(json.dumps(content).replace("], [", "],\n[") + "\n")


if __name__ == "__main__":
    main()
