"""`hedged evaluate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hedged.cli._output import Json, examples, print_json
from hedged.cli._pairs import PairsFile, PairsImages, evaluate_pairs
from hedged.cli._runs import RunFolder
from hedged.errors import ConfigError, DataError

if TYPE_CHECKING:
    from hedged.data import Dataset
    from hedged.training import Config

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
            help="Which part to measure on: of a split by number seen, unseen or all; validation, if the run has one. "
            "[the first test set]",
        ),
    ] = None,
    pairs: PairsFile = None,
    images: PairsImages = None,
    report: Annotated[bool, typer.Option("--report", help="Also write RUN/report.html, a page with pictures.")] = False,
    json: Json = False,
) -> None:
    """Measure a trained model.

    On clean and corrupt test images: verification, identification by neighbours, and whether the uncertainty tells
    where these fail, beside the paper's numbers where it has any. The test set is that of RUN/config.toml. The numbers
    go to RUN/metrics.json, with `--split NAME` to RUN/metrics-NAME.json. Pairs are also decided on: by the calibration
    if `hedged calibrate` has left one, else, of images of your own, at a threshold that is chosen on the validation
    identities. `--pairs` does only that, for the pairs you list, into RUN/metrics-pairs.json.
    """
    from hedged.cli._scores import print_scores
    from hedged.evaluation import measure
    from hedged.training import Run

    opened = Run(run)
    config, embedder = opened.trained()
    if pairs:
        if split or report:
            raise ConfigError("--pairs goes with neither --split nor --report: leave them out")
        evaluate_pairs(opened, pairs, images, json)
        return
    name, data, validation = _images(config, split)
    part = split or ""
    results = measure(opened, embedder, data, part, report, validation=validation)
    if json:
        print_json(results.metrics)
        return
    print_scores(results, name)
    print(f"\nnumbers: {opened.metrics_file(part)}")
    if report:
        print(f"report: {opened.report_file(part)}")


def _images(config: Config, wanted: str | None) -> tuple[str, Dataset, Dataset | None]:
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
    name = wanted or next(iter(data.test))
    chosen = parts[name]
    return name, chosen, None if chosen is data.validation else data.validation
