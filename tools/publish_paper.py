"""Put what `hedged paper run all` made where the project keeps it: results/paper, results/README.md, shipped models.

    python tools/publish_paper.py runs/paper

Models that ship are copies of models on the shelf; nothing is trained here.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from hedged.embedder import MODELS, Embedder
from hedged.paper.page import write_page
from hedged.paper.recipe import recipe
from hedged.paper.shelf import Shelf

ROOT = Path(__file__).parents[1]
SHIPPED = {
    "ndigit-2d": recipe(2, 2, "mog-1"),
    "ndigit-2d-mog2": recipe(2, 2, "mog-2"),
    "ndigit-3d": recipe(3, 3, "mog-1"),
}

DEMO = """## The demo

`demo.json`: 2 digits, one Gaussian in two dimensions, seed 0; made by `make demo` on two CPU cores; `commit` says of
which version. A test holds the README's table and the demo's bars against this file.
"""


def main(made: Path) -> None:
    results = ROOT / "results" / "paper"
    results.mkdir(parents=True, exist_ok=True)
    for path in sorted([*made.glob("*.json"), *made.glob("*.png")]):
        shutil.copyfile(path, results / path.name)
        print(results / path.name)
    shelf = Shelf(made / "models")
    page = write_page(shelf, results, ROOT / "results" / "README.md")
    page.write_text(page.read_text(encoding="utf-8") + DEMO, encoding="utf-8")
    print(page)
    for name, config in SHIPPED.items():
        embedder: Embedder = shelf.embedder(config)
        embedder.save(MODELS / name)
        print(MODELS / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
