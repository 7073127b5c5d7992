"""`hedged evaluate --pairs`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hedged.cli._output import print_json, print_table

if TYPE_CHECKING:
    from hedged.evaluation import Evaluation
    from hedged.models import Embedder
    from hedged.training import Config

FILE = "metrics-pairs.json"


def evaluate_pairs(
    config: Config, embedder: Embedder, file: Path, images: Path | None, run: Path, as_json: bool
) -> None:
    """Decide on the pairs that a file lists, tell how many were right, and keep the numbers."""
    from hedged._files import write_json
    from hedged.data import read_pairs
    from hedged.evaluation import decide_listed
    from hedged.evaluation.headline import decision_rows

    listed = read_pairs(file, images)
    decisions = decide_listed(embedder, listed, _validation(config, embedder), config.data.on_broken_file)
    metrics = {"decisions": decisions.metrics(), "file": str(file)}
    write_json(run / FILE, metrics)
    if as_json:
        print_json(metrics)
        return
    rows = [(row.name, f"{row.measured:.{row.decimals}f}") for row in decision_rows(decisions)]
    rows.append(("threshold, in log-odds", f"{decisions.threshold:.3f}"))
    print_table(f"{len(decisions.pairs):,} pairs of {file}", ("", "measured"), rows)
    print(f"\nthe threshold was chosen on {decisions.chosen_on}")
    print(f"numbers: {run / FILE}")


def _validation(config: Config, embedder: Embedder) -> Evaluation | None:
    """What a threshold can be chosen on: the validation part of the run's own images, if they are still there."""
    from hedged.evaluation import Evaluation
    from hedged.training import build_data

    if not config.data.can_validate():
        return None
    validation = build_data(config).validation
    return Evaluation(embedder, validation) if validation else None
