"""The second stage of a search: candidates ranked by the match probability, in closed form and double precision."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit

from hedged._parallel import share
from hedged.distributions import Distribution
from hedged.match import match_logit
from hedged.match._closed_form.expansion import expand
from hedged.match._closed_form.units import FARTHEST
from hedged.search.rows import Header, Keys, Packed, pack

if TYPE_CHECKING:
    from hedged.match._closed_form.loops.nearest import Formula

Logits = NDArray[np.float64]
STRIPS_EACH = 2  # strips of candidates that are worth a thread of their own
NUMBERS = 2**20  # held at a time, for each intermediate result


class Candidates(NamedTuple):
    """What a first stage found for N probes: rows by key `(R,)`, their embeddings `(R, width)`, and who chose which.

    `chosen` `(N, n)` are places in the former two; −1 stands for none.
    """

    keys: Keys
    packed: Packed
    chosen: Keys


class Ranking(NamedTuple):
    """The best rows of each probe, best first: places in the candidates and log-odds, `(N, k)`; −1 and −∞ for none."""

    places: Keys
    logits: Logits


def rank(probes: Distribution, header: Header, found: Candidates, k: int) -> Ranking:
    """The k candidates of highest p(m | probe, row) for each probe; among equals the one added first."""
    chosen = found.chosen
    if header.components * probes.parts()[0].shape[-2] > 1:
        chosen = without_repeats(chosen)
    logits = (_of_points if header.kind == "point" else _compiled)(probes, header, found.packed, chosen)
    best = _best(logits, found.keys[chosen], k)
    return Ranking(np.take_along_axis(chosen, best, axis=1), np.take_along_axis(logits, best, axis=1))


def uncertainties(header: Header, packed: Packed) -> Logits:
    """η of packed embeddings, `(n,)`: 1 − p of each and itself."""
    if header.kind == "point":
        return np.full(len(packed), float(expit(-header.bias)))
    own = np.arange(len(packed)).reshape(-1, 1)
    eta: Logits = -np.expm1(_log_matches(header, packed, packed, own)[:, 0])
    return eta


def _compiled(probes: Distribution, header: Header, packed: Packed, chosen: Keys) -> Logits:
    """The log-odds of Gaussians and mixtures, `(N, n)`."""
    log_p = _log_matches(header, pack(probes), packed, chosen)
    logits: Logits = log_p - np.log(-np.expm1(log_p))
    return logits


def _log_matches(header: Header, probes: Packed, packed: Packed, chosen: Keys) -> Logits:
    """log p of each probe and the rows chosen for it, `(N, n)`; −∞ where there is none."""
    from hedged.match._closed_form.loops.candidates import AT_ONCE, log_matches  # late: numba is slow to import

    log_p, (formula, units) = np.empty(chosen.shape), _formula(header)
    parts = [rows.reshape(len(rows), 2, rows.shape[1] // (2 * header.dim), header.dim) for rows in (probes, packed)]
    strips = len(probes) * -(-chosen.shape[1] // AT_ONCE)
    share(log_matches, strips, STRIPS_EACH, *parts, np.array(chosen, order="C"), units, formula, log_p)
    return log_p


@lru_cache(maxsize=16)
def _formula(header: Header) -> tuple[Formula, NDArray[np.float64]]:
    """The terms of the closed form for a store's curve, and its units: what does not change between searches."""
    from hedged.match._closed_form.loops.nearest import Formula

    curve = header.curve
    ends = np.array([header.bias, curve.chord_end(), curve.error_bound()])
    return Formula(torch.stack(expand(curve.bias)).numpy(), ends), np.array([curve.scale.item(), FARTHEST])


def _of_points(probes: Distribution, header: Header, packed: Packed, chosen: Keys) -> Logits:
    """The log-odds of points, `(N, n)`: by their distance alone."""
    logits = np.full(chosen.shape, -np.inf)
    exact, curve = probes.to(torch.float64), header.curve
    for rows, columns in _blocks(chosen.shape, NUMBERS // header.width):
        part = chosen[rows, columns]
        items = header.unpack(packed[part.clip(0)]).to(torch.float64)
        values = match_logit(exact[rows].unsqueeze(1), items, curve).numpy()
        logits[rows, columns] = np.where(part >= 0, values, -np.inf)
    return logits


def _best(logits: Logits, keys: Keys, k: int) -> Keys:
    """Columns of the k highest of each row, the lower key first among equals."""
    if logits.shape[1] > 4 * k:  # sorting is dear: first leave out what is below the k-th
        least = -np.partition(-logits, k - 1, axis=1)[:, k - 1 : k]
        kept = [np.flatnonzero(row) for row in logits >= least]
        best = [one[np.lexsort((keys[i, one], -logits[i, one]))[:k]] for i, one in enumerate(kept)]
    else:
        best = [np.lexsort((keys[i], -logits[i]))[:k] for i in range(len(logits))]
    return np.array(best, dtype=np.int64).reshape(len(logits), -1)


def without_repeats(chosen: Keys) -> Keys:
    """Each place once a row: a mixture is found by each of its components.

    >>> without_repeats(np.array([[3, 1, 3], [-1, 2, -1]]))
    array([[ 3,  1, -1],
           [-1,  2, -1]])
    """
    order = chosen.argsort(axis=1, kind="stable")
    ordered = np.take_along_axis(chosen, order, axis=1)
    repeated = np.zeros(chosen.shape, dtype=bool)
    np.put_along_axis(repeated, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    return np.where(repeated, -1, chosen)


def _blocks(shape: tuple[int, ...], pairs: int) -> Iterator[tuple[slice, slice]]:
    """Parts of all pairs that hold at most so many, or one."""
    width = min(shape[1], max(pairs, 1))
    height = max(pairs // max(width, 1), 1)
    for top in range(0, shape[0], height):
        for left in range(0, shape[1], max(width, 1)):
            yield slice(top, top + height), slice(left, left + width)
