"""`hedged embed`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedged.cli._columns import check_layout, columns_of, write_columns
from hedged.cli._output import LOGGER, Force, Json, examples, print_json, refuse_overwriting
from hedged.cli._runs import Model, load_embedder
from hedged.cli._vectors import read_rows, takes_vectors
from hedged.errors import DataError

if TYPE_CHECKING:
    from hedged.distributions import Distribution
    from hedged.models import Embedder

EXAMPLES = examples(
    "hedged embed runs/demo a.png b.png --out two.npz",
    "hedged embed runs/demo photos/ --out photos.parquet",
    "hedged embed runs/head features.npy --out embedded.npz",
)
BATCH = 256


def embed(
    run: Model,
    images: Annotated[
        list[Path],
        typer.Argument(
            metavar="IMAGES",
            help="Image files, or folders of them (searched whole); for a model of vectors, .npy, .npz or .parquet.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="F", help="File to write, .npz or .parquet.")],
    skip_broken: Annotated[
        bool, typer.Option("--skip-broken", help="Name files that cannot be decoded, and embed the others.")
    ] = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Embed images, or vectors, into a file.

    F holds `ids` (the paths; of vectors FILE:ROW, or the ids that their file has), `means` and `variances` (rows of D
    numbers; of C × D for a mixture of C Gaussians) and `uncertainty` (η), in the order given, folders in order of their
    paths; also `kind`, and `scale` and `bias` of the match curve. A .parquet file needs the extra: pip install
    'hedged[parquet]'.
    """
    check_layout(out)
    refuse_overwriting(out, force)
    embedder = load_embedder(run)
    names: Sequence[str | Path]
    if takes_vectors(embedder):
        kind, (names, vectors) = "vector", read_rows(images, embedder.architecture.shape[0])
        z = embedder.embed(vectors)
    else:
        paths = [path for image in images for path in files_of(image)]
        kind, (z, names) = "image", _embed(embedder, paths, skip_broken)
    columns = columns_of(embedder, z, names)
    write_columns(out, columns)
    if json:
        print_json({"out": str(out), f"{kind}s": len(names), "dim": z.dim, "kind": columns["kind"]})
    else:
        print(f"embedded {len(names):,} {kind}{'s' * (len(names) != 1)} into {out}")


def files_of(path: Path) -> list[Path]:
    """An image itself; of a folder, the images in it and in the folders below."""
    if not path.is_dir():
        return [path]
    from hedged.data.photos.listing import image_files

    files = image_files(path)
    if not files:
        raise DataError(f"the folder {path} holds no image: expected files such as .png or .jpg in it")
    return files


def _embed(embedder: Embedder, paths: list[Path], skip_broken: bool) -> tuple[Distribution, list[Path]]:
    """The embeddings of all files that can be decoded, and which these are; all that cannot are named together."""
    from hedged._progress import progress
    from hedged.distributions import concatenate

    embedded: list[tuple[Distribution, list[Path]]] = []
    broken: list[str] = []
    with progress("embedding", len(paths)) as update:
        for start in range(0, len(paths), BATCH):
            some = paths[start : start + BATCH]
            try:
                embedded.append((embedder.embed(some, BATCH), some))
            except DataError:
                embedded += _one_by_one(embedder, some, broken)
            update(min(start + BATCH, len(paths)))
    if broken and not (skip_broken and embedded):
        raise DataError(_refusal(broken, len(paths)))
    for words in broken:
        LOGGER.warning("skipped: %s", words)
    return concatenate([z for z, _ in embedded]), [path for _, some in embedded for path in some]


def _one_by_one(embedder: Embedder, paths: list[Path], broken: list[str]) -> list[tuple[Distribution, list[Path]]]:
    """What can be embedded of a batch that holds broken files; why the others cannot is added to `broken`."""
    found = []
    for path in paths:
        try:
            found.append((embedder.embed(path), [path]))
        except DataError as error:
            broken.append(str(error))
    return found


def _refusal(broken: list[str], total: int) -> str:
    if total == 1:
        return broken[0]
    named = "".join(f"\n  {words}" for words in broken)
    return (
        f"{len(broken):,} of {total:,} files cannot be embedded: remove them, or use --skip-broken for the rest{named}"
    )
