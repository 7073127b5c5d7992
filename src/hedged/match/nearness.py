"""How near items are to a probe, as a cost that is worked out quickly for every item of a store.

A search by match probability must look at means and variances. The log-odds themselves take a logarithm and a dozen
exponentials for each pair; this cost takes one division for each dimension, and puts nearly the same items first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from hedged.distributions import Distribution

Numbers = NDArray[np.float64]
Given = NDArray[np.floating[Any]]  # in either precision
MOST_AT_ONCE = 2**21  # numbers held at a time


class Nearness(NamedTuple):
    """Σ_d g_d (μ_d − m_d)² / (1 + q_d v_d) + ½ log(1 + q_d v_d) of an item N(μ, diag v): less is nearer.

    No term is negative. Of mixtures, the nearest pair of components counts.

    Args:
        centre: m, `(N, C, D)` of the C components of N probes.
        pull: g, `(N, C, D)`.
        stretch: q, `(N, C, D)`.
    """

    centre: Numbers
    pull: Numbers
    stretch: Numbers

    def costs(self, mean: Given, variance: Given) -> Numbers:
        """The cost of every item for every component of a probe, `(N, C, M)`, in double precision.

        Args:
            mean: Of M items, `(M, D)`.
            variance: Of M items, `(M, D)`.

        >>> import torch
        >>> from hedged import Gaussian, MatchCurve
        >>> near = MatchCurve().nearness(Gaussian(torch.zeros(1, 2), torch.full((1, 2), 0.01)))
        >>> near.costs(np.array([[0.1, 0.0], [1.0, 0.0]]), np.full((2, 2), 0.01)).round(2)
        array([[[0.05, 1.7 ]]])
        """
        shape = (*self.centre.shape[:2], len(mean))
        out = np.empty((shape[0] * shape[1], shape[2]))
        of_probes = (part.reshape(len(out), -1) for part in self)
        rows = max(MOST_AT_ONCE // max(mean.shape[1], 1), 1)
        for i, (centre, pull, stretch) in enumerate(zip(*of_probes, strict=True)):
            for first in range(0, len(mean), rows):
                some = slice(first, first + rows)
                wide = 1 + stretch * variance[some]
                out[i, some] = (pull * (mean[some] - centre) ** 2 / wide + 0.5 * np.log(wide)).sum(1)
        return out.reshape(shape)


def curve_nearness(z: Distribution, scale: float, width: float) -> Nearness:
    """−log E[exp(−c a²‖δ‖²)] of a difference δ = z₁ − z₂, but for what depends on the probe alone.

    It is −log Π_d (1 + 2c s_d)^(−1/2) exp(−c m_d² / (1 + 2c s_d)), with m = a (μ₁ − μ₂) and s = a² (σ₁² + σ₂²).

    Args:
        z: The probes.
        scale: a.
        width: c.
    """
    mean, variance = (numbers(part) for part in z.parts())
    spread = 2 * width * scale**2
    wide = 1 + spread * variance
    return Nearness(mean, 0.5 * spread / wide, spread / wide)


def evidence_nearness(z: Distribution, asides: int) -> Nearness:
    """−log Bayes factor, but for what depends on the probe alone.

    With t = σ₁² + (1 − σ₁²)σ₂², each dimension of it is ½ (1 − σ₁²)(μ₂ − μ₁/(1 − σ₁²))²/t + ½ log t, and a constant.

    Args:
        z: The probes.
        asides: How many of the last dimensions are none of the latent identity.
    """
    mean, variance = (numbers(part) for part in z.parts())
    variance = variance.clip(1e-9, 1 - 1e-6)
    known = 1 - variance
    near = Nearness(mean / known, 0.5 * known / variance, known / variance)
    if asides:
        for part in near:
            part[..., -asides:] = 0
    return near


def numbers(part: Tensor) -> Numbers:
    """A tensor as an array in double precision.

    Args:
        part: Any.
    """
    found: Numbers = part.detach().double().cpu().numpy()
    return found
