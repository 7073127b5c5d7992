"""How the weight of matching pairs changes in the course of training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hedged.errors import ValueRangeError


@final
@dataclass(frozen=True)
class PositiveWeight:
    """w(t) = end · (start/end)^max(1 − t/over, 0): from `start` to `end` by equal factors, then constant.

    Much weight on matching pairs first brings all that an image could be together; little weight later tells classes
    apart. A mixture that starts with little learns a code instead, each class in several places at once.

    Args:
        start: The weight to begin with, in (0, 1).
        end: The weight to end with, in (0, 1).
        over: The share of training over which it changes, in (0, 1].

    In a training loop of your own: `loss.positive_weight = schedule(step / steps)`.

    >>> schedule = PositiveWeight(start=0.5, end=0.05)
    >>> schedule(0.0), round(schedule(0.25), 4), schedule(0.5), schedule(1.0)
    (0.5, 0.1581, 0.05, 0.05)
    """

    start: float = 0.5
    end: float = 0.05
    over: float = 0.5

    def __post_init__(self) -> None:
        if not (0 < self.start < 1 and 0 < self.end < 1 and 0 < self.over <= 1):
            raise ValueRangeError(f"start, end and over must be between 0 and 1, got {self}")

    def __call__(self, done: float) -> float:
        """The weight when this share of training is done.

        Args:
            done: Steps taken divided by all steps, in [0, 1].
        """
        left = max(1 - done / self.over, 0)
        return float(self.end * (self.start / self.end) ** left)
