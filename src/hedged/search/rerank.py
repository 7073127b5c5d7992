"""The second stage of a search: candidates ranked by the match probability, in closed form and double precision."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from hedged.distributions import Distribution
from hedged.match import self_mismatch
from hedged.search.rows import Header, Keys, Packed

Logits = NDArray[np.float64]


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
    items = header.unpack(found.packed)
    logits = header.match_model.chosen_logits(probes, items, torch.from_numpy(np.array(chosen))).numpy()
    best = _best(logits, found.keys[chosen], k)
    return Ranking(np.take_along_axis(chosen, best, axis=1), np.take_along_axis(logits, best, axis=1))


def uncertainties(header: Header, packed: Packed) -> Logits:
    """η of packed embeddings, `(n,)`: 1 − p of each and itself, in double precision."""
    eta: Logits = self_mismatch(header.unpack(packed).to(torch.float64), header.match_model).numpy()
    return eta


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
