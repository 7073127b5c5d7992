"""What is said of a pair by a model that was not calibrated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hedged._odds import expit

UNSURE = 0.5  # η from which on two samples of one embedding match less often than not


class Guess(NamedTuple):
    """What is said, and why.

    Args:
        answer: same, different or unsure.
        rule: Why, in words.
    """

    answer: str
    rule: str


def guess(log_odds: float, etas: Sequence[float], threshold: float | None = None) -> Guess:
    """Same, different or unsure, without a calibration.

    Args:
        log_odds: The model's, of a match.
        etas: The uncertainty of each of the two.
        threshold: The log-odds from which on `hedged evaluate` took pairs for matches; None: 0.

    >>> guess(1.2, (0.1, 0.2))
    Guess(answer='same', rule='the probability is at least 0.5000 (see `hedged calibrate`)')
    """
    if max(etas) > UNSURE:
        return Guess("unsure", f"an uncertainty is above {UNSURE:g} (see `hedged calibrate`)")
    least, where = (0.0, "see `hedged calibrate`") if threshold is None else (threshold, "chosen by `hedged evaluate`")
    above = log_odds >= least
    rule = f"the probability is {'at least' if above else 'below'} {expit(least):.4f} ({where})"
    return Guess("same" if above else "different", rule)
