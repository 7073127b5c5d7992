"""What is compared on held-out identities, and what is chosen."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hedged.distributions import Gaussian
from hedged.match._evidence.matrix import shared_groups
from hedged.match.evidence import Evidence
from hedged.metrics.verification import average_precision

Floats = NDArray[np.floating[Any]]
Flags = NDArray[np.bool_]
Ints = NDArray[np.intp]
MOST_PAIRED = 3000  # vectors of a fold whose pairs are compared; of more, so many are drawn
MOST_STRANGERS = 100_000  # pairs of a fold that do not match; of more, so many are drawn
AP_SHARE = 0.2  # how much average precision counts beside balanced accuracy
REFUSED = 0.2  # share of inputs, those with the least evidence


@final
@dataclass(frozen=True)
class Measured:
    """What one way reached on identities it had not seen.

    Args:
        way: its name.
        balanced_accuracy: at its best threshold, on the vectors as they are.
        average_precision: of all pairs of them.
        kept_accuracy: balanced accuracy when the most uncertain fifth of the vectors is refused.
        poor_balanced_accuracy: the same on the poorer vectors; None without any.
        poor_average_precision: of all pairs of them.
        poor_kept_accuracy: when the most uncertain fifth of them is refused.
    """

    way: str
    balanced_accuracy: float
    average_precision: float
    kept_accuracy: float
    poor_balanced_accuracy: float | None = None
    poor_average_precision: float | None = None
    poor_kept_accuracy: float | None = None

    @property
    def merit(self) -> float:
        """What ways are compared by: accuracy of all and of what is kept, and a fifth of AP, mean over both kinds."""
        clean = _merit(self.balanced_accuracy, self.average_precision, self.kept_accuracy)
        poor = (self.poor_balanced_accuracy, self.poor_average_precision, self.poor_kept_accuracy)
        if None in poor:
            return clean
        return (clean + _merit(*poor)) / 2  # type: ignore[arg-type]


def _merit(accuracy: float, precision: float, kept: float) -> float:
    return (accuracy + kept) / 2 + AP_SHARE * precision


@final
@dataclass(frozen=True)
class Report:
    """What `Retrofit.fit` compared on held-out identities, and what it chose.

    Args:
        chosen: the name of the way that was chosen, such as "evidence own+unit": branches of an `EvidenceHead`.
        compared: what each way reached, best first.
        identities: how many identities there were.
        vectors: how many vectors.
        dim: dimensions of the embedding.
        settings: of the head that was chosen.
        seconds: that the fit took.
        notes: what a user should know, a sentence each.
    """

    chosen: str
    compared: tuple[Measured, ...]
    identities: int
    vectors: int
    dim: int
    settings: dict[str, Any]
    seconds: float
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """All of it in words and numbers, for a JSON file."""
        return asdict(self)

    @staticmethod
    def restored(content: dict[str, Any]) -> Report:
        """The report that `as_dict` wrote.

        Args:
            content: as it was written.
        """
        told = {**content, "notes": tuple(content["notes"])}
        return Report(**{**told, "compared": tuple(Measured(**measured) for measured in content["compared"])})

    def __str__(self) -> str:
        lines = [f"{self.chosen} was chosen for {self.vectors} vectors of {self.identities} identities:"]
        for m in self.compared:
            poor = "" if m.poor_balanced_accuracy is None else f", poor {m.poor_balanced_accuracy:.3f}"
            lines.append(f"  {m.way:<24} balanced accuracy {m.balanced_accuracy:.3f}{poor}")
        return "\n".join([*lines, *self.notes])


@final
@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of held-out vectors, (n,) each.

    Args:
        factors: log Bayes factors.
        shared: −½ Σ_d log t_d, the part of them that means have no say in.
        matches: whether they match.
        is_poor: whether they are poorer views.
        own1: the log Bayes factor of the first with itself.
        own2: of the second with itself.
        own_shared1: the part of `own1` that the mean has no say in.
        own_shared2: of `own2`.
        signs1: of the quality of the first, (n, 3).
        signs2: of the second.
    """

    factors: Floats
    shared: Floats
    matches: Flags
    is_poor: Flags
    own1: Floats
    own2: Floats
    own_shared1: Floats
    own_shared2: Floats
    signs1: Floats
    signs2: Floats

    @staticmethod
    def together(parts: list[Pairs]) -> Pairs:
        """Pairs of several folds."""
        return Pairs(*(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Pairs)))

    def of(self, poor: bool) -> Pairs:
        """Those of poorer vectors only, or of the others only."""
        return self.take(self.is_poor == poor)

    def take(self, rows: Flags | Ints) -> Pairs:
        """Some of them."""
        return Pairs(*(getattr(self, f.name)[rows] for f in fields(Pairs)))

    @property
    def weights(self) -> Floats:
        """So that clean and poor pairs count as much, and among each matches as much as others."""
        w = np.zeros(len(self.factors))
        for poor in (False, True):
            for match in (False, True):
                rows = (self.is_poor == poor) & (self.matches == match)
                w[rows] = 1 / max(rows.sum(), 1)
        return w


def held_out_pairs(seen: list[tuple[Gaussian, Tensor]], y: Ints, rarity: float = 0.0) -> Pairs:
    """Pairs of held-out vectors, and of their poorer views: all that match, and enough of the others.

    Args:
        seen: embeddings of N vectors and signs of their quality; then those of their poorer views, if there are any.
        y: identities, (N,).
        rarity: how it is weighed where the last dimension tells it; 0: it does not.
    """
    rows = np.sort(np.random.default_rng(0).permutation(len(y))[:MOST_PAIRED])
    first, second = np.triu_indices(len(rows), 1)
    matches = y[rows][first] == y[rows][second]
    drawn = np.random.default_rng(1).random(len(matches)) < MOST_STRANGERS / max((~matches).sum(), 1)
    first, second, matches = (pair[matches | drawn] for pair in (first, second, matches))
    parts, model = [], Evidence(rarity=rarity)
    for is_poor, (z, signs) in enumerate(seen):
        kept, told = z[torch.from_numpy(rows)], signs.numpy()[rows].astype(np.float64)
        factors = model.matrix(kept, kept).numpy()[first, second].astype(np.float64)
        own = model.log_factor(kept, kept).detach().numpy().astype(np.float64)
        each = np.arange(len(rows))
        shared, own_shared = _shared(kept, first, second), _shared(kept, each, each)
        parts.append(
            Pairs(
                factors=factors,
                shared=shared,
                matches=matches,
                is_poor=np.full(len(factors), bool(is_poor)),
                own1=own[first],
                own2=own[second],
                own_shared1=own_shared[first],
                own_shared2=own_shared[second],
                signs1=told[first],
                signs2=told[second],
            )
        )
    return Pairs.together(parts)


def _shared(z: Gaussian, first: Ints, second: Ints) -> Floats:
    """−½ Σ_d log t_d of pairs, t = σ₁² + σ₂² − σ₁²σ₂²."""
    total = np.zeros(len(first))
    for group in shared_groups(z.variance):
        spread = z.variance[:, group.start].detach().double().numpy()
        total -= 0.5 * (group.stop - group.start) * np.log(spread[first] + (1 - spread[first]) * spread[second])
    return total


def measure(way: str, pairs: Pairs) -> Measured:
    """What a way reaches on pairs of held-out identities.

    Args:
        way: its name.
        pairs: log Bayes factors of the pairs, or anything that rises with them.
    """
    kinds = [kind for kind in (pairs.of(False), pairs.of(True)) if len(kind.factors)]
    found = [
        (best_balanced_accuracy(kind), average_precision(kind.factors, kind.matches), kept_accuracy(kind))
        for kind in kinds
    ]
    return Measured(way, *(number for of_kind in found for number in of_kind))


def kept_accuracy(pairs: Pairs) -> float:
    """The best balanced accuracy of the pairs that are left when the fifth with the least evidence is refused.

    Args:
        pairs: of one kind; if nothing is left to compare, all of them count.
    """
    least = np.quantile(np.concatenate([pairs.own1, pairs.own2]), REFUSED)
    kept = (pairs.own1 >= least) & (pairs.own2 >= least)
    if pairs.matches[kept].all() or not pairs.matches[kept].any():
        return best_balanced_accuracy(pairs)
    return best_balanced_accuracy(pairs.take(kept))


def best_balanced_accuracy(pairs: Pairs) -> float:
    """½ P(accepted | match) + ½ P(refused | stranger) at the best threshold."""
    order = np.argsort(-pairs.factors, kind="stable")
    matches = pairs.matches[order]
    gain = np.cumsum(matches) / matches.sum() - np.cumsum(~matches) / (~matches).sum()
    return float(0.5 + 0.5 * max(gain.max(), 0.0))
