"""`hedged retrofit`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedged._files import path_text
from hedged.cli._output import Force, Json, examples, print_json, print_table, refuse_overwriting, say
from hedged.errors import ConfigError, DataError

if TYPE_CHECKING:
    from hedged.data import Features, FeaturesConfig, Splits
    from hedged.retrofit import Report, Retrofit
    from hedged.training import Run

EXAMPLES = examples(
    "hedged retrofit vectors.npz --out runs/head",
    "hedged retrofit vectors.npz --poor blurred.npz --out runs/head",
    "hedged retrofit vectors.npy --labels names.txt --out runs/head",
    "hedged retrofit all.npz --test-share 0 --validation-share 0 --out runs/final",
)
TEST_SHARE, VALIDATION_SHARE = 0.2, 0.1


def retrofit(
    vectors: Annotated[
        Path, typer.Argument(metavar="VECTORS", help="A file of vectors with their labels: .npz, .parquet or .npy.")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="RUN", help="Folder for the run: config and model.")],
    labels: Annotated[
        Path | None,
        typer.Option("--labels", metavar="FILE", help="File with the labels of the rows, if VECTORS has none."),
    ] = None,
    poor: Annotated[
        Path | None,
        typer.Option("--poor", metavar="FILE", help="The same inputs in worse quality: a file with the same rows."),
    ] = None,
    test_share: Annotated[
        float | None,
        typer.Option(
            "--test-share",
            min=0,
            max=0.99,
            metavar="SHARE",
            help="Share of the identities held out for `hedged evaluate`. [by the column split of VECTORS, else 0.2]",
        ),
    ] = None,
    validation_share: Annotated[
        float,
        typer.Option(
            "--validation-share",
            min=0,
            max=0.99,
            metavar="SHARE",
            help="Share of the others held out for `hedged calibrate`.",
        ),
    ] = VALIDATION_SHARE,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Random seed.")] = 0,
    force: Force = False,
    json: Json = False,
) -> None:
    """Fit a hedged head to vectors of any model.

    Compares the head with cosine similarity, LDA and PLDA on held-out identities, and calibrates it there. RUN is then
    a run like any other, for `evaluate`, `calibrate`, `match`, `index`, `search`, `identify` and `embed`. Some
    identities are held out from the fit, so that these verbs can measure on new ones; to fit to all, set both shares
    to 0.
    """
    from hedged.retrofit import Retrofit
    from hedged.training import RetrofitConfig, Run

    run = Run(out)
    refuse_overwriting(_there(run), force)
    section = _section(vectors, labels, poor, test_share, validation_share, seed)
    parts = section.open()
    with run.owned():
        refuse_overwriting(_there(run), force)  # again: another process may have been at work until now
        head = _fit(Retrofit(seed=seed, verbose=True), parts.train)
        parameters = {name: value for name, value in head.get_params().items() if name != "verbose"}
        config = RetrofitConfig(data=section, retrofit=parameters)
        head.embedder_.notes |= {"digest": config.digest(), "data": parts.train.source}
        run.keep_config(config)
        head.save(out)
        run.calibration_file.unlink(missing_ok=True)  # of the head that was here before
    kept = {name: part.n_classes for name, part in _kept(parts).items()}
    if json:
        print_json({"out": str(out), "kept": kept, **head.report_.as_dict()})
        return
    _print(head.report_, kept, out)


def _there(run: Run) -> Path | None:
    """A file of a run that is in the folder already."""
    files = (run.model_file, run.checkpoint_file, run.config_file)
    return next((file for file in files if file.exists()), None)


def _section(
    vectors: Path, labels: Path | None, poor: Path | None, test_share: float | None, validation_share: float, seed: int
) -> FeaturesConfig:
    """The section [data] of the run: which vectors, and which identities are kept from the fit."""
    from pydantic import ValidationError

    from hedged.data import FeaturesConfig
    from hedged.data.features.files import read_features

    _refuse_names_that_are_no_text(vectors, labels, poor)
    table = read_features(vectors, labels)
    if table.labels is None:
        raise DataError(f"{vectors} has no labels: add an array `labels`, or name a file of them with --labels")
    by_column = table.split is not None and test_share is None
    settings = {
        "source": "features",
        "path": str(vectors.resolve()),
        "size": table.vectors.shape[1],
        "labels": str(labels.resolve()) if labels else "",
        "corrupt_path": str(poor.resolve()) if poor else "",
        "split": "column" if by_column else "share",
        "test_share": TEST_SHARE if test_share is None else test_share,
        "validation_share": validation_share,
        "seed": seed,
    }
    try:
        return FeaturesConfig.model_validate(settings)
    except ValidationError as error:  # a seed beyond 64 bits, a path that is no text
        first = error.errors()[0]
        raise ConfigError(f"{first['loc'][-1]}: {first['msg'].lower()}, got {first['input']!r}") from error


def _refuse_names_that_are_no_text(*paths: Path | None) -> None:
    """Refuse paths that config.toml, which is UTF-8, cannot hold."""
    for path in filter(None, paths):
        try:
            str(path.absolute()).encode()
        except UnicodeEncodeError as error:
            name = path_text(path.absolute())
            raise DataError(
                f"{name} is no text in UTF-8, so that config.toml cannot name it: rename it, or its folder"
            ) from error


def _fit(head: Retrofit, train: Features) -> Retrofit:
    names = [train.names[label] for label in train.labels.tolist()]
    return head.fit(train.vectors, names, poor=train.twins)


def _kept(parts: Splits[Features]) -> dict[str, Features]:
    """The parts that the fit does not see."""
    return {**parts.test, **({"validation": parts.validation} if parts.validation else {})}


def _print(report: Report, kept: dict[str, int], out: Path) -> None:
    from hedged.data.splits import enough_share
    from hedged.decisions.pairs import LEAST_IDENTITIES

    rows = [
        (
            m.way,
            f"{m.balanced_accuracy:.3f}",
            f"{m.average_precision:.3f}",
            *("–" if v is None else f"{v:.3f}" for v in (m.poor_balanced_accuracy, m.poor_average_precision)),
        )
        for m in report.compared
    ]
    title = f"{report.chosen}, for {report.vectors:,} vectors of {report.identities:,} identities, in {out}"
    print_table(title, ("held-out identities", "accuracy", "AP", "poor: accuracy", "AP"), rows)
    for note in report.notes:
        say(note)
    verbs = {"test": "evaluate", "validation": "calibrate"}
    for name, count in kept.items():
        if name == "validation" and count < LEAST_IDENTITIES:
            share = enough_share(LEAST_IDENTITIES, report.identities + count)
            say(
                f"{count:,} identities were kept from the fit, too few for `hedged calibrate`, which needs "
                f"{LEAST_IDENTITIES}: to calibrate as well, fit again with --validation-share {share:g} --force"
            )
        else:
            say(f"{count:,} identities were kept from the fit: hedged {verbs[name]} {out}")
