"""The cost of `Nearness` for every row of a store, compiled: the rows of least cost for each probe.

Rows are in blocks of 256, dimension by dimension: the codes of 256 means, then those of 256 variances. So each loop
runs along rows, which the compiler turns into vector instructions, and a block stays in a core's first cache while all
probes are compared with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedged._compiled import compiled
from hedged.search.engines._codes import AT_ONCE, BLOCK

_ONE, _HALF_LN2 = np.float32(1), np.float32(0.34657359)
_QUICK: Any = {"contract", "nsz", "arcp", "reassoc"}

Codes = NDArray[np.uint16]
Singles = NDArray[np.float32]


@compiled(_QUICK)
def encode(
    first: int, last: int, given: Singles, least: Any, factor: Any, is_variance: bool, start: int, out: Codes
) -> None:
    """Write codes of rows `(n, D)` to `out` `(blocks, D, BLOCK)`, the row 0 at `start`: linear, or of square roots."""
    for i in range(first, last):
        block, place = (start + i) // BLOCK, (start + i) % BLOCK
        for d in range(given.shape[1]):
            x = (np.float64(given[i, d]) - least[d]) * factor[d]
            if is_variance:
                x = np.sqrt(max(x, 0.0)) * 65535.0
            out[block, d, place] = np.uint16(min(max(x + 0.5, 0.0), 65535.0))


@compiled(_QUICK)
def _add_four(
    codes: Codes, block: int, d: int, n: int, centre: Singles, pull: Singles, stretch: Singles, cost: Singles, wide: Any
) -> None:
    """Add Σ (g μ − m)² / (1 + q v) over four dimensions from d on to `cost`, and multiply `wide` by Π (1 + q v)."""
    m0, m1, m2, m3 = centre[n, d], centre[n, d + 1], centre[n, d + 2], centre[n, d + 3]
    g0, g1, g2, g3 = pull[n, d], pull[n, d + 1], pull[n, d + 2], pull[n, d + 3]
    q0, q1, q2, q3 = stretch[n, d], stretch[n, d + 1], stretch[n, d + 2], stretch[n, d + 3]
    for i in range(BLOCK):
        r0, r1, r2, r3 = (
            np.float32(codes[block, d, 1, i]),
            np.float32(codes[block, d + 1, 1, i]),
            np.float32(codes[block, d + 2, 1, i]),
            np.float32(codes[block, d + 3, 1, i]),
        )
        t0, t1, t2, t3 = _ONE + q0 * r0 * r0, _ONE + q1 * r1 * r1, _ONE + q2 * r2 * r2, _ONE + q3 * r3 * r3
        d0, d1 = g0 * np.float32(codes[block, d, 0, i]) - m0, g1 * np.float32(codes[block, d + 1, 0, i]) - m1
        d2, d3 = g2 * np.float32(codes[block, d + 2, 0, i]) - m2, g3 * np.float32(codes[block, d + 3, 0, i]) - m3
        t01, t23 = t0 * t1, t2 * t3
        above = (d0 * d0 * t1 + d1 * d1 * t0) * t23 + (d2 * d2 * t3 + d3 * d3 * t2) * t01
        t = t01 * t23
        cost[i] += above / t
        wide[i] *= t


@compiled(_QUICK)
def _add_half_logs(wide: Singles, bits: Any, cost: Singles, part: Singles, part_bits: Any) -> None:
    """Add ½ log of `wide` ≥ 1, whose bits are `bits`, to `cost`, within 10⁻⁵; `part` is room for its mantissa."""
    for i in range(BLOCK):
        part_bits[i] = (bits[i] & 0x7FFFFF) | 0x3F800000
    for i in range(BLOCK):
        y = part[i] - _ONE
        log2 = np.float32(-0.1341191) + y * np.float32(0.0409293)
        log2 = np.float32(-0.3473056) + y * (np.float32(0.2410988) + y * log2)
        log2 = y * (np.float32(1.4426950) + y * (np.float32(-0.7211658) + y * (np.float32(0.4778685) + y * log2)))
        cost[i] += _HALF_LN2 * (np.float32((bits[i] >> 23) - 127) + log2)


@compiled()
def _below(cost: Singles, most: Any) -> int:
    """How many costs are lower: counted without a branch, which takes a vector at a time."""
    found = np.int32(0)
    for i in range(BLOCK):
        found += np.int32(cost[i] < most)
    return int(found)


@compiled()
def _keep(costs: Singles, places: Any, held: int, cost: Any, place: int) -> int:
    """Put a row into a heap whose top is its worst, instead of that if the heap is full; returns how many it holds."""
    if held < len(costs):
        i = held
        while i > 0:
            above = (i - 1) // 2
            if costs[above] > cost or (costs[above] == cost and places[above] > place):
                break
            costs[i], places[i], i = costs[above], places[above], above
        costs[i], places[i] = cost, place
        return held + 1
    i = 0
    while True:
        below = 2 * i + 1
        if below >= held:
            break
        other = below + 1
        if other < held and (
            costs[other] > costs[below] or (costs[other] == costs[below] and places[other] > places[below])
        ):
            below = other
        if costs[below] < cost or (costs[below] == cost and places[below] < place):
            break
        costs[i], places[i], i = costs[below], places[below], below
    costs[i], places[i] = cost, place
    return held


@compiled()
def scan(
    first: int,
    last: int,
    codes: Codes,
    rows: int,
    allowed: Any,
    centre: Singles,
    pull: Singles,
    stretch: Singles,
    logs_after: Any,
    costs: Singles,
    places: Any,
) -> None:
    """Write the rows of least cost for each of N probes `(N, D)` to `places` `(N, k)`, in any order; −1 for none.

    The range is of blocks of `codes` `(blocks, D, 2, BLOCK)`, which hold `rows` rows; where `allowed` is not empty, it
    says which of them may be found. Among rows of one cost, the first is found. `logs_after` `(N, D)` says after which
    dimensions a logarithm is due, lest the product of all so far be too large for a number.
    """
    cost, wide, part = np.empty(BLOCK, np.float32), np.empty(BLOCK, np.float32), np.empty(BLOCK, np.float32)
    bits, part_bits = wide.view(np.int32), part.view(np.int32)
    held = np.zeros(len(centre), np.int64)
    most, every = places.shape[1], len(allowed) == 0
    for block in range(first, last):
        start = block * BLOCK
        end = min(rows - start, BLOCK)
        if not every and not allowed[start : start + end].any():
            continue
        for n in range(len(centre)):
            cost[:], wide[:] = 0, 1
            for d in range(0, codes.shape[1], AT_ONCE):
                _add_four(codes, block, d, n, centre, pull, stretch, cost, wide)
                if logs_after[n, d + AT_ONCE - 1]:
                    _add_half_logs(wide, bits, cost, part, part_bits)
                    wide[:] = 1
            is_full = held[n] == most
            if is_full and not _below(cost, costs[n, 0]):
                continue
            for i in range(end):
                if (not is_full or cost[i] < costs[n, 0]) and (every or allowed[start + i]):
                    held[n] = _keep(costs[n], places[n], held[n], cost[i], start + i)
                    is_full = held[n] == most
