"""`hedged embed`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hedged._files import make_folder
from hedged.cli._columns import check_layout, columns_of, write_columns
from hedged.cli._inputs import Images, SkipBroken, embedded, inputs_of, refusal, report_skipped, takes_vectors
from hedged.cli._output import Force, Json, examples, print_json, refuse_overwriting
from hedged.cli._runs import Model, load_embedder
from hedged.errors import DataError

EXAMPLES = examples(
    "hedged embed runs/demo a.png b.png --out two.npz",
    "hedged embed runs/demo photos/ --out photos.parquet",
    "hedged embed runs/head features.npy --out embedded.npz",
)


def embed(
    run: Model,
    images: Images,
    out: Annotated[Path, typer.Option("--out", metavar="F", help="File to write, .npz or .parquet.")],
    skip_broken: SkipBroken = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Embed images or vectors, and write the embeddings to a file.

    F holds `ids` (paths; for vectors FILE:ROW, or the ids in their file), `means` and `variances` (D numbers per row; C
    × D for a mixture of C Gaussians), `uncertainty` (η) and, if the model tells it, `novelty`, in the order given,
    the images of a folder sorted by path; also `kind`, `match_model` and its settings, such as `scale` and `bias`
    of a match curve. Writing .parquet needs an extra: pip install 'hedged[parquet]'.
    """
    check_layout(out)
    refuse_overwriting(out, force)
    make_folder(out.parent)
    embedder = load_embedder(run)
    from hedged.distributions import concatenate  # after it: loading a model decides how torch is imported

    inputs = inputs_of(embedder, images, once=False)
    broken: list[str] = []
    parts = list(embedded(embedder, inputs, broken))
    if broken and not skip_broken:
        raise DataError(refusal(broken, len(inputs.ids)))
    report_skipped(broken, len(inputs.ids))
    kind = "vector" if takes_vectors(embedder) else "image"
    names, z = [name for some, _ in parts for name in some.ids], concatenate([z for _, z in parts])
    novelty = [one for some, _ in parts for one in some.novelty]
    columns = columns_of(embedder, z, names, novelty)
    write_columns(out, columns)
    if json:
        print_json({"out": str(out), f"{kind}s": len(names), "dim": z.dim, "kind": columns["kind"]})
    else:
        print(f"embedded {len(names):,} {kind}{'s' * (len(names) != 1)} into {out}")
