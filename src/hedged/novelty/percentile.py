"""A score as a share: of held-out training inputs, how many are less novel than this one?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hedged._tracing import is_exporting

KNOTS = 512  # quantiles that are kept


@final
@dataclass(frozen=True, eq=False)
class Percentile:
    """u(s) = P(S < s), where S is the score of a held-out training input: uniform on (0, 1) for inputs like those.

    Between quantiles it is a straight line. Beyond the largest of n scores, s_n, it is 1 − 1/(n + 1) · 1/(1 + (s − s_n)
    /q), q half the width of all scores, and so below the smallest: scores that differ never become equal.

    Args:
        scores: quantiles of the held-out scores, ascending, float64 (K,).
        shares: u at each of them, ascending, float64 (K,).
    """

    scores: Tensor
    shares: Tensor

    @classmethod
    def fitted(cls, scores: NDArray[np.float64]) -> Self:
        """The percentiles of held-out scores.

        Args:
            scores: (n,), at least one.
        """
        ordered, places = np.unique(scores, return_counts=True)
        ranks = np.cumsum(places) - (places - 1) / 2  # ties share the middle of their ranks
        shares = ranks / (len(scores) + 1)
        if len(ordered) > KNOTS:
            kept = np.unique(
                np.searchsorted(shares, np.linspace(shares[0], shares[-1], KNOTS)).clip(0, len(shares) - 1)
            )
            ordered, shares = ordered[kept], shares[kept]
        return cls(torch.from_numpy(ordered.astype(np.float64)), torch.from_numpy(shares.astype(np.float64)))

    def of(self, scores: Tensor) -> Tensor:
        """u(s), `(n,)` in (0, 1), in double precision.

        Args:
            scores: `(n,)`.
        """
        if is_exporting():
            return self._traced(scores.double())
        known, shares = self.scores.numpy(), self.shares.numpy()
        s = scores.double().numpy()
        width = max(float(known[-1] - known[0]) / 2, 1e-6 * max(1.0, float(np.abs(known).max())))
        inside = np.interp(s, known, shares)
        above = 1 - (1 - shares[-1]) / (1 + np.maximum(s - known[-1], 0.0) / width)
        below = shares[0] / (1 + np.maximum(known[0] - s, 0.0) / width)
        return torch.from_numpy(np.where(s > known[-1], above, np.where(s < known[0], below, inside)))

    def _traced(self, s: Tensor) -> Tensor:
        """The same in operations that can be traced: how many quantiles lie below a score is counted."""
        known, shares = self.scores, self.shares
        width = torch.maximum((known[-1] - known[0]) / 2, 1e-6 * known.abs().amax(0).clamp(min=1.0))
        above = (s[:, None] >= known).sum(1)
        left, right = (above - 1).clamp(min=0), above.clamp(max=len(known) - 1)
        gap = known[right] - known[left]
        share = torch.where(gap > 0, (s - known[left]) / gap.clamp(min=1e-300), 0.0).clamp(0.0, 1.0)
        inside = shares[left] + share * (shares[right] - shares[left])
        beyond = 1 - (1 - shares[-1]) / (1 + (s - known[-1]).clamp(min=0.0) / width)
        below = shares[0] / (1 + (known[0] - s).clamp(min=0.0) / width)
        return torch.where(s > known[-1], beyond, torch.where(s < known[0], below, inside))
