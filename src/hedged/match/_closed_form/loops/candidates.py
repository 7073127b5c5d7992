"""log p of probes and of candidates that each of them has chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedged._compiled import compiled
from hedged.match._closed_form.loops.limits import FARTHEST
from hedged.match._closed_form.loops.nearest import Floats, Formula, Ints, log_match

CANDIDATES_PER_STRIP = 256


@compiled()
def _in_units(
    given_mean: Floats, given_variance: Floats, centre: Floats, scale: float, mean: Floats, variance: Floats
) -> None:
    """a (μ − centre) and a² σ² of one embedding, each `(C, D)`, in double precision."""
    for c in range(given_mean.shape[0]):
        for d in range(given_mean.shape[1]):
            near = (np.float64(given_mean[c, d]) - np.float64(centre[d])) * scale
            mean[c, d] = min(max(near, -FARTHEST), FARTHEST)
            variance[c, d] = min(np.float64(given_variance[c, d]) * scale * scale, FARTHEST * FARTHEST)


@compiled()
def log_matches(
    first: int,
    last: int,
    probe_means: Floats,
    probe_variances: Floats,
    item_means: Floats,
    item_variances: Floats,
    chosen: Ints,
    scale: NDArray[np.float64],
    formula: Formula,
    out: Any,
) -> None:
    """Write log p `(N, n)` of probes `(N, C, D)` and the items `(R, C, D)` chosen `(N, n)`; −∞ where that is −1.

    The range is of strips of candidates, all of a probe before those of the next; `scale` is a, `(1,)`. Only
    differences count: each probe is its own origin.
    """
    components, dim = item_means.shape[1], item_means.shape[2]
    own, spread = np.empty(probe_means.shape[1:]), np.empty(probe_means.shape[1:])
    means = np.empty((components, dim, CANDIDATES_PER_STRIP))
    variances = np.empty((components, dim, CANDIDATES_PER_STRIP))
    every, found = np.arange(CANDIDATES_PER_STRIP), np.empty(CANDIDATES_PER_STRIP)
    strips = -(-chosen.shape[1] // CANDIDATES_PER_STRIP)
    for strip in range(first, last):
        n, start = strip // strips, strip % strips * CANDIDATES_PER_STRIP
        end = start + CANDIDATES_PER_STRIP
        centre, some, result = probe_means[n, 0], chosen[n, start:end], out[n, start:end]
        _in_units(probe_means[n], probe_variances[n], centre, scale[0], own, spread)
        result[:] = -np.inf
        which = np.flatnonzero(some >= 0)
        for i in range(len(which)):
            at = some[which[i]]
            _in_units(item_means[at], item_variances[at], centre, scale[0], means[:, :, i], variances[:, :, i])
        log_match(every[: len(which)], own, spread, means, variances, formula, found[: len(which)])
        for i in range(len(which)):
            result[which[i]] = found[i]
