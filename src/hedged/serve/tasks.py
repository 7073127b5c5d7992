"""What the desk can be asked about inputs. Equal tasks of several requests are done together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from hedged._odds import expit
from hedged.decisions import guess
from hedged.distributions import Distribution
from hedged.match import self_mismatch
from hedged.search import Hit, Identified, Where
from hedged.search.rows import pack
from hedged.serve.audits import without_marks
from hedged.serve.flatten import centres, spreads
from hedged.serve.room import Room

SHOWN_ITEMS = 3  # of each identity
Novelty = Sequence[float | None]
Answer = TypeVar("Answer")


class Task(ABC, Generic[Answer]):
    """A question about inputs; there is an answer for every `inputs_each` of them."""

    inputs_each: ClassVar[int] = 1

    @abstractmethod
    def answers(self, room: Room, z: Distribution, novelty: Novelty) -> list[Answer]:
        """An answer for each input, or each pair.

        Args:
            room: The model and the store.
            z: The embeddings of the inputs.
            novelty: As many; None where it is not known.
        """


@final
@dataclass(frozen=True)
class Embed(Task[dict[str, Any]]):
    """What is the embedding?"""

    def answers(self, room: Room, z: Distribution, novelty: Novelty) -> list[dict[str, Any]]:
        means, variances = z.mean.tolist(), z.variance.tolist()
        etas = self_mismatch(z, room.model.embedder.match_model).tolist()
        return [
            {
                "kind": z.kind,
                "mean": means[i],
                "variance": variances[i],
                "uncertainty": etas[i],
                "novelty": novelty[i],
            }
            for i in range(len(z))
        ]


@final
@dataclass(frozen=True)
class Kept:
    """What is to be stored of an input.

    Args:
        packed: Its embedding as stores keep it.
        novelty: How unlike training inputs it is; None where it is not known.
        best: The stored item that matches it best; None in an empty store.
        probability: That the two match, calibrated if the model is.
    """

    packed: NDArray[np.float32]
    novelty: float | None
    best: Hit | None
    probability: float


@final
@dataclass(frozen=True)
class Keep(Task[Kept]):
    """What is to be stored?"""

    def answers(self, room: Room, z: Distribution, novelty: Novelty) -> list[Kept]:
        found = room.asked(lambda: room.index.search(z, 1))
        return [
            Kept(row, new, hits[0], _probability(room, hits[0])) if hits else Kept(row, new, None, 0.0)
            for row, new, hits in zip(pack(z), novelty, found, strict=True)
        ]


@final
@dataclass(frozen=True)
class Match(Task[dict[str, Any]]):
    """Do two inputs match, and why?"""

    inputs_each: ClassVar[int] = 2

    def answers(self, room: Room, z: Distribution, novelty: Novelty) -> list[dict[str, Any]]:
        model = room.model.embedder.match_model
        first, second = z[0::2], z[1::2]
        logits = model.logit(first, second).double().tolist()
        etas = self_mismatch(z, model).tolist()
        shares = model.by_dimension(first, second)
        gaps = (centres(first) - centres(second)).double()
        wide = (spreads(first) + spreads(second)).double().sqrt()
        found = []
        for i, logit in enumerate(logits):
            pair = slice(2 * i, 2 * i + 2)
            found.append(
                {
                    "probability": float(expit(logit)),
                    "log_odds": logit,
                    **_decided(room, logit, etas[pair]),
                    "uncertainty": etas[pair],
                    "novelty": list(novelty[pair]),
                    "distance": float(gaps[i].norm()),
                    "dimensions": [
                        {
                            "dimension": d,
                            "difference": float(gaps[i, d]),
                            "spread": float(wide[i, d]),
                            "log_odds": None if shares is None or d >= shares.shape[-1] else float(shares[i, d]),
                        }
                        for d in range(z.dim if shares is None else shares.shape[-1])
                    ],
                }
            )
        return found


@final
@dataclass(frozen=True)
class Search(Task[dict[str, Any]]):
    """Which stored items match best?

    Args:
        k: How many.
        where: Only among items with these values.
    """

    k: int
    where: tuple[Where, ...] = ()

    def answers(self, room: Room, z: Distribution, novelty: Novelty) -> list[dict[str, Any]]:
        etas = self_mismatch(z, room.model.embedder.match_model).tolist()
        found = room.asked(lambda: room.index.search(z, self.k, self.where))
        return [
            {
                "uncertainty": eta,
                "novelty": new,
                "hits": [
                    {
                        "rank": hit.rank,
                        "id": hit.id,
                        "label": hit.label,
                        "probability": hit.match_probability,
                        "log_odds": hit.logit,
                        "uncertainty": hit.uncertainty,
                        "metadata": without_marks(hit.metadata),
                    }
                    for hit in hits
                ],
            }
            for hits, eta, new in zip(found, etas, novelty, strict=True)
        ]


@final
@dataclass(frozen=True)
class Identify(Task[dict[str, Any]]):
    """Who is it, or nobody?

    Args:
        top: How many identities an answer lists.
        none_prior: The share of inputs that show nobody in the store.
        coverage: The share of candidate sets that shall hold the right answer; None: no sets.
    """

    top: int
    none_prior: float
    coverage: float | None

    def answers(self, room: Room, z: Distribution, novelty: Novelty) -> list[dict[str, Any]]:
        def ask() -> list[dict[str, Any]]:
            identifier = room.identifier(self.none_prior, self.coverage)
            found = identifier.identify(z, self.top)
            return [
                self._content(room, one, z[i : i + 1], new)
                for i, (one, new) in enumerate(zip(found, novelty, strict=True))
            ]

        return room.asked(ask)

    def _content(self, room: Room, one: Identified, z: Distribution, novelty: float | None) -> dict[str, Any]:
        best = [
            {
                "label": each.label,
                "probability": each.probability,
                "log_odds": each.logit,
                "images": each.images,
                "items": room.items_of(each.label, z, SHOWN_ITEMS),
            }
            for each in one.best
        ]
        return {
            "label": one.label,
            "probability": one.probability,
            "none_probability": one.none_probability,
            "uncertainty": one.uncertainty,
            "novelty": novelty,
            "decision": _decision(room, one),
            "best": best,
            "candidates": None if one.candidates is None else one.candidates._asdict(),
        }


def _probability(room: Room, hit: Hit) -> float:
    """That a stored item matches, calibrated if the model is."""
    decider = room.model.decider
    return float(decider.probability(hit.logit)) if decider else hit.match_probability


def _decision(room: Room, one: Identified) -> str | None:
    """What to do about the best identity."""
    return one.verdict(room.model.decider).value if room.model.decider else None


def _decided(room: Room, logit: float, etas: list[float]) -> dict[str, Any]:
    decider = room.model.decider
    if decider is None:
        said = guess(logit, etas, room.model.threshold)
        return {"calibrated": None, "decision": said.answer, "rule": said.rule}
    answer = decider.answer(logit)
    return {
        "calibrated": {"probability": answer.probability, "base_rate": decider.base_rate},
        "decision": answer.verdict.value,
        "rule": "by the thresholds of the calibration",
    }
