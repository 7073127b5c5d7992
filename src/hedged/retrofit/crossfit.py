"""A quality network learns from pairs of identities that its directions have not seen.

Directions that tell the training identities apart tell them apart too well: on new identities they are worth less. What
is learnt on top of them, how much evidence there is in all and in one input, must not be learnt from the identities
that chose them. So identities are dealt out to folds; each fold is projected on directions found without it, and the
network, shared by all folds, learns from those projections. What it says then holds for strangers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import softplus

from hedged.errors import TrainingError
from hedged.match._evidence.matrix import log_factors
from hedged.models.evidence.head import Branch
from hedged.models.evidence.plda import Directions
from hedged.retrofit.adam import Adam

Ints = NDArray[np.intp]
WARM_UP = 50  # steps
LARGEST_GRADIENT = 5.0  # norm


class Views(NamedTuple):
    """What a front makes of vectors: on principal axes `(n, P)`, and signs of their quality `(n, 3)`."""

    u: Tensor
    signs: Tensor

    def take(self, rows: NDArray[Any]) -> Views:
        """Some of the rows."""
        index = torch.from_numpy(rows)
        return Views(self.u[index], self.signs[index])


class Fold(NamedTuple):
    """One fold of identities, seen through directions that were found without them; `wide`: where they might differ."""

    found: Directions
    wide: Directions
    views: Views
    poor: Views
    y: Ints


@final
@dataclass(frozen=True)
class Training:
    """How the quality network is trained.

    Args:
        steps: batches, dealt out to the folds in turn.
        rate: learning rate at its highest; it rises for 50 steps and falls as a cosine.
        noise: standard deviation of noise on what the network sees.
        decay: weight decay.
        identities: of a batch.
        each: vectors of each of them.
        poor_share: share of poorer vectors in a batch.
    """

    steps: int = 300
    rate: float = 1e-3
    noise: float = 1.0
    decay: float = 0.1
    identities: int = 32
    each: int = 4
    poor_share: float = 0.5


def train_quality(branch: Branch, folds: list[Fold], how: Training, seed: int) -> None:
    """Train what a branch has to learn, in place; its directions stay as they are.

    Args:
        branch: where it starts.
        folds: identities dealt out.
        how: see `Training`.
        seed: of batches and noise.
    """
    noise = torch.Generator().manual_seed(seed)
    placed = [_Placed(branch, fold, how, seed + k) for k, fold in enumerate(folds)]
    log_odds = torch.zeros((), requires_grad=True)
    optimiser = Adam([*branch.parameters(), log_odds], how.decay)
    kept = branch.state_dict()
    for step in range(how.steps):
        fold = placed[step % len(placed)]
        fold.put_in(branch)
        (h, seen, signs), labels = fold.draw(how.poor_share, noise)
        seen = seen + how.noise * torch.randn(seen.shape, generator=noise)
        z = branch.of_projection(h, seen, signs)
        _step(log_odds + log_factors(z, z, branch.groups), labels, optimiser, how.rate * _rate(step, how.steps))
    for name in ("weight", "centre", "log_evidence", "scale", "reach"):
        setattr(branch, name, kept[name])


def train_projection(branch: Branch, views: Views, poor: Views, y: Ints, how: Training, seed: int) -> None:
    """Train all of a branch, its directions too, in place, on vectors with noise.

    There are far more numbers to learn than in the quality network, so it takes many identities; the noise keeps it
    from learning them by heart.

    Args:
        branch: where it starts.
        views: what the front made of the vectors.
        poor: the same of poorer vectors, row by row.
        y: identities of the rows, (n,).
        how: see `Training`; the noise is on all that the branch sees.
        seed: of batches and noise.
    """
    noise = torch.Generator().manual_seed(seed)
    batches = _Batches(y, how, seed)
    directions = branch.weight.clone().requires_grad_()
    axes = len(directions)
    log_odds = torch.zeros((), requires_grad=True)
    optimiser = Adam([*branch.parameters(), directions, log_odds], how.decay)
    for step in range(how.steps):
        rows, labels = batches.draw()
        u, signs = views.u[rows, :axes], views.signs[rows]
        is_poor = torch.rand(len(rows), 1, generator=noise) < how.poor_share
        u, signs = torch.where(is_poor, poor.u[rows, :axes], u), torch.where(is_poor, poor.signs[rows], signs)
        u = u + how.noise * torch.randn(u.shape, generator=noise)
        z = branch.of_projection((u - branch.centre) @ directions, u[:, : branch.seen], signs)
        _step(log_odds + log_factors(z, z, branch.groups), labels, optimiser, how.rate * _rate(step, how.steps))
    branch.weight = directions.detach()


@final
class _Placed:
    """A fold projected on its own directions, and batches of it."""

    def __init__(self, branch: Branch, fold: Fold, how: Training, seed: int) -> None:
        self._found = fold.found.first(branch.dim)
        branch.start_from(self._found)
        self._projected = [
            ((views.u - branch.centre) @ branch.weight, views.u[:, : branch.seen], views.signs)
            for views in (fold.views, fold.poor)
        ]
        self._start = {n: getattr(branch, n) for n in ("weight", "centre", "log_evidence", "scale", "reach")}
        self._batches = _Batches(fold.y, how, seed)

    def put_in(self, branch: Branch) -> None:
        for name, value in self._start.items():
            setattr(branch, name, value)

    def draw(self, poor_share: float, noise: torch.Generator) -> tuple[tuple[Tensor, ...], Tensor]:
        """Projections of a few vectors of each of some identities, and their labels."""
        rows, labels = self._batches.draw()
        clean, poor = self._projected
        is_poor = torch.rand(len(rows), 1, generator=noise) < poor_share
        return tuple(torch.where(is_poor, p[rows], c[rows]) for p, c in zip(poor, clean, strict=True)), labels


@final
class _Batches:
    """Batches of a few vectors of each of some identities; an identity with one vector has no match and is left out."""

    def __init__(self, y: Ints, how: Training, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        order = np.argsort(y, kind="stable")
        rows = np.split(order, np.flatnonzero(np.diff(y[order])) + 1)
        self._rows = [r for r in rows if len(r) > 1]
        self._identities, self._each = min(how.identities, len(self._rows)), how.each

    def draw(self) -> tuple[Tensor, Tensor]:
        """Rows and labels."""
        chosen = self._rng.choice(len(self._rows), self._identities, replace=False)
        drawn = [self._rng.permutation(self._rows[k])[: self._each] for k in chosen]
        labels = np.repeat(chosen, [len(rows) for rows in drawn])
        return torch.from_numpy(np.concatenate(drawn)), torch.from_numpy(labels)


def _step(logits: Tensor, labels: Tensor, optimiser: Adam, rate: float) -> None:
    """One step down the cost of a batch."""
    loss = _cost(logits, labels)
    if not math.isfinite(loss.item()):
        raise TrainingError("the loss of the head is no longer finite: scale the vectors, or look for outliers in them")
    for w in optimiser.weights:
        w.grad = None
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(optimiser.weights, LARGEST_GRADIENT)
    optimiser.step(rate)


def _cost(logits: Tensor, labels: Tensor) -> Tensor:
    """½ mean −log p over matches + ½ mean −log(1 − p) over strangers, of distinct items."""
    same = labels[:, None] == labels
    match = same & ~torch.eye(len(labels), dtype=torch.bool)
    return 0.5 * softplus(-logits[match]).mean() + 0.5 * softplus(logits[~same]).mean()


def _rate(step: int, steps: int) -> float:
    """Up for a while, then down as a cosine."""
    return min((step + 1) / WARM_UP, 1.0) * 0.5 * (1 + math.cos(math.pi * step / steps))


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for many small steps: two wait for each other longer than they work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
