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
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable

from hedged.errors import ValueRangeError

Array = NDArray[Any]
ROUNDING = 5e-5  # what arithmetic may add to the error; `arithmetic_dtype` keeps the promise


class Expansion(NamedTuple):
    """The terms at one b: `widths` c_j and `weights` w_j(b), both `(J,)` in float64, differentiable in b."""

    widths: Tensor
    weights: Tensor


class _Table(NamedTuple):
    first: float
    last: float
    spacing: float
    widths: Array  # (J,)
    weights: Array  # (knots, J)


@cache
def _table() -> _Table:
    content = json.loads(resources.files(__package__).joinpath("expansion.json").read_text())
    widths, weights = np.array(content["widths"]), np.array(content["weights"])
    return _Table(content["first"], content["last"], content["spacing"], widths, weights)


def expand(bias: Tensor) -> Expansion:
    """The terms for a scalar b; those of weight zero at all four knots around it are left out.

    Below the table the curve keeps its shape and shrinks like σ(b); above it, it is stretched in u so that the knee
    stays at u = b. Both are honest only because `certified_error` looks at the result.

    >>> terms = expand(torch.tensor(3.0))
    >>> round(terms.weights.sum().item(), 6), round(torch.tensor(3.0).sigmoid().item(), 6)
    (0.952574, 0.952574)
    """
    if not math.isfinite(bias.item()):
        raise ValueRangeError(f"the bias b of a match curve is finite, got {bias.item()}")
    widths, weights = _Expand.apply(bias)  # type: ignore[no-untyped-call]
    return Expansion(widths, weights)


class _Expand(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, bias: Tensor) -> tuple[Tensor, ...]:
        terms = [torch.from_numpy(x.copy()) for x in terms_at(bias.item())]
        ctx.save_for_backward(bias, *terms[2:])
        return tuple(terms[:2])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        bias, *slopes = ctx.saved_tensors
        return torch.stack([grad @ slope for grad, slope in zip(grads, slopes, strict=True)]).sum().to(bias)


class Terms(NamedTuple):
    """The terms at one b and their slopes in b, `(J,)` each."""

    widths: Array
    weights: Array
    to_widths: Array
    to_weights: Array


@lru_cache(64)
def terms_at(b: float) -> Terms:
    """What `expand` gives, as plain numbers with their slopes, for every training step. Nobody changes them."""
    table = _table()
    inside = min(max(b, table.first), table.last)
    used, raw, rise = _spline(inside)
    total, p = raw.sum(), _sigmoid(b)
    weights = raw * (p / total)
    to_weights = weights * (1 - p)
    if b == inside:
        to_weights += (rise - raw * (rise.sum() / total)) * (p / total)
    beyond = max(b, table.last)
    widths = table.widths[used] * (table.last / beyond) ** 2
    return Terms(widths, weights, widths * (-2 / b if b > table.last else 0.0), to_weights)


def _sigmoid(b: float) -> float:
    return 1 / (1 + math.exp(-b)) if b > -700 else math.exp(b)


def is_tabulated(bias: float) -> bool:
    """Whether only the weights of the terms depend on b here; above the table their widths do too."""
    return bias <= _table().last


def _spline(b: float) -> tuple[Array, Array, Array]:
    """Which terms have a weight at b, their cubic B-splines and the slopes of these, `(J,)`."""
    table = _table()
    position = (b - table.first) / table.spacing
    row = min(int(position), len(table.weights) - 4)
    x = position - row
    y = 1 - x
    basis = np.array(
        [
            [y**3, 3 * x**3 - 6 * x**2 + 4, 3 * y**3 - 6 * y**2 + 4, x**3],
            [-3 * y**2, 9 * x**2 - 12 * x, 12 * y - 9 * y**2, 3 * x**2],
        ]
    )
    used, rows = _knots(row)
    value, slope = basis / 6 @ rows
    return used, value, slope / table.spacing


@cache
def _knots(row: int) -> tuple[Array, Array]:
    """Which terms have a weight at any of four knots, and their weights there, `(4, J)`."""
    rows = _table().weights[row : row + 4]
    used: Array = rows.any(0)  # type: ignore[assignment]
    return used, rows[:, used]


def arithmetic_dtype(terms: Expansion | Terms, dim: int, dtype: torch.dtype) -> torch.dtype:
    """The cheapest dtype, no narrower than float32 or `dtype`, in which rounding stays below `ROUNDING`.

    Each of the J products has a relative error of at most 2·D + 8 half-ulps: D divisions, sums and roots, and an
    exponential whose argument's relative error is damped, since x·exp(−x) ≤ 1/e; adding them up costs another 24. For
    sharp knees the weights alternate and grow into the thousands, which float32 cannot carry.
    """
    wide = torch.promote_types(dtype, torch.float32)
    loss = sum(map(abs, terms.weights.tolist())) * (2 * dim + 32) * torch.finfo(wide).eps / 2
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


def closed_form_error(bias: float, dtype: torch.dtype) -> float:
    """How far p in closed form may be from the exact integral: of the expansion, the arithmetic and the rounding.

    Args:
        bias: b.
        dtype: The dtype of the result.
    """
    return certified_error(bias) + ROUNDING + torch.finfo(dtype).eps


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
