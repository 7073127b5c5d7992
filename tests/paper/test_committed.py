"""Committed results of the paper: complete, the paper's own numbers beside them, and what README.md says of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from hedged import Embedder
from hedged.errors import RunError
from hedged.evaluation.reference import TABLES, Measure, TableName, find_cell
from hedged.models import shipped_models
from hedged.paper import catalogue, dataset
from hedged.paper.catalogue import exhibit
from hedged.paper.claims import CLAIMS
from hedged.paper.page import ACCURACIES, CORRELATIONS, is_met, load_cells, main_cells
from hedged.paper.recipe import recipe
from hedged.paper.table import Table

RESULTS = Path(__file__).parents[2] / "results"
PAPER = RESULTS / "paper"
PAGE = (PAPER / "README.md").read_text(encoding="utf-8")
KEYS = ("digits", "dim", "model", "metric", "gallery", "probe", "vote", "beta")


@pytest.mark.parametrize("variant", [False, True])
@pytest.mark.parametrize("name", TABLES)
def test_every_cell_of_a_table_is_there_for_each_test_set_and_nothing_else(name: TableName, variant: bool) -> None:
    table = exhibit(name)
    assert isinstance(table, Table)
    cells = load_cells(PAPER, table.file_name(variant).removesuffix(".json"))
    assert table.missing(cells, variant) == []
    assert table.complete(cells, variant) == cells


def test_the_table_of_the_data_is_complete() -> None:
    counted = [(cell["digits"], cell["metric"]) for cell in load_cells(PAPER, dataset.EXHIBIT.name)]
    assert counted == [(digits, metric) for digits in dataset.PAPER for metric in dataset.METRICS]


def test_no_table_of_the_catalogue_is_forgotten_here() -> None:
    assert set(catalogue.TABLES) == {*TABLES, dataset.EXHIBIT.name}


@pytest.mark.parametrize("name", TABLES)
def test_cells_are_those_of_the_paper_once_for_each_split(name: TableName) -> None:
    seen = set()
    for cell in load_cells(PAPER, name):
        beta = cell.get("beta") if name == "kl" else None
        measure = Measure(cell["metric"], cell["gallery"], cell["probe"], cell.get("vote"))
        same = find_cell(cell["digits"], cell["dim"], cell["model"], measure, beta)
        assert same is not None
        assert cell["paper"] == same.paper
        key = (*(cell.get(key) for key in KEYS), cell["split"])
        assert key not in seen
        seen.add(key)
        assert cell["seeds"] >= 1
        assert "objective" not in cell
        assert -1 <= cell["measured"] <= 1


@pytest.mark.parametrize(("kind", "metrics"), [("accuracies", ACCURACIES), ("correlations", CORRELATIONS)])
def test_the_page_counts_right(kind: str, metrics: tuple[str, ...]) -> None:
    cells = [cell for _, cell in main_cells(PAPER, metrics)]
    met = sum(map(is_met, cells))
    assert f"{met} of {len(cells)} {kind}" in PAGE


def test_hedged_is_at_least_point_in_every_corrupt_cell_of_the_main_table() -> None:
    cells: list[dict[str, Any]] = [c for c in load_cells(PAPER, "main-task") if c["split"] == "seen"]
    points = {_where(c): c["measured"] for c in cells if c["model"] == "point" and c["gallery"] == "corrupt"}
    hedged = [c for c in cells if c["model"] != "point" and c["gallery"] == "corrupt"]
    assert hedged
    for cell in hedged:
        assert cell["measured"] >= points[_where(cell)], cell


def _where(cell: dict[str, Any]) -> tuple[Any, ...]:
    return cell["digits"], cell["dim"], cell["metric"]


@pytest.mark.parametrize("name", catalogue.FIGURES)
def test_figures_are_pictures_of_a_page_width(name: str) -> None:
    with Image.open(PAPER / f"{name}.png") as picture:
        assert picture.width == 1400
    assert f"({name}.png)" in PAGE


def test_every_claim_is_judged_and_on_the_page() -> None:
    claims = load_cells(PAPER, catalogue.CLAIMS)
    assert len({claim["text"] for claim in claims}) == len(claims) == len(CLAIMS)
    for claim in claims:
        verdict = "yes" if claim["holds"] else "**no**"
        assert f"| {claim['text']} | {verdict} | {claim['evidence']} |" in PAGE


def test_no_file_is_of_an_exhibit_that_there_is_not() -> None:
    names = {path.stem.removesuffix("-variants") for path in PAPER.iterdir() if path.suffix != ".md"}
    assert names <= set(catalogue.NAMES)


def test_shipped_models_load_by_name_and_embed() -> None:
    assert shipped_models() == ["hedged:ndigit-2d", "hedged:ndigit-2d-mog2", "hedged:ndigit-3d"]
    for name, digits, components in zip(shipped_models(), (2, 2, 3), (1, 2, 1), strict=True):
        e = Embedder.load(name)
        assert e.architecture.shape == (1, 28, 28 * digits)
        assert e.architecture.components == components
        assert e.notes["fingerprint"] == recipe(digits, digits, f"mog-{components}").digest()
    with pytest.raises(RunError, match="no model ships as hedged:ndigit-9d; there are: hedged:ndigit-2d"):
        Embedder.load("hedged:ndigit-9d")


def test_shipped_models_tell_novelty() -> None:
    rng = np.random.default_rng(0)
    for name in shipped_models():
        e = Embedder.load(name)
        assert e.novelty_model is not None
        assert e.novelty_model.held_out == "identities"
        noise = rng.integers(0, 256, (100, *e.architecture.shape[1:]), dtype=np.uint8)
        assert float(e.novelty(noise).median()) > 0.99


def test_json_has_no_surprises() -> None:
    for path in PAPER.glob("*.json"):
        assert isinstance(json.loads(path.read_text(encoding="utf-8")), list)
