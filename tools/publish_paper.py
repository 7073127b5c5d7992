"""Put what `hedged paper run all` made where the project keeps it: results/paper and the shipped models.

    python tools/publish_paper.py runs/paper          into this checkout
    python tools/publish_paper.py runs/paper FOLDER   into another
    python tools/publish_paper.py runs/paper FOLDER pets   only these tables or figures; all else stays as it is
    python tools/publish_paper.py --novelty           fit the novelty of the models that ship, and nothing else

Of a table, a test set is published if every cell of it was measured by the recipe as it is. Other results that
results/paper holds are removed, so that all that is there comes from one folder, but for what is made of photos: that
is published by name. Models that ship are copies of models on the shelf; nothing is trained here, and nothing is
written if one of them is not there. The front page, results/README.md, is written by hand; a test names the numbers of
it that have changed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from hedged._files import make_folder, write_atomically, write_text
from hedged.errors import HedgedError, RunError
from hedged.models import Embedder
from hedged.paper.catalogue import NAMES, exhibit
from hedged.paper.page import load_cells, write_page
from hedged.paper.recipe import recipe
from hedged.paper.shelf import Shelf
from hedged.paper.table import Table
from hedged.training import build_data, fit_novelty

SHIPPED = {
    "ndigit-2d": recipe(2, 2, "mog-1"),
    "ndigit-2d-mog2": recipe(2, 2, "mog-2"),
    "ndigit-3d": recipe(3, 3, "mog-1"),
}

MODELS = Path("src") / "hedged" / "models" / "shipped"
OF_PHOTOS = [name for name in NAMES if exhibit(name).needs_photos]

TRIED = """## What was tried for the numbers that fall short

The settings were chosen for one Gaussian, on validation digits (docs/recipe.md has all trials), and points and mixtures
train with the same: no number of theirs was tuned for.

* Points, corrupt AP, 3 digits in 2 and in 4 dimensions: nothing for points alone. In 4 dimensions 10,000 steps instead
  of 5,000 gave 0.926 instead of 0.918. One Gaussian reaches the paper's numbers for points in both settings.
* Two Gaussians, corrupt AP, 3 digits in 4 dimensions: 10,000 steps gave 0.939 instead of 0.937.
* One Gaussian, corrupt probes, 3 digits in 3 dimensions: on validation digits 10,000 steps (8 × 8 images in the second
  stream) gave 0.507 and the recipe with a constant weight 0.503, both above the paper's 0.499; the recipe as it is was
  kept, since it is the one at which two Gaussians are hedged and not a code.

## Pets: read six times

Refusing the most uncertain fifth of the photos was to cut the error by a fifth, and does; Pearson's r of 0.956 stays
below the paper's 0.995. The tested dogs were read for six recipes, each chosen on other dogs; the guide's model and
heads on vectors were measured on them too. One Gaussian, the mean of three seeds, and the point beside it:

| | Balanced accuracy | τ of 20 bins | Error cut by refusing a fifth |
|---|---|---|---|
| the paper's loss, 4,000 steps | 0.856 (0.868) | 0.77 | 8 % |
| three quarters of the loss on the means as points | 0.868 (0.868) | 0.82 | 15 % |
| means as points, β = 0.0003, 12,000 steps | 0.896 (0.896) | 0.88 | 17 % |
| β = 0.001 | 0.901 (0.896) | 0.85 | 18 % |
| the mutual likelihood and mirror images | 0.904 (0.902) | 0.89 | 19.7 % |
| the recipe as it is: a mirror image that disagrees counts for a quarter | 0.905 (0.902) | 0.83 | 21.3 % |

The three seeds of the last have cuts of 19, 22 and 23 %; τ fell with that step. All trials are in docs/recipe.md.
"""


def publish(made: Path, root: Path) -> None:
    """Bring a checkout up to date with a folder of models and results."""
    shelf, results = Shelf(made / "models"), root / "results" / "paper"
    embedders: dict[str, Embedder] = {name: shelf.embedder(config) for name, config in SHIPPED.items()}
    files = {name: content for shown in NAMES for name, content in contents(made, shown)}
    if not files:
        raise RunError(f"{made} has neither a whole table nor a figure: `hedged paper run all --out {made}` makes them")
    make_folder(results)
    for name, content in files.items():
        _write(results / name, content)
    for path in sorted([*results.glob("*.json"), *results.glob("*.png")]):
        if path.name not in files and path.stem.removesuffix("-variants") not in OF_PHOTOS:
            path.unlink()
            print(f"removed {path}")
    _write_page(shelf, root)
    for name, embedder in embedders.items():
        embedder.save(root / MODELS / name)
        print(root / MODELS / name)


def fit_shipped(root: Path) -> None:
    """Fit the novelty of the models that ship to what they were trained on, as `hedged novelty` does."""
    for name, config in SHIPPED.items():
        embedder = Embedder.load(root / MODELS / name)
        novelty = fit_novelty(embedder, config.seen(build_data(config).train))
        novelty.save(root / MODELS / name, embedder.fingerprint())
        print(root / MODELS / name)


def publish_some(made: Path, root: Path, names: Sequence[str]) -> None:
    """Bring only these tables or figures of a checkout up to date."""
    for shown in names:
        if not (files := dict(contents(made, shown))):
            raise RunError(f"{made} has no whole {shown}: `hedged paper run {shown} --out {made}` makes it")
        for name, content in files.items():
            _write(root / "results" / "paper" / name, content)
    _write_page(None, root)


def _write_page(shelf: Shelf | None, root: Path) -> None:
    page = write_page(shelf, root / "results" / "paper")
    text = page.read_text(encoding="utf-8")
    if TRIED.splitlines()[0] not in text:  # an earlier page keeps its ending
        write_text(page, text + TRIED)
    print(page)


def contents(made: Path, name: str) -> Iterator[tuple[str, bytes]]:
    """The files of a table or figure that are fit to publish."""
    shown = exhibit(name)
    if isinstance(shown, Table):
        yield from _whole(made, shown)
        return
    for path in (made / f"{name}.png", made / f"{name}.json", made / f"{name}-variants.json"):
        if path.exists():
            yield path.name, path.read_bytes()


def _whole(made: Path, table: Table) -> Iterator[tuple[str, bytes]]:
    """The cells of those test sets of which none is missing; variants only beside a table."""
    for variant in (False, True):
        file = table.file_name(variant)
        cells = load_cells(made, file.removesuffix(".json"))
        if missing := table.missing(cells, variant):
            print(f"{file} lacks {len(missing)} cells; test sets that lack any are left out", file=sys.stderr)
        if not (whole := table.complete(cells, variant)):
            return
        yield file, (json.dumps(whole, indent=2) + "\n").encode()


def _write(path: Path, content: bytes) -> None:
    write_atomically(path, lambda part: part.write_bytes(content))
    print(path)


def main(made: str, root: str = "", *names: str) -> None:
    folder = Path(root) if root else Path(__file__).parents[1]
    if made == "--novelty":
        fit_shipped(folder)
    elif names:
        publish_some(Path(made), folder, names)
    else:
        publish(Path(made), folder)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except HedgedError as error:
        sys.exit(str(error))
