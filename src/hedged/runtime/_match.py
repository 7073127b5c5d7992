"""Log-odds of a match from means and variances, by the numbers of the exported match model; all in double precision."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import final

import numpy as np
from numpy.typing import NDArray

from hedged.runtime.embeddings import Floats, Parts

BLOCK = 2**21  # numbers held at a time, per intermediate result


class Match(ABC):
    """When two embeddings match: an exported match model."""

    @abstractmethod
    def log_odds(self, z1: Parts, z2: Parts) -> Floats:
        """log p/(1 − p), pair by pair, `(n,)`.

        Args:
            z1: n embeddings, or one that is compared with all others.
            z2: n embeddings, or one.
        """

    def matrix(self, z1: Parts, z2: Parts) -> Floats:
        """The log-odds of all pairs, `(n, m)`, in bounded memory.

        Args:
            z1: n embeddings.
            z2: m embeddings.
        """
        out = np.empty((len(z1.mean), len(z2.mean)))
        components, dim = z1.mean.shape[1] * z2.mean.shape[1], z1.mean.shape[2]
        columns = max(BLOCK // (components * dim), 1)
        for row in range(len(out)):
            one = Parts(*(x[row : row + 1] for x in z1))
            for left in range(0, out.shape[1], columns):
                across = slice(left, left + columns)
                out[row, across] = self.log_odds(one, Parts(*(x[across] for x in z2)))
        return out


@final
@dataclass(frozen=True, eq=False)
class Curve(Match):
    """p = Σ_j w_j Π_d (1 + 2c_j s_d)^(−1/2) exp(−c_j m_d² / (1 + 2c_j s_d)), with m = a (μ₁ − μ₂), s = a² (σ₁² + σ₂²).

    The mean over pairs of components, none below Jensen's bound, all at most σ(b). Points have log-odds of b − a‖m‖.

    Args:
        scale: a.
        bias: b.
        widths: c_j, `(J,)`.
        weights: w_j, `(J,)`.
        chord_end: where Jensen's bound turns from a chord to the curve itself.
    """

    scale: float
    bias: float
    widths: Floats
    weights: Floats
    chord_end: float

    def log_odds(self, z1: Parts, z2: Parts) -> Floats:
        squares = (self.scale * (z1.mean[:, :, None] - z2.mean[:, None])) ** 2  # (n, C, C, D)
        spreads = self.scale**2 * (z1.variance[:, :, None] + z2.variance[:, None])
        reach = np.sqrt((squares + spreads).sum(-1))
        if not spreads.any():
            return np.asarray(self.bias - reach[:, 0, 0])
        with np.errstate(over="ignore", divide="ignore"):  # a term that overflows its volume is zero, as it should be
            value = np.zeros(reach.shape)
            for c, w in zip(self.widths.tolist(), self.weights.tolist(), strict=True):
                stretch = 1 + 2 * c * spreads
                value += w * np.exp(-c * (squares / stretch).sum(-1)) / np.sqrt(stretch.prod(-1))
            log_p = np.maximum(np.log(np.maximum(value, 0)), self._log_floor(reach))
        log_p = np.minimum(_log_mean(log_p.reshape(len(log_p), -1)), _log_sigmoid(np.asarray(self.bias)))
        return np.asarray(log_p - np.log(-np.expm1(log_p)))

    def _log_floor(self, reach: Floats) -> Floats:
        """log of Jensen's bound at a·√E‖δ‖²."""
        curve = _log_sigmoid(self.bias - reach)
        if self.chord_end == 0:
            return curve
        first, last = (math.exp(float(_log_sigmoid(np.asarray(self.bias - u)))) for u in (0.0, self.chord_end))
        share = np.minimum(reach / self.chord_end, 1.0)
        return np.where(reach < self.chord_end, np.log(first * (1 - share) + last * share), curve)


@final
@dataclass(frozen=True)
class Evidence(Match):
    """c + κ L, L = ½ Σ_d [(σ₂²μ₁² + σ₁²μ₂² − (μ₁ − μ₂)²)/t − log t], t = σ₁² + (1 − σ₁²)σ₂².

    Of mixtures, e^L is the mean over pairs of components. With rarity, L > 0 becomes L + eL/(L + |e|), e = ρ(w₁ + w₂)
    and w the mean of the dimension after those of z; with clarity, one dimension more is none of z.

    Args:
        prior: c.
        temper: κ.
        rarity: ρ; 0: no dimension says how rare an input is.
        clarity: whether a last dimension says how clear an input is.
    """

    prior: float
    temper: float
    rarity: float
    clarity: bool

    def log_odds(self, z1: Parts, z2: Parts) -> Floats:
        (mean1, spread1), (mean2, spread2) = self._latent(z1), self._latent(z2)
        mean1, spread1, mean2, spread2 = mean1[:, :, None], spread1[:, :, None], mean2[:, None], spread2[:, None]
        t = spread1 + (1 - spread1) * spread2
        terms = (spread2 * mean1**2 + spread1 * mean2**2 - (mean1 - mean2) ** 2) / t - np.log(t)
        factor = _log_mean(0.5 * terms.sum(-1).reshape(len(terms), -1))
        return self._calibrated(factor, self._rare(z1) + self._rare(z2))

    def matrix(self, z1: Parts, z2: Parts) -> Floats:
        """By matrix products: dimensions next to each other that share a variance share t, and all else is bilinear."""
        if z1.mean.shape[1] > 1 or z2.mean.shape[1] > 1 or not len(z1.mean) or not len(z2.mean):
            return super().matrix(z1, z2)
        first, second = (Parts(*(x[:, 0] for x in self._latent(z))) for z in (z1, z2))
        groups = _shared(first.variance, second.variance)
        out = np.empty((len(first.mean), len(second.mean)))
        rare1, rare2 = self._rare(z1), self._rare(z2)
        rows = max(BLOCK // len(second.mean), 1)
        for top in range(0, len(out), rows):
            down = slice(top, top + rows)
            factor = sum((_group(Parts(*(x[down] for x in first)), second, group) for group in groups), np.float64(0))
            out[down] = self._calibrated(np.asarray(factor), rare1[down, None] + rare2)
        return out

    def _calibrated(self, factor: Floats, excess: Floats) -> Floats:
        if self.rarity:
            known = np.maximum(factor, 0)
            factor = factor + excess * known / (known + np.abs(excess) + np.finfo(np.float64).tiny)
        return np.asarray(self.prior + self.temper * factor)

    def _latent(self, z: Parts) -> Parts:
        dim = z.mean.shape[-1] - (self.rarity > 0) - self.clarity
        return Parts(*(x[..., :dim] for x in z))

    def _rare(self, z: Parts) -> Floats:
        """ρw, `(n,)`."""
        return np.asarray(self.rarity * z.mean[:, 0, -1 - self.clarity])


def _shared(*variances: Floats) -> list[slice]:
    """Dimensions next to each other that share a variance in every row, as slices."""
    differs = np.logical_or.reduce([(v[:, 1:] != v[:, :-1]).any(0) for v in variances])
    edges = [0, *(np.flatnonzero(differs) + 1).tolist(), variances[0].shape[1]]
    return [slice(*edge) for edge in pairwise(edges)]


def _group(z1: Parts, z2: Parts, group: slice) -> Floats:
    """What the dimensions of a group add to L, `(n, m)`."""
    mean1, mean2 = z1.mean[:, group], z2.mean[:, group]
    s1, s2 = z1.variance[:, group.start, None], z2.variance[:, group.start]
    squares1, squares2 = (mean1**2).sum(1)[:, None], (mean2**2).sum(1)
    t = s1 + (1 - s1) * s2
    bilinear = mean1 @ mean2.T - 0.5 * (1 - s2) * squares1 - 0.5 * (1 - s1) * squares2
    return np.asarray(bilinear / t - 0.5 * mean1.shape[1] * np.log(t))


def _log_mean(logs: Floats) -> Floats:
    """log of the mean of exponentials over the last axis."""
    most = logs.max(-1, keepdims=True)
    return np.asarray(most[..., 0] + np.log(np.exp(logs - most).mean(-1)))


def _log_sigmoid(x: NDArray[np.float64] | float) -> Floats:
    return np.asarray(-np.logaddexp(0, -np.asarray(x)))
