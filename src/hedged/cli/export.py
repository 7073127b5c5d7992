"""`hedged export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hedged._files import make_folder
from hedged.cli._output import Force, Json, examples, print_json, print_table, refuse_overwriting
from hedged.cli._runs import Model, load_embedder

EXAMPLES = examples(
    "hedged export runs/dogs --onnx dogs.onnx",
    "hedged export hedged:ndigit-2d --onnx digits.onnx --force",
)


def export(
    run: Model,
    onnx: Annotated[Path, typer.Option("--onnx", metavar="FILE", help="ONNX file to write.")],
    force: Force = False,
    json: Json = False,
) -> None:
    """Write a model as one ONNX file, for programs without torch.

    Takes any number of inputs, and gives their means, variances, η and, if the model tells it, novelty. Its metadata
    says how inputs are prepared and compared, and holds the calibration, if there is one. The file is compared with the
    model before it is written. `hedged.runtime` opens it: embed, match and decide with NumPy and onnxruntime alone.
    Exporting needs an extra: pip install 'hedged[onnx]'.
    """
    refuse_overwriting(onnx, force)
    embedder = load_embedder(run)
    from hedged.decisions import load_decider  # after it: loading a model decides how torch is imported
    from hedged.models.export import export_onnx, require_exporter

    require_exporter()
    make_folder(onnx.parent)  # one that cannot be written is refused before the work
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
