"""`hedged embed`."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedged.cli._inputs import Images, SkipBroken, embedded, inputs_of, refusal, report_skipped, takes_vectors
from hedged.cli._output import Force, Json, examples, owning_output, print_json, say
from hedged.cli._runs import Model, load_embedder
from hedged.errors import ConfigError, DataError, RunError

if TYPE_CHECKING:
    from hedged.models import Embedder

EXAMPLES = examples(
    "hedged embed runs/demo a.png b.png --out two.npz",
    "hedged embed runs/demo photos/ --out photos.parquet",
    "hedged embed runs/head features.npy --out embedded.npz",
    "hedged embed runs/dogs photos/ more.tar --ray local --out shards/",
)
ENDINGS = (".npz", ".parquet")


def embed(
    run: Model,
    images: Images,
    out: Annotated[
        Path, typer.Option("--out", metavar="F", help="File to write, .npz or .parquet; with --ray a folder.")
    ],
    skip_broken: SkipBroken = False,
    ray: Annotated[
        str | None,
        typer.Option(
            "--ray",
            metavar="ADDRESS",
            help="Embed on the Ray cluster whose head is at HOST:PORT, or on all cores of this machine: local.",
        ),
    ] = None,
    shard_size: Annotated[
        int | None, typer.Option("--shard-size", min=1, metavar="N", help="With --ray: inputs of a shard. [1000]")
    ] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Embed images or vectors, and write the embeddings to a file.

    F holds `ids` (paths; for vectors FILE:ROW, or the ids in their file), `means` and `variances` (D numbers per row; C
    × D for a mixture of C Gaussians), `uncertainty` (η) and, if the model tells it, `novelty`, in the order given,
    the images of a folder sorted by path; also `kind`, `match_model` and its settings, such as `scale` and `bias`
    of a match curve. Writing .parquet needs an extra: pip install 'hedged[parquet]'.

    With --ray, inputs may also be WebDataset tars and Parquet files of images, and F is a folder of Parquet shards. If
    it is stopped, the same command continues; `hedged index build` takes the folder.
    """
    if ray is not None:
        if force:
            raise ConfigError("--force is not for --ray: shards are continued, so choose a new folder for others")
        _embed_on_ray(run, images, out, ray, shard_size, skip_broken, json)
        return
    if shard_size is not None:
        raise ConfigError("--shard-size is for --ray, which writes shards: leave it out")
    _check_layout(out)
    with owning_output(out, force):
        _embed(run, images, out, skip_broken, json)


def _embed(run: Path, images: list[Path], out: Path, skip_broken: bool, json: bool) -> None:
    embedder = load_embedder(run)
    from hedged.distributions import concatenate  # after it: loading a model decides how torch is imported
    from hedged.models.columns import columns_of, write_columns

    inputs = inputs_of(embedder, images, once=False)
    broken: list[str] = []
    parts = list(embedded(embedder, inputs, broken))
    if broken and not skip_broken:
        raise DataError(refusal(broken, len(inputs.ids)))
    report_skipped(broken, len(inputs.ids))
    names, z = [name for some, _ in parts for name in some.ids], concatenate([z for _, z in parts])
    novelty = [one for some, _ in parts for one in some.novelty]
    columns = columns_of(embedder, z, names, novelty)
    write_columns(out, columns)
    if json:
        content = {"out": str(out), f"{_kind(embedder)}s": len(names), "dim": z.dim, "kind": columns["kind"]}
        print_json(content)
    else:
        say(f"embedded {_counted(embedder, len(names))} into {out}")


def _embed_on_ray(
    run: Path, given: list[Path], out: Path, address: str, shard_size: int | None, skip_broken: bool, json: bool
) -> None:
    if out.suffix in ENDINGS or out.is_file():
        raise RunError(f"with --ray, --out is a folder of shards, got {out}: choose a folder")
    embedder = load_embedder(run)
    from hedged.models.bulk import embed_on_ray
    from hedged.models.bulk.on_ray import SHARD_SIZE

    try:
        with redirect_stdout(sys.stderr):  # on which Ray tells of workers and nodes that it lost
            manifest = embed_on_ray(embedder, given, out, address, shard_size or SHARD_SIZE, not skip_broken)
    except KeyboardInterrupt as error:
        raise RunError("interrupted; finished shards are kept, and the same command continues") from error
    if manifest.broken and not skip_broken:
        raise DataError(f"{refusal(manifest.broken, manifest.count)}\nthe others are in {out}")
    report_skipped(manifest.broken, manifest.count)
    if json:
        content = {"out": str(out), f"{_kind(embedder)}s": manifest.rows, "shards": manifest.pieces}
        print_json(content | {"broken": manifest.broken})
    else:
        say(f"embedded {_counted(embedder, manifest.rows)} into {out}: {manifest.pieces:,} shards")


def _check_layout(out: Path) -> None:
    """Refuse a file of a kind that cannot be written, before any work is done."""
    if out.suffix not in ENDINGS:
        raise RunError(f"{out} does not end in .npz or .parquet, the kinds of file that can be written: rename it")
    if out.suffix == ".parquet":
        from hedged.data.tables import require_pyarrow

        require_pyarrow(f"writing {out}", instead="an .npz file")


def _kind(embedder: Embedder) -> str:
    return "vector" if takes_vectors(embedder) else "image"


def _counted(embedder: Embedder, count: int) -> str:
    return f"{count:,} {_kind(embedder)}{'s' * (count != 1)}"
