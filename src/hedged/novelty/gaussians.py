"""How far features are from those of training: Gaussians of identities that share one covariance."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Self, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hedged._tracing import is_exporting

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

AXES = 128  # principal axes on which identities are told apart; what is outside of them counts as one number
RIDGE = 0.3  # of the mean variance: directions in which features vary less than that are mostly noise
LEAST_WITHIN = 1e-3  # of t: what w is at least, however alike the few inputs of an identity are
MOST_MEANS = 2048  # identities whose means are kept
ROWS = 4096  # features looked at in one block
LEAST_LENGTH = 1e-12
LEAST_LENGTH_SPREAD = 0.01  # of log lengths: where all are alike they say nothing


@final
@dataclass(frozen=True, eq=False)
class Moments:
    """What the Gaussians are fitted to, gathered in one pass: counts, sums and the sum of squares of unit features.

    Args:
        counts: inputs of each identity, (C,).
        sums: of their features, (C, F).
        squares: Σ f fᵀ over all inputs, (F, F).
        lengths: the sum of log lengths of each identity, (C,).
        square_lengths: the sum of the squares of all log lengths.
    """

    counts: Floats
    sums: Floats
    squares: Floats
    lengths: Floats
    square_lengths: float

    @classmethod
    def of(cls, features: NDArray[Any], labels: Ints, identities: int) -> Self:
        """The moments of some inputs.

        Args:
            features: (n, F).
            labels: the identity each shows, (n,), in 0 … C − 1.
            identities: C.
        """
        width = features.shape[1]
        counts = np.bincount(labels, minlength=identities).astype(np.float64)
        sums, squares, lengths, square_lengths = np.zeros((identities, width)), np.zeros((width, width)), [], 0.0
        for start in range(0, len(features), ROWS):
            some, length = unit_length(np.asarray(features[start : start + ROWS], np.float64))
            np.add.at(sums, labels[start : start + ROWS], some)
            squares += some.T @ some
            lengths.append(np.log(length))
            square_lengths += float(np.square(lengths[-1]).sum())
        of_identity = np.bincount(labels, np.concatenate(lengths), minlength=identities).astype(np.float64)
        return cls(counts, sums, squares, of_identity, square_lengths)

    def without(self, some: Moments) -> Moments:
        """The moments of all inputs but some.

        Args:
            some: the moments of those to leave out.
        """
        return Moments(*(getattr(self, field.name) - getattr(some, field.name) for field in fields(self)))


@final
@dataclass(frozen=True, eq=False)
class IdentityGaussians:
    """s(x) = min_c [(f − μ_c)ᵀ (W + wI)⁻¹ (f − μ_c) + k (ℓ − λ_c)²/v] − (f − μ)ᵀ (T + tI)⁻¹ (f − μ).

    f are the features of x at unit length and ℓ is the logarithm of their length. μ_c and λ_c are the means of the
    identities, W and v the covariance and variance around them, μ and T are of all inputs together, w and t are 0.3
    times the mean variances of W and T; k, what the length counts, is 1 until `weighing_length` changes it. The first
    part is small where x looks like an identity of training, the second where it is like the average input: what both
    share cancels (relative Mahalanobis distance; Ren et al., 2021). Apart from the length, both are worked out on the
    principal axes V of T, and what is outside of them counts by its length alone.

    Args:
        centre: μ, (F,).
        axes: V, (F, P).
        whiten: L, with L Lᵀ the inverse of W + wI on the axes, (P, P).
        means: Lᵀ Vᵀ (μ_c − μ), and what `length` makes of λ_c, (C, P + 1).
        spread: the diagonal of T + tI on the axes, (P,).
        outside: what W + wI and T + tI are outside of the axes, (2,).
        length: the mean of ℓ, and √(k/v), (2,).
    """

    centre: Tensor
    axes: Tensor
    whiten: Tensor
    means: Tensor
    spread: Tensor
    outside: Tensor
    length: Tensor

    @classmethod
    def fitted(cls, moments: Moments) -> Self:
        """The Gaussians of inputs, in closed form.

        Args:
            moments: of two identities or more, at least one of which has two inputs.
        """
        present = moments.counts > 0.5
        counts, sums = moments.counts[present], moments.sums[present]
        total, width = counts.sum(), sums.shape[1]
        centre, means = sums.sum(0) / total, sums / counts[:, None]
        spread = moments.squares / total - np.outer(centre, centre)
        within = (moments.squares - (sums / counts[:, None]).T @ sums) / max(total - len(counts), 1.0)
        variance, basis = np.linalg.eigh(spread)
        variance, basis = np.maximum(variance[::-1], 0.0), basis[:, ::-1]
        axes = basis[:, : min(AXES, width)]
        t = RIDGE * max(float(np.trace(spread)) / width, 1e-12)
        w = max(RIDGE * float(np.trace(within)) / width, LEAST_WITHIN * t)
        on_axes = axes.T @ within @ axes
        rest = max(width - axes.shape[1], 1)
        outside = (
            w + max(float(np.trace(within) - np.trace(on_axes)), 0.0) / rest,
            t + float(variance[axes.shape[1] :].sum()) / rest,
        )
        inner, turn = np.linalg.eigh(on_axes)
        whiten = turn / np.sqrt(np.maximum(inner, 0.0) + w)
        lengths, kept = moments.lengths[present] / counts, kept_identities(len(means))
        v = (moments.square_lengths - float(counts @ np.square(lengths))) / max(total - len(counts), 1.0)
        length = moments.lengths.sum() / total, 1 / np.sqrt(max(v, LEAST_LENGTH_SPREAD**2))
        placed = np.column_stack([(means[kept] - centre) @ axes @ whiten, (lengths[kept] - length[0]) * length[1]])
        found = (centre, axes, whiten, placed, variance[: axes.shape[1]] + t, outside, length)
        return cls(*(torch.from_numpy(np.array(part, np.float32, order="C")) for part in found))

    @property
    def width(self) -> int:
        """F, the number of features."""
        return len(self.centre)

    def weighing_length(self, weight: float) -> Self:
        """The same Gaussians, with the length counting more or less.

        Args:
            weight: what k is multiplied by; 0: only directions count.
        """
        scale = weight**0.5
        means, length = self.means.clone(), self.length.clone()
        means[:, -1] *= scale
        length[1] *= scale
        return replace(self, means=means, length=length)

    @torch.no_grad()
    def score(self, features: Tensor, without: Tensor | None = None) -> Tensor:
        """s(x), `(n,)` in double precision: higher is less like the training inputs.

        Args:
            features: `(n, F)`.
            without: the mean that each input is not compared with, int64 `(n,)`: that of its own identity, as if it
                were a new one; −1 for none. None: all are compared with all means.
        """
        if is_exporting():
            return self._score(features, None)
        own = torch.full((len(features),), -1) if without is None else without
        parts = [self._score(*some) for some in zip(torch.split(features, ROWS), torch.split(own, ROWS), strict=True)]
        return torch.cat(parts) if parts else torch.zeros(0, dtype=torch.float64)

    def _score(self, features: Tensor, own: Tensor | None) -> Tensor:
        f = features.detach().to(self.centre)
        length = f.square().sum(1, keepdim=True).sqrt().clamp_min(LEAST_LENGTH)
        f = f / length - self.centre
        on_axes = f @ self.axes
        outside = (f.square().sum(1) - on_axes.square().sum(1)).clamp_min(0.0)
        u = torch.cat([on_axes @ self.whiten, (length.log() - self.length[0]) * self.length[1]], dim=1)
        distances = self.means.square().sum(1) - 2 * (u @ self.means.T)
        if own is not None and len(rows := torch.nonzero(own >= 0).flatten()):
            distances[rows, own[rows]] = torch.inf
        relative = u.square().sum(1) + distances.amin(1) - (on_axes.square() / self.spread).sum(1)
        score: Tensor = relative.double() + (outside / self.outside[0] - outside / self.outside[1]).double()
        return score.cpu()


def kept_identities(identities: int) -> Ints:
    """Which identities have a mean that is kept: all, or as many as are kept at most, spread evenly.

    Args:
        identities: C, how many there are.
    """
    if identities <= MOST_MEANS:
        return np.arange(identities)
    return np.linspace(0, identities - 1, MOST_MEANS).astype(np.intp)


def unit_length(features: Floats) -> tuple[Floats, Floats]:
    """Rows brought to unit length, and the lengths they had, (n,); rows of zeros stay.

    Args:
        features: (n, F).
    """
    length = np.maximum(np.sqrt(np.square(features).sum(1)), LEAST_LENGTH)
    return np.asarray(features / length[:, None]), length
