"""σ(b − u) ≈ Σ_j w_j(b) exp(−c_j u²): the match curve as a sum of Gaussians, with a certified error.

The widths c_j are constants; the weights are a cubic B-spline in b whose coefficients `tools/fit_expansion.py` found by
linear programming and wrote to `expansion.json`. Three properties carry everything built on top:

* the sum does not rise with u (each coefficient row is a decreasing curve, and B-splines are non-negative); the fit
  imposes this on a fine grid of u, between whose points it holds to rounding for b ≤ 8 and to 1.2e-8 beyond;
* at u = 0 it equals σ(b), so it lies in (0, σ(b)];
* its distance from the curve is at most `certified_error(b)`, for all u ≥ 0, and therefore the error of the expected
  curve under any distribution of u is at most that too.
"""

from __future__ import annotations

import json
import math
from functools import cache, lru_cache
from importlib import resources
from typing import NamedTuple

import torch
from torch import Tensor

from hedged.errors import ValueRangeError

ROUNDING = 5e-5  # what arithmetic may add to the error; `arithmetic_dtype` keeps the promise


class Expansion(NamedTuple):
    """The terms at one b: `widths` c_j and `weights` w_j(b), both `(J,)` in float64, differentiable in b."""

    widths: Tensor
    weights: Tensor


class _Table(NamedTuple):
    first: float
    last: float
    spacing: float
    widths: Tensor  # (J,)
    weights: Tensor  # (knots, J)


@cache
def _table() -> _Table:
    content = json.loads(resources.files("hedged").joinpath("expansion.json").read_text())
    widths = torch.tensor(content["widths"], dtype=torch.float64)
    weights = torch.tensor(content["weights"], dtype=torch.float64)
    return _Table(content["first"], content["last"], content["spacing"], widths, weights)


def expand(bias: Tensor) -> Expansion:
    """The terms for a scalar b, those of weight zero left out.

    Below the table the curve keeps its shape and shrinks like σ(b); above it, it is stretched in u so that the knee
    stays at u = b. Both are honest only because `certified_error` looks at the result.

    >>> terms = expand(torch.tensor(3.0))
    >>> round(terms.weights.sum().item(), 6), round(torch.tensor(3.0).sigmoid().item(), 6)
    (0.952574, 0.952574)
    """
    if not torch.isfinite(bias):
        raise ValueRangeError(f"the bias b of a match curve is finite, got {bias.item()}")
    table = _table()
    b = bias.double().cpu()
    inside = b.clamp(table.first, table.last)
    basis, row = _cubic_basis((inside - table.first) / table.spacing)
    rows = table.weights[row : row + 4]
    used = rows.any(0)
    weights = basis @ rows[:, used]
    widths = table.widths[used]
    if b.item() > table.last:
        widths = widths * (table.last / b).square()
    return Expansion(widths, weights * (b.sigmoid() / weights.sum()))


def is_tabulated(bias: float) -> bool:
    """Whether only the weights of the terms depend on b here; above the table their widths do too."""
    return bias <= _table().last


def _cubic_basis(position: Tensor) -> tuple[Tensor, int]:
    """The four cubic B-splines that are non-zero at `position`, `(4,)`, and the row of the first."""
    row = int(min(position.detach().floor().item(), len(_table().weights) - 4))
    x = position - row
    y = 1 - x
    basis = torch.stack([y**3, 3 * x**3 - 6 * x**2 + 4, 3 * y**3 - 6 * y**2 + 4, x**3]) / 6
    return basis, row


def arithmetic_dtype(terms: Expansion, dim: int, dtype: torch.dtype) -> torch.dtype:
    """The cheapest dtype, no narrower than float32 or `dtype`, in which rounding stays below `ROUNDING`.

    Each of the J products has a relative error of at most 2·D + 8 half-ulps: D divisions, sums and roots, and an
    exponential whose argument's relative error is damped, since x·exp(−x) ≤ 1/e; adding them up costs another 24. For
    sharp knees the weights alternate and grow into the thousands, which float32 cannot carry.
    """
    wide = torch.promote_types(dtype, torch.float32)
    loss = float(terms.weights.detach().abs().sum()) * (2 * dim + 32) * torch.finfo(wide).eps / 2
    return wide if loss <= ROUNDING else torch.float64


@lru_cache(1024)
def certified_error(bias: float) -> float:
    """sup over u ≥ 0 of |σ(b − u) − Σ_j w_j exp(−c_j u²)|, bounded from above.

    On a grid the error e(u) is evaluated; between two neighbours a distance h apart it exceeds the larger of both ends
    by at most h²/8 · sup|e″|; beyond the last point both curves are below their values there.
    """
    with torch.no_grad():
        widths, weights = expand(torch.tensor(bias, dtype=torch.float64))
    u = _grid(bias, float(widths.min()), float(widths.max()))
    error = torch.zeros_like(u)
    bend = torch.full_like(u, 0.1)  # sup |σ″| = 1/(6√3) < 0.1
    tail = max(math.exp(min(bias - float(u[-1]), 0.0)), 1e-300)
    for c, w in zip(widths.tolist(), weights.tolist(), strict=True):
        v = c * u.square()
        error += w * torch.exp(-v)
        # |d²/du² exp(−c u²)| = 2c |2v − 1| exp(−v) is at most 2c, and falls for good once v ≥ 3/2.
        bend += abs(w) * 2 * c * torch.where(v < 1.5, 1.0, (2 * v - 1) * torch.exp(-v))
        tail += abs(w) * math.exp(-c * float(u[-1]) ** 2)
    error = (error - torch.sigmoid(bias - u)).abs()
    gaps = u.diff().square() / 8 * bend[:-1]
    return max(float((torch.maximum(error[:-1], error[1:]) + gaps).max()), tail)


def _grid(bias: float, least: float, greatest: float) -> Tensor:
    """Distances from 0 to where the widest Gaussian is gone, finest where the narrowest one bends."""
    knee, end = max(bias, 1.0), max(math.sqrt(40 / least), bias + 40)
    start = 1e-3 / math.sqrt(greatest)
    return torch.cat(
        [
            torch.zeros(1, dtype=torch.float64),
            torch.logspace(math.log10(start), 0, 20_000, dtype=torch.float64),
            torch.linspace(1, knee + 20, 20_001, dtype=torch.float64)[1:],
            torch.linspace(knee + 20, end + knee + 20, 10_001, dtype=torch.float64)[1:],
        ]
    )
