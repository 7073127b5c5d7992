"""What the compiled loops and their callers agree on: the curve as numbers, and where numbers are cut.

| path | pairs that are far apart |
|---|---|
| elementwise (`match_probability`, `match_logit`) | the closed form, or Jensen's bound where that is larger |
| matrix (`match_matrix`) | Jensen's bound alone, where p is certainly below `exp(MATRIX_FAR)` |
| batch loss (`HedgedLoss`) | no cost, if they do not match and p is certainly below `exp(LOSS_FAR)` |
| nearest, candidates (`best_matches`, search) | as elementwise; items that cannot be among the best are passed over |
"""

from __future__ import annotations

from typing import Any, NamedTuple

FARTHEST = 1e15  # distances and scales beyond are cut, so that their squares have gradients even in float32
TOO_SMALL = 1e12  # times the least normal number: below it, a sum of terms has no logarithm worth taking
MATRIX_FAR = -11.5  # just above log 10⁻⁵
LOSS_FAR = -16.0
TINY_32, TINY_64 = 1.1754944e-38, 2.2250738585072014e-308  # the least normal numbers


class PlainCurve(NamedTuple):
    """A match curve in its own units, σ(b − u), as numbers of one dtype."""

    bias: Any  # b
    chord_end: Any  # u*, up to which Jensen's bound is a chord
    at_zero: Any  # σ(b)
    at_chord_end: Any  # σ(b − u*)
