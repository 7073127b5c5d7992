"""What a claim is, and the models that most claims are about: those of the main table."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import final

from hedged.evaluation import Condition
from hedged.evaluation.reference import BLOCKS, Metric, Model
from hedged.metrics import Vote
from hedged.paper.main_task import SEEDS
from hedged.paper.recipe import recipe
from hedged.paper.shelf import Shelf
from hedged.training import Config

HEDGED: tuple[Model, ...] = ("mog-1", "mog-2")


@final
@dataclass(frozen=True)
class Claim:
    """What the paper says, whether it holds here, and why."""

    text: str
    holds: bool
    evidence: str


def configs(model: Model) -> list[Config]:
    """A model of the main table, in all its settings and with all its seeds."""
    return [recipe(digits, dim, model, seed) for digits, dim in BLOCKS for seed in range(SEEDS)]


def mean(
    shelf: Shelf, model: Model, metric: Metric, gallery: Condition, probe: Condition, vote: Vote | None = None
) -> float:
    """The mean over these of one number, on seen classes."""
    return fmean(shelf.value(config, "seen", metric, gallery, probe, vote) for config in configs(model))
