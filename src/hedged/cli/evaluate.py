"""`hedged evaluate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hedged._files import make_folder
from hedged.cli._output import Json, examples, print_json, say
from hedged.cli._pairs import PairsFile, PairsImages, evaluate_pairs
from hedged.cli._runs import RunFolder
from hedged.errors import ConfigError, DataError

if TYPE_CHECKING:
    from hedged.data import Dataset
    from hedged.training import RunConfig

EXAMPLES = examples(
    "hedged evaluate runs/first",
    "hedged evaluate runs/first --report",
    "hedged evaluate runs/by-number --split unseen --json",
    "hedged evaluate runs/faces --pairs lfw/pairs.txt",
)


def evaluate(
    run: RunFolder,
    split: Annotated[
        str | None,
        typer.Option(
            "--split",
            metavar="NAME",
            help="Part to evaluate on: seen, unseen or all for a split by number; validation, if the run has one. "
            "[the first test set]",
        ),
    ] = None,
    pairs: PairsFile = None,
    images: PairsImages = None,
    report: Annotated[bool, typer.Option("--report", help="Also write RUN/report.html, with figures.")] = False,
    json: Json = False,
) -> None:
    """Evaluate a trained model.

    Measures verification, identification by nearest neighbours, and how well the uncertainty predicts failures. The
    test set is that of RUN/config.toml, clean and corrupt; the paper's numbers are shown beside where there are any.
    Pairs are also accepted or rejected: by the calibration, if `hedged calibrate` has been run, or else, for your own
    data, at a threshold chosen on the validation identities. Writes RUN/metrics.json, or RUN/metrics-NAME.json with
    `--split NAME`.

    With `--pairs`, only the pairs in FILE are decided on, and RUN/metrics-pairs.json is written.
    """
    from hedged.cli._scores import print_scores
    from hedged.evaluation import measure
    from hedged.training import Run

    if pairs and (split or report):
        raise ConfigError("--pairs goes with neither --split nor --report: leave them out")
    opened = Run(run)
    config, embedder = opened.trained()
    make_folder(opened.folder)  # one that cannot be written is refused before the work
    if pairs:
        evaluate_pairs(opened, pairs, images, json)
        return
    name, data, validation = _images(config, split)
    part = split or ""
    results = measure(opened, embedder, data, part, report, validation=validation)
    if json:
        print_json(results.metrics)
        return
    print_scores(results, name)
    say(f"\nnumbers: {opened.metrics_file(part)}")
    if report:
        say(f"report: {opened.report_file(part)}")


def _images(config: RunConfig, wanted: str | None) -> tuple[str, Dataset, Dataset | None]:
    """The name of what to measure on, that itself, and what to choose a threshold on: other images, or none."""
    from hedged.training import build_data

    data = build_data(config)
    parts = dict(data.test)
    if data.validation:
        parts["validation"] = data.validation
    if wanted and wanted not in parts:
        raise DataError(
            f"this run was trained with {config.data.split_settings}, "
            f"whose test sets are {', '.join(parts)}, not {wanted}: choose one of these with --split"
        )
    name = wanted or data.first_test[0]
    chosen = parts[name]
    return name, chosen, None if chosen is data.validation else data.validation
