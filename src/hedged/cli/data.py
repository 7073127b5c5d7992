"""`hedged data`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedged.cli._output import Force, Json, examples, owning_output, print_json, print_table
from hedged.errors import DataError

if TYPE_CHECKING:
    from hedged.data import NDigit

EXAMPLES = examples(
    "hedged data ndigit --digits 3",
    "hedged data ndigit --split number --part unseen --preview unseen.png",
    "hedged data ndigit --digits 3 --part train --out three.npz",
    "hedged data ndigit --index dataset_mnist_2_number_test_unseen.npz",
)
app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)


class SplitBy(StrEnum):
    """New digits to test on, or new numbers too."""

    INSTANCE = "instance"
    NUMBER = "number"


@app.callback()
def data() -> None:
    """Build or inspect data sets."""


@app.command("ndigit", epilog=EXAMPLES)
def ndigit(
    digits: Annotated[int, typer.Option("--digits", metavar="N", help="Digits per image.")] = 2,
    split: Annotated[
        SplitBy, typer.Option("--split", help="Test on new digits of the same numbers, or on new numbers too.")
    ] = SplitBy.INSTANCE,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Random seed.")] = 0,
    holdout: Annotated[
        float, typer.Option("--holdout", metavar="SHARE", help="Share of the training digits kept for validation.")
    ] = 0.0,
    offline: Annotated[bool, typer.Option("--offline", help="Use scikit-learn's digits instead of MNIST.")] = False,
    index: Annotated[
        Path | None,
        typer.Option("--index", metavar="F.npz", help="Inspect an index file of google/n-digit-mnist instead."),
    ] = None,
    part: Annotated[
        str | None, typer.Option("--part", metavar="NAME", help="Part for --out and --preview. [the first listed]")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="F.npz", help="Write the part as an index file.")] = None,
    preview: Annotated[
        Path | None,
        typer.Option("--preview", metavar="F.png", help="Draw images of the part above their corrupt twins."),
    ] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Build N-digit MNIST, or inspect an index file of it.

    An image is N digits side by side; its class is the number they form. Prints the parts of the data set: train,
    validation (with --holdout), and the test sets: instance, or seen, unseen and all. MNIST is read from the cache, or
    downloaded to it; HEDGED_CACHE sets another folder for the cache.
    """
    from hedged.cli._preview import write_preview
    from hedged.data import write_index

    if out and holdout:
        raise DataError("an index file counts through all digits of MNIST: write it without --holdout")
    with owning_output(out, force), owning_output(preview, force):
        parts = _inspect(index, offline) if index else _build(digits, split, seed, holdout, offline)
        chosen = _choose(parts, part)
        if out:
            write_index(out, chosen)
        if preview:
            write_preview(preview, chosen, seed)
    summary = [_summary(name, images) for name, images in parts.items()]
    if json:
        print_json(summary)
    else:
        title = f"{index or f'{digits}-digit set by {split}'} ({chosen.source})"
        print_table(title, ("part", "digits", "images", "classes", "of a class"), [_cells(s) for s in summary])


def _build(digits: int, split: SplitBy, seed: int, holdout: float, offline: bool) -> dict[str, NDigit]:
    from hedged.data import load_mnist, ndigit_splits, offline_digits

    load = offline_digits if offline else load_mnist
    parts = ndigit_splits(load("train"), load("test"), digits, split.value, seed, holdout)
    validation = {"validation": parts.validation} if parts.validation else {}
    return {"train": parts.train} | validation | {str(name): images for name, images in parts.test.items()}


def _inspect(index: Path, offline: bool) -> dict[str, NDigit]:
    """The images of an index file; whether it is for the training or the test digits, it does not say itself."""
    from hedged.data import load_mnist, offline_digits, read_index

    load = offline_digits if offline else load_mnist
    train, test = load("train"), load("test")
    try:
        return {"of the test digits": read_index(index, test)}
    except DataError:
        return {"of the training digits": read_index(index, train)}


def _choose(parts: Mapping[str, NDigit], wanted: str | None) -> NDigit:
    name = wanted or next(iter(parts))
    if name not in parts:
        raise DataError(f"there is no part {name!r}: choose --part from {', '.join(parts)}")
    return parts[name]


def _summary(name: str, images: NDigit) -> dict[str, str | int]:
    import numpy as np

    counts = np.unique(images.labels.numpy(), return_counts=True)[1]
    return {
        "part": name,
        "digits": images.n_digits,
        "images": len(images),
        "classes": images.n_classes,
        "fewest_of_a_class": int(counts.min()),
        "most_of_a_class": int(counts.max()),
        "source": images.source,
    }


def _cells(s: Mapping[str, str | int]) -> tuple[str, ...]:
    fewest, most = s["fewest_of_a_class"], s["most_of_a_class"]
    span = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
    return str(s["part"]), str(s["digits"]), f"{s['images']:,}", f"{s['classes']:,}", span
