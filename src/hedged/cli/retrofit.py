"""`hedged retrofit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hedged.cli._output import Force, Json, examples, print_json, print_table, refuse_overwriting
from hedged.errors import DataError

EXAMPLES = examples(
    "hedged retrofit vectors.npz --out runs/head",
    "hedged retrofit vectors.npz --poor blurred.npz --out runs/head",
    "hedged retrofit vectors.npy --labels names.txt --out runs/head",
)


def retrofit(
    vectors: Annotated[
        Path, typer.Argument(metavar="VECTORS", help="A file of vectors with their labels: .npz, .parquet or .npy.")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="RUN", help="Folder to write the head to.")],
    labels: Annotated[
        Path | None,
        typer.Option("--labels", metavar="FILE", help="File with the labels of the rows, if VECTORS has none."),
    ] = None,
    poor: Annotated[
        Path | None,
        typer.Option("--poor", metavar="FILE", help="The same inputs in worse quality: a file with the same rows."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Random seed.")] = 0,
    force: Force = False,
    json: Json = False,
) -> None:
    """Fit a hedged head to vectors of any model.

    Compares the head with cosine similarity, LDA and PLDA on held-out identities, calibrates it there, and writes it to
    RUN. From Python, `hedged.Retrofit.load` reads it.
    """
    from hedged.data.features.files import read_features
    from hedged.retrofit import Retrofit

    refuse_overwriting(out / "retrofit.json", force)
    table = read_features(vectors, labels)
    if table.labels is None:
        raise DataError(f"{vectors} has no labels: add an array `labels`, or name a file of them with --labels")
    worse = None if poor is None else read_features(poor).vectors
    head = Retrofit(seed=seed, verbose=True).fit(table.vectors, table.labels, poor=worse)
    head.save(out)
    report = head.report_
    if json:
        print_json({"out": str(out), **report.as_dict()})
        return
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
        print(note)
