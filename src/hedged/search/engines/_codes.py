"""Means and variances of the rows of a store in two bytes each: as much memory as the means alone in single precision.

A search reads all of it, and memory is what takes the time. Means are coded evenly, variances by their square root,
which leaves them exact to a thousandth over four decades. Rows are ranked by what the store holds, not by codes.
"""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from hedged._parallel import share
from hedged.match.nearness import Nearness
from hedged.search.index import Places
from hedged.search.rows import Packed

BLOCK = 256  # rows
AT_ONCE = 4  # dimensions that share a division
LEVELS = 65535.0
SAMPLE = 20_000  # rows that tell how far numbers reach
OUTSIDE = 0.0005  # share of the sampled numbers, at each end, that may lie far outside
MARGIN = 8.0  # how far codes reach beyond the others, in times the distance of their ends
MOST_WIDE = 1e4  # times the variances of others: as far as codes reach
ROWS_PER_THREAD = 2**15  # at least, for threads to be worth it
FARTHEST = 1e6  # of a probe's mean, in steps of codes
STEEPEST = 1e3  # root of the cost of a step, so that a difference costs at most 10¹⁸
MOST_STRETCH = 1e6  # of the widest row; the product of three, times 10¹⁸, is a number in single precision
MOST_PRODUCT = 37 * np.log(10)
MANY_OUTSIDE = 100


@final
class Codes:
    """Rows N(μ, diag v) in two bytes a number, at positions that count from 0.

    Rows that lie far outside of all others cannot be coded: they are found by every probe.

    Args:
        mean: `(M, D)`, of at least one row.
        variance: `(M, D)`.
    """

    def __init__(self, mean: Packed, variance: Packed) -> None:
        every = max(len(mean) // SAMPLE, 1)
        low, high = np.quantile(mean[::every].astype(np.float64), (OUTSIDE, 1 - OUTSIDE), axis=0)
        reach = np.maximum(high - low, 1e-6 * np.maximum(np.abs(low), np.abs(high)) + 1e-30)
        self._least = low - MARGIN * reach
        self._step = (high - low + 2 * MARGIN * reach) / LEVELS
        usual = np.quantile(variance[::every].astype(np.float64), 1 - OUTSIDE, axis=0)
        self._widest = np.maximum(np.minimum(variance.max(0), MOST_WIDE * usual), 1e-30)
        self._count, self._outside = 0, np.empty(0, np.int64)
        self._blocks = np.empty((0, 0, 2, 0), np.uint16)
        self.add(mean, variance)

    def __len__(self) -> int:
        return self._count

    @property
    def are_outgrown(self) -> bool:
        """Whether so many rows lie outside that finding them all takes longer than new codes would."""
        return len(self._outside) > MANY_OUTSIDE + len(self) // 1000

    @property
    def nbytes(self) -> int:
        """How much memory the codes take."""
        return self._blocks.nbytes

    def add(self, mean: Packed, variance: Packed) -> None:
        """Add rows after all others.

        Args:
            mean: `(n, D)`.
            variance: `(n, D)`.
        """
        from hedged.search.engines._coded_loops import encode  # late: numba is slow to import

        first, count, dim = self._count, len(mean), mean.shape[1]
        blocks = -(-(first + count) // BLOCK)
        if blocks > len(self._blocks):  # with room for as much as an eighth more
            room = blocks + (blocks // 8 if first else 0)
            grown = np.empty((room, -(-dim // AT_ONCE) * AT_ONCE, 2, BLOCK), np.uint16)  # in huge pages, unlike zeros
            grown[: len(self._blocks)] = self._blocks.reshape(-1, *grown.shape[1:])
            grown[len(self._blocks) :] = 0
            self._blocks = grown
        for i, (given, least, factor) in enumerate(
            ((mean, self._least, 1 / self._step), (variance, np.zeros(dim), 1 / self._widest))
        ):
            share(encode, count, ROWS_PER_THREAD, given, least, factor, bool(i), first, self._blocks[:, :, i])
        self._count += count
        last = self._least + LEVELS * self._step
        outside = ((mean < self._least) | (mean > last) | (variance > 2 * self._widest)).any(1)
        self._outside = np.concatenate([self._outside, first + np.flatnonzero(outside)])

    def nearest(self, near: Nearness, count: int, allowed: NDArray[np.bool_] | None) -> Places:
        """Positions of the rows of least cost for each component of a probe, `(N, C · n)`; −1 for none.

        Args:
            near: Of N probes of C components.
            count: How many to find for each.
            allowed: Which rows may be found, `(M,)`; None: all.
        """
        from hedged.search.engines._coded_loops import scan

        centre, pull, stretch, due = self._in_codes(near)
        which = np.empty(0, np.bool_) if allowed is None else allowed
        parts: list[tuple[NDArray[np.float32], Places]] = []

        def look(first: int, last: int) -> None:
            costs = np.full((len(centre), count), np.inf, np.float32)
            places = np.full(costs.shape, -1)
            scan(first, last, self._blocks, self._count, which, centre, pull, stretch, due, costs, places)
            parts.append((costs, places))

        share(look, -(-self._count // BLOCK), ROWS_PER_THREAD // BLOCK)
        costs, places = (np.concatenate(each, axis=1) for each in zip(*parts, strict=True))
        if len(parts) > 1:
            best = np.lexsort((places, costs))[:, :count]
            places = np.take_along_axis(places, best, axis=1)
        outside = self._outside if allowed is None else self._outside[allowed[self._outside]]
        if len(outside):
            places = np.where(np.isin(places, outside), -1, places)
            places = np.concatenate([places, np.broadcast_to(outside, (len(places), len(outside)))], axis=1)
        found: Places = places.reshape(len(near.centre), -1)
        return found

    def _in_codes(self, near: Nearness) -> tuple[Packed, Packed, Packed, NDArray[np.bool_]]:
        """√g m, √g and q for means and variances as they are coded, `(N · C, D)`, nothing in the dimensions added.

        Last, after which dimensions the product of all 1 + q v has to be made a logarithm.
        """
        dim, padded = near.centre.shape[-1], self._blocks.shape[1]
        given = [part.reshape(-1, dim) for part in near]
        root = np.minimum(np.sqrt(given[1]) * self._step, STEEPEST)
        centre = root * ((given[0] - self._least) / self._step).clip(-FARTHEST, FARTHEST)
        stretch = np.minimum(given[2] * self._widest, MOST_STRETCH)
        out = np.zeros((3, len(root), padded), np.float32)
        out[0, :, :dim], out[1, :, :dim], out[2, :, :dim] = centre, root, stretch / LEVELS**2
        due = np.zeros((len(root), padded), np.bool_)
        due[:, -1] = True
        if dim * np.log1p(stretch.max()) > MOST_PRODUCT:
            logs = np.add.accumulate(np.log1p(out[2] * LEVELS**2), axis=1)[:, AT_ONCE - 1 :: AT_ONCE]
            before = np.zeros(len(root))
            for i in range(logs.shape[1] - 1):
                ends = logs[:, i + 1] - before > MOST_PRODUCT
                due[ends, (i + 1) * AT_ONCE - 1], before[ends] = True, logs[ends, i]
        return out[0], out[1], out[2], due
