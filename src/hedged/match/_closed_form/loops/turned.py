"""Slopes of the closed form in covariances that are 0 in the eigenbasis: what turns an ellipse."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedged._compiled import compiled
from hedged.match._closed_form.loops.gaussians import STRIP, exp

Floats = NDArray[np.floating[Any]]
_QUICK: Any = {"contract", "nsz", "arcp", "reassoc"}


@compiled(_QUICK)
def _exponents(squares: Floats, spreads: Floats, c: float, start: int, exponent: Floats, volume: Floats) -> None:
    """−c Σ_d m_d² / (1 + 2c s_d) and Π_d (1 + 2c s_d) of pairs, `(n,)`."""
    exponent[:], volume[:] = 0, 1
    for d in range(len(squares)):
        square, spread = squares[d, start : start + len(exponent)], spreads[d, start : start + len(exponent)]
        for i in range(len(exponent)):
            stretch = 1 + 2 * c * spread[i]
            exponent[i] -= c * square[i] / stretch
            volume[i] *= stretch


@compiled(_QUICK)
def _add(one: Floats, other: Floats, c: float, w: float, power: Floats, volume: Floats, out: Floats) -> None:
    """Add 2 w c² E / (t_i t_k)."""
    for i in range(len(out)):
        out[i] += 2 * w * c * c * power[i] / (np.sqrt(volume[i]) * (1 + 2 * c * one[i]) * (1 + 2 * c * other[i]))


@compiled()
def beside(
    first: int,
    last: int,
    squares: Floats,
    spreads: Floats,
    widths: Floats,
    weights: Floats,
    one: int,
    other: int,
    out: Floats,
) -> None:
    """Write Σ_j w_j 2c_j² E_j / (t_i t_k), `(P,)`, for axes i and k, given m² and s as `(D, P)`, strip by strip."""
    for start in range(first * STRIP, min(last * STRIP, len(out)), STRIP):
        total = out[start : start + STRIP]
        exponent, volume = np.empty_like(total), np.empty_like(total)
        at = slice(start, start + len(total))
        total[:] = 0
        for j in range(len(widths)):
            _exponents(squares, spreads, widths[j], start, exponent, volume)
            exp(exponent)
            _add(spreads[one, at], spreads[other, at], widths[j], weights[j], exponent, volume, total)
