"""Calibration and decisions as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedged.cli._output import print_table, say

if TYPE_CHECKING:
    from hedged.decisions import Answer, Calibration, Decider, Interval


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
    say()
    print_table(f"decisions where {found.decider.base_rate:g} of the pairs match", ("", "value", "95 %"), _rows(found))


def answer_as_rows(answer: Answer, decider: Decider) -> list[tuple[str, str]]:
    """A decision for a table of one pair."""
    name = f"  calibrated, where {decider.base_rate:g} of the pairs match"
    return [(name, f"{answer.probability:.4f}"), ("decision", answer.verdict.value)]


def answer_as_json(answer: Answer, decider: Decider) -> dict[str, Any]:
    """A decision for programs."""
    calibrated = {"probability": answer.probability, "base_rate": decider.base_rate}
    return {"calibrated": calibrated, "decision": answer.verdict.value}


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
