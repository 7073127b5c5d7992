"""Calibration and decisions as tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hedged.cli._output import print_table

if TYPE_CHECKING:
    from hedged.decisions import Answer, Calibration, Decider, Interval

UNSURE = 0.5  # η from which on two samples of one embedding match less often than not


def print_calibration(found: Calibration, where: str) -> None:
    """How well probabilities come true, before and after; then what is decided, and with what result."""
    trials = {trial.kind.kind: trial.quality for trial in found.choice.trials}
    columns = {"before": found.choice.before} | {
        f"{name} (chosen)" if name == found.kind else name: quality for name, quality in trials.items()
    }
    print_table(
        f"{len(found.pairs):,} pairs of {found.pairs.identities:,} identities, {where}",
        ("where half of the pairs match", *columns),
        [
            ("expected calibration error", *(f"{quality.ece:.4f}" for quality in columns.values())),
            ("Brier score", *(f"{quality.brier:.4f}" for quality in columns.values())),
            ("negative log-likelihood", *(f"{quality.nll:.4f}" for quality in columns.values())),
        ],
    )
    print()
    print_table(f"decisions where {found.decider.base_rate:g} of the pairs match", ("", "value", "95 %"), _rows(found))


def answer_as_rows(answer: Answer, decider: Decider) -> list[tuple[str, str]]:
    """A decision for a table of one pair."""
    name = f"  calibrated, where {decider.base_rate:g} of the pairs match"
    return [(name, f"{answer.probability:.4f}"), ("decision", answer.verdict.value)]


def answer_as_json(answer: Answer, decider: Decider) -> dict[str, Any]:
    """A decision for programs."""
    calibrated = {"probability": answer.probability, "base_rate": decider.base_rate}
    return {"calibrated": calibrated, "decision": answer.verdict.value}


class Guess(NamedTuple):
    """What is said of a pair by a model that was not calibrated.

    Args:
        answer: same, different or unsure.
        rule: Why, in words.
    """

    answer: str
    rule: str


def guess(run: Path, log_odds: float, etas: Sequence[float]) -> Guess:
    """Same, different or unsure, without a calibration: at the threshold of `hedged evaluate`, or at 0.5.

    Args:
        run: The folder of the model.
        log_odds: The model's, of a match.
        etas: The uncertainty of each of the two.
    """
    from hedged._odds import expit

    if max(etas) > UNSURE:
        return Guess("unsure", f"an uncertainty is above {UNSURE:g} (see `hedged calibrate`)")
    found = _evaluated_threshold(run)
    threshold, where = (0.0, "see `hedged calibrate`") if found is None else (found, "chosen by `hedged evaluate`")
    above = log_odds >= threshold
    rule = f"the probability is {'at least' if above else 'below'} {expit(threshold):.4f} ({where})"
    return Guess("same" if above else "different", rule)


def _evaluated_threshold(run: Path) -> float | None:
    """The log-odds from which on `hedged evaluate` took pairs for matches, if it did."""
    from hedged.training import Run

    try:
        content = json.loads(Run(run).metrics_file().read_text(encoding="utf-8"))
        threshold = content["decisions"]["threshold"]["log_odds"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return float(threshold) if isinstance(threshold, int | float) else None


def _rows(found: Calibration) -> list[tuple[str, str, str]]:
    decider, done, threshold = found.decider, found.outcome, found.threshold
    low, high = (
        float(decider.probability(score)) for score in (decider.policy.reject_below, decider.policy.accept_from)
    )
    rows = [("accept from a match probability of", f"{high:.4f}", ""), ("reject below", f"{low:.4f}", "")]
    if threshold:
        name = f"at the threshold for a false-match rate of {threshold.target:g}"
        rows += [
            (name, "", ""),
            ("  false-match rate", f"{threshold.rate:.4f}", _range(threshold.rates)),
            ("  false non-match rate", f"{threshold.misses:.4f}", _range(threshold.miss_rates)),
        ]
    return [
        *rows,
        ("with leave to abstain", "", ""),
        ("  pairs left undecided", f"{done.abstained:.4f}", ""),
        ("  errors among the decided", f"{done.error:.4f}", ""),
        ("  non-matches accepted", f"{done.false_match_rate:.4f}", ""),
        ("  matches rejected", f"{done.false_non_match_rate:.4f}", ""),
    ]


def _range(interval: Interval) -> str:
    return f"{interval.low:.4f} to {interval.high:.4f}"
