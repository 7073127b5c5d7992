"""`hedged export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hedged.cli._output import Force, Json, examples, owning_output, print_json, print_table, say
from hedged.cli._runs import Model, load_embedder
from hedged.errors import ConfigError

EXAMPLES = examples(
    "hedged export runs/dogs --onnx dogs.onnx",
    "hedged export hedged:ndigit-2d --onnx digits.onnx --force",
    "hedged export runs/dogs --score duckdb > score.sql",
)


def export(
    run: Model,
    onnx: Annotated[Path | None, typer.Option("--onnx", metavar="FILE", help="ONNX file to write.")] = None,
    score: Annotated[
        str | None,
        typer.Option("--score", metavar="ENGINE", help="Print the score: postgresql, clickhouse, duckdb or vespa."),
    ] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Write a model as one ONNX file, or its score for a database.

    The ONNX file is for programs without torch. It takes any number of inputs, and gives their means, variances, η and,
    if the model tells it, novelty. Its metadata says how inputs are prepared and compared, and holds the calibration,
    if there is one. The file is compared with the model before it is written. `hedged.runtime` opens it: embed, match
    and decide with NumPy and onnxruntime alone. It needs an extra: pip install 'hedged[onnx]'.

    The score is SQL that makes a function hedged_log_odds of two embeddings, or a rank profile for Vespa: what the
    engine then computes are the log-odds that `hedged match` gives.
    """
    if (onnx is None) == (score is None):
        raise ConfigError("a model is exported as --onnx FILE, or its score as --score ENGINE: give one of the two")
    if score is not None:
        _print_score(run, score, json)
    if onnx is not None:
        with owning_output(onnx, force):
            _write_onnx(run, onnx, json)


def _print_score(run: Path, engine: str, json: bool) -> None:
    embedder = load_embedder(run)
    from hedged.search import Header, engine_score

    text = engine_score(Header.of(embedder), engine)
    if json:
        print_json({"engine": engine, "score": text})
    else:
        say(text.removesuffix("\n"))


def _write_onnx(run: Path, onnx: Path, json: bool) -> None:
    embedder = load_embedder(run)
    from hedged.decisions import load_decider  # after it: loading a model decides how torch is imported
    from hedged.models.export import export_onnx, require_exporter

    require_exporter()
    decider = load_decider(run, embedder.fingerprint())
    written = export_onnx(embedder, onnx, decider.describe() if decider else None)
    told = written.description
    if json:
        print_json({"out": str(onnx), "bytes": written.size, **told})
        return
    shape = "×".join(map(str, told["input"]["shape"]))
    rows = [
        ("input", f"{told['input']['kind']}s of {shape}"),
        ("outputs", ", ".join(told["outputs"])),
        ("decisions", "as calibrated" if decider else "none, for it is not calibrated"),
        ("size", f"{written.size:,} bytes"),
    ]
    print_table(f"{run} written to {onnx}", ("", "value"), rows)
