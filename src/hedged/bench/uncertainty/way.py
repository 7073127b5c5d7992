"""What a way to be uncertain is, and how the heads of the ways are trained."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hedged.bench.uncertainty.sets import Floats, Ints, Vectors

Scores = NDArray[np.float64]
STEPS = 1000  # batches
IDENTITIES, EACH = 32, 4  # of a batch
RATE, DECAY = 1e-3, 0.1
NOISE = 0.5  # standard deviations, on vectors in training
Cost = Callable[[Tensor, Tensor], Tensor]


class Fitted(ABC):
    """A way after training."""

    @abstractmethod
    def scores(self, a: Floats, b: Floats) -> Scores:
        """How much each pair looks like a match, (n, m).

        Args:
            a: vectors, (n, F).
            b: vectors, (m, F).
        """

    @abstractmethod
    def uncertainty(self, x: Floats) -> Scores:
        """(n,), higher is less certain.

        Args:
            x: vectors, (n, F).
        """

    def novelty(self, x: Floats) -> Scores:
        """(n,), higher is less like training; a way that has one number gives it for both.

        Args:
            x: vectors, (n, F).
        """
        return self.uncertainty(x)

    def template_scores(self, probes: Floats, enrolled: Floats, owner: Ints) -> Scores:
        """How much each probe looks like each template, (n, G): the mean over the vectors of a template.

        Args:
            probes: vectors, (n, F).
            enrolled: vectors of the templates, (m, F).
            owner: whose each is, (m,), in 0 … G − 1.
        """
        each = self.scores(probes, enrolled)
        members = np.eye(int(owner.max()) + 1)[owner]
        means: Scores = each @ members / members.sum(0)
        return means


class Way(ABC):
    """A way to be uncertain, and the settings that it is tuned over."""

    name: ClassVar[str]
    settings: ClassVar[tuple[dict[str, Any], ...]] = ({},)

    def settings_for(self, train: Vectors) -> tuple[dict[str, Any], ...]:
        """Those that make sense where this is learnt from.

        Args:
            train: what to learn from.
        """
        return self.settings

    @abstractmethod
    def fit(self, train: Vectors, seed: int, **setting: Any) -> Fitted:
        """The way, trained.

        Args:
            train: what to learn from.
            seed: of everything random.
            setting: one of `settings`.
        """


class Standard:
    """(x − mean)/deviation of the training vectors, clean and poor: what all heads see.

    Args:
        train: whose.
    """

    def __init__(self, train: Vectors) -> None:
        both = np.concatenate([train.clean, train.poor])
        self.mean = torch.from_numpy(both.mean(0))
        self.scale = torch.from_numpy(both.std(0))
        self.scale = torch.where(self.scale > 1e-6 * self.scale.max(), self.scale, torch.ones_like(self.scale))

    def __call__(self, x: Floats) -> Tensor:
        return (torch.from_numpy(np.ascontiguousarray(x, dtype=np.float32)) - self.mean) / self.scale


def train_head(
    head: nn.Module,
    cost: Cost,
    parameters: Iterable[nn.Parameter],
    train: Vectors,
    seed: int,
    dropped: float = 0.2,
) -> None:
    """Train a head in place by Adam: 1,000 batches of 32 identities × 4 vectors, half of them poor.

    Args:
        head: vectors to whatever `cost` takes.
        cost: of a batch, given what the head makes of it and its labels.
        parameters: what is learnt.
        train: what to learn from.
        seed: of batches, noise and dropout.
        dropped: share of the features that is dropped; there is noise on all.
    """
    rng, noise = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
    standard = Standard(train)
    views = torch.stack([standard(train.clean), standard(train.poor)])
    order = np.argsort(train.y, kind="stable")
    rows_of = np.split(order, np.flatnonzero(np.diff(train.y[order])) + 1)
    rows_of = [rows for rows in rows_of if len(rows) > 1]
    each = max(EACH, EACH * IDENTITIES // (4 * len(rows_of)))  # few classes: more vectors of each
    optimiser = torch.optim.AdamW(list(parameters), lr=RATE, weight_decay=DECAY)
    for _ in range(STEPS):
        chosen = rng.choice(len(rows_of), min(IDENTITIES, len(rows_of)), replace=False)
        drawn = [rng.permutation(rows_of[k])[:each] for k in chosen]
        labels = torch.from_numpy(np.repeat(chosen, [len(rows) for rows in drawn]))
        rows = torch.from_numpy(np.concatenate(drawn))
        x = views[torch.randint(0, 2, rows.shape, generator=noise), rows]
        x = x + NOISE * torch.randn(x.shape, generator=noise)
        x = x * (torch.rand(x.shape, generator=noise) >= dropped) / (1 - dropped)
        optimiser.zero_grad()
        cost(head(x), labels).backward()  # type: ignore[no-untyped-call]
        optimiser.step()


def balanced_cost(logits: Tensor, labels: Tensor) -> Tensor:
    """½ mean −log p over matches + ½ mean −log(1 − p) over strangers, of distinct items.

    Args:
        logits: of all pairs of a batch, (n, n).
        labels: (n,).
    """
    same = labels[:, None] == labels
    match = same & ~torch.eye(len(labels), dtype=torch.bool)
    softplus = nn.functional.softplus
    return 0.5 * softplus(-logits[match]).mean() + 0.5 * softplus(logits[~same]).mean()
