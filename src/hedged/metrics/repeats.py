"""An evaluation that draws samples, done over and over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from hedged.metrics._arrays import check_at_least


@final
@dataclass(frozen=True)
class Repeated:
    """One number, evaluated several times.

    Args:
        values: What each evaluation gave.
    """

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Their mean."""
        return float(np.mean(self.values))

    @property
    def std(self) -> float:
        """Their standard deviation about that mean: 0 for a single value."""
        return float(np.std(self.values))


def repeat(evaluate: Callable[[int], float], times: int = 10) -> Repeated:
    """evaluate(0), …, evaluate(times − 1): a sampled η is noisy, so the paper evaluates ten times.

    Args:
        evaluate: From a seed to a number.
        times: How often to evaluate.

    >>> repeat(lambda seed: seed % 2, times=4)
    Repeated(values=(0.0, 1.0, 0.0, 1.0))
    >>> repeat(lambda seed: seed % 2, times=4).mean
    0.5
    """
    check_at_least("times", times, 1)
    return Repeated(tuple(float(evaluate(seed)) for seed in range(times)))
