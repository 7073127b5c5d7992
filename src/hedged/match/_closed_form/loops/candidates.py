"""log p of probes and of candidates that each of them has chosen, from rows as a store packs them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedged._compiled import compiled
from hedged.match._closed_form.loops.nearest import Floats, Formula, Ints, log_match

AT_ONCE = 256  # candidates of a probe


@compiled()
def _in_units(row: Floats, centre: Floats, scale: float, farthest: float, mean: Floats, variance: Floats) -> None:
    """a (μ − centre) and a² σ² of one embedding `(2, C, D)`, each `(C, D)`, in double precision."""
    for c in range(row.shape[1]):
        for d in range(row.shape[2]):
            near = (np.float64(row[0, c, d]) - np.float64(centre[d])) * scale
            mean[c, d] = min(max(near, -farthest), farthest)
            variance[c, d] = min(np.float64(row[1, c, d]) * scale * scale, farthest * farthest)


@compiled()
def log_matches(
    first: int,
    last: int,
    probes: NDArray[np.float32],
    rows: NDArray[np.float32],
    chosen: Ints,
    units: NDArray[np.float64],
    formula: Formula,
    out: Any,
) -> None:
    """Write log p `(N, n)` of probes `(N, 2, C, D)` and the rows `(R, 2, C, D)` chosen `(N, n)`; −∞ where that is −1.

    The range is of strips of `AT_ONCE` candidates, all of a probe before those of the next. `units` are a and the
    distance at which they are cut. Only differences count: each probe is its own origin.
    """
    components, dim = rows.shape[2], rows.shape[3]
    own, spread = np.empty(probes.shape[2:]), np.empty(probes.shape[2:])
    means, variances = np.empty((components, dim, AT_ONCE)), np.empty((components, dim, AT_ONCE))
    every, found = np.arange(AT_ONCE), np.empty(AT_ONCE)
    strips = -(-chosen.shape[1] // AT_ONCE)
    for strip in range(first, last):
        n, start = strip // strips, strip % strips * AT_ONCE
        centre, some, result = probes[n, 0, 0], chosen[n, start : start + AT_ONCE], out[n, start : start + AT_ONCE]
        _in_units(probes[n], centre, units[0], units[1], own, spread)
        result[:] = -np.inf
        which = np.flatnonzero(some >= 0)
        for i in range(len(which)):
            row = rows[some[which[i]]]
            _in_units(row, centre, units[0], units[1], means[:, :, i], variances[:, :, i])
        log_match(every[: len(which)], own, spread, means, variances, formula, found[: len(which)])
        for i in range(len(which)):
            result[which[i]] = found[i]
