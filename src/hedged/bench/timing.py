"""Times of several ways to do one thing, taken in turns, and what they must show."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

REPEATS = 5


class Line(NamedTuple):
    """What was measured, as a ratio, and what was asked: a bound from above if `at_most`, else from below.

    >>> Line("half as long", 0.5, 0.6, at_most=True).holds
    True

    Args:
        name: What was measured.
        ratio: What it came to.
        asked: The bound.
        at_most: Whether the bound is from above.
    """

    name: str
    ratio: float
    asked: float
    at_most: bool = False

    @property
    def holds(self) -> bool:
        """Whether the ratio is within its bound."""
        return self.ratio <= self.asked if self.at_most else self.ratio >= self.asked

    def content(self) -> dict[str, Any]:
        """The line as `hedged bench --json` prints it."""
        return {"name": self.name, "ratio": round(self.ratio, 4), "asked": self.asked, "holds": self.holds}


def seconds(work: Callable[[], Any]) -> float:
    """How long a piece of work takes.

    Args:
        work: What to run.
    """
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def side_by_side(*ways: Callable[[], Any], repeats: int = REPEATS) -> list[float]:
    """The median seconds of each way. All of them once first, to warm up; then in turns, since machines are noisy.

    >>> len(side_by_side(lambda: None, lambda: None))
    2

    Args:
        ways: The calls to time.
        repeats: How often each is timed.
    """
    for way in ways:
        way()
    times = [[seconds(way) for way in ways] for _ in range(repeats)]
    return [statistics.median(column) for column in zip(*times, strict=True)]
