"""Tables are made of what lies on a shelf, and know what they lack."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from paper.pretended import write_table

from hedged.errors import ConfigError, RunError
from hedged.evaluation.reference import TABLES, Measure, PaperCell
from hedged.paper.catalogue import exhibit
from hedged.paper.page import load_cells
from hedged.paper.recipe import recipe
from hedged.paper.shelf import Shelf
from hedged.paper.table import Series, Table
from hedged.paper.tables import KL, UNCERTAINTY_CORRELATION


@pytest.fixture
def filled(tmp_path: Path) -> Shelf:
    """What the models of a small table would have measured: seed + 1 tenths."""
    shelf = Shelf(tmp_path / "models")
    for seed in range(2):
        config = recipe(2, 2, "mog-1", seed)
        shelf.place(config).mkdir(parents=True)
        cell = {"metric": "verification_ap", "gallery": "clean", "probe": "clean", "measured": (seed + 1) / 10}
        (shelf.place(config) / "measured-seen.json").write_text(json.dumps({"cells": [cell]}))
    return shelf


SMALL = Table(
    name="small",
    title="One cell",
    cells=(PaperCell(2, 2, "mog-1", "verification_ap", "clean", "clean", 0.989),),
    series=(Series(tests=("seen",), seeds=2),),
)


def test_a_cell_is_the_mean_over_seeds(filled: Shelf, tmp_path: Path) -> None:
    assert SMALL.write(filled, tmp_path, {}) == [tmp_path / "small.json"]
    (cell,) = json.loads((tmp_path / "small.json").read_text())
    steps = recipe(2, 2, "mog-1").train.steps
    assert cell == {
        "digits": 2, "dim": 2, "model": "mog-1", "metric": "verification_ap", "gallery": "clean", "probe": "clean",
        "beta": 1e-4, "split": "seen", "backbone": "shallow-hidden", "steps": steps, "paper": 0.989,
        "measured": 0.15, "std": 0.07071, "seeds": 2,
    }  # fmt: skip


def test_a_cell_that_was_not_measured_is_missed_in_words(filled: Shelf) -> None:
    config = recipe(2, 2, "mog-1")
    assert filled.value(config, "seen", Measure("verification_ap", "clean", "clean")) == 0.1
    with pytest.raises(RunError, match=r"measured-seen\.json has no knn_accuracy clean corrupt majority: remove it"):
        filled.cell(config, "seen", Measure("knn_accuracy", "clean", "corrupt", "majority"))


def test_only_names_cells_or_is_refused() -> None:
    table = Table("main-task", "", TABLES["main-task"], (Series(),))
    assert len(table.wanted({"digits": "2", "dim": "2"})) == 12
    assert {need.config.ndigit.digits for need in table.needs({"digits": "3"})} == {3}
    with pytest.raises(ConfigError, match="--only colour=… is not a key of main-task: it has digits, dim"):
        table.wanted({"colour": "red"})
    with pytest.raises(ConfigError, match="no cell of main-task has digits=7"):
        table.wanted({"digits": "7"})
    kl = Table("kl", "", TABLES["kl"], (Series(),))
    assert {cell.beta for cell in kl.wanted({"beta": "1e-4"})} == {1e-4}


@pytest.mark.parametrize("name", TABLES)
def test_a_whole_table_lacks_nothing(name: str, tmp_path: Path) -> None:
    table = exhibit(name)
    assert isinstance(table, Table)
    write_table(table, tmp_path)
    for variant in (False, True):
        cells = load_cells(tmp_path, table.file_name(variant).removesuffix(".json"))
        assert table.missing(cells, variant) == []
        assert table.complete(cells, variant) == cells


@pytest.mark.parametrize("lost", range(0, 96, 19))
def test_a_cell_that_is_lacking_is_named_and_takes_its_test_set_with_it(lost: int, tmp_path: Path) -> None:
    write_table(KL, tmp_path)
    cells = load_cells(tmp_path, "kl")
    gone = cells.pop(lost)
    (lacking,) = KL.missing(cells, variant=False)
    assert lacking.items() <= gone.items()
    assert KL.complete(cells, variant=False) == [cell for cell in cells if cell["split"] != gone["split"]]


@pytest.mark.parametrize("change", [{"steps": 1}, {"backbone": "shallow"}, {"seeds": 2}, {"beta": 1.0}])
def test_a_cell_of_another_recipe_does_not_count(change: dict[str, object], tmp_path: Path) -> None:
    write_table(KL, tmp_path)
    cells = load_cells(tmp_path, "kl")
    cells[0] |= change
    assert len(KL.missing(cells, variant=False)) == 1


def test_samples_are_not_taken_for_the_closed_form_nor_the_other_way_round(tmp_path: Path) -> None:
    table = UNCERTAINTY_CORRELATION
    write_table(table, tmp_path)
    sampled = [c for c in load_cells(tmp_path, f"{table.name}-variants") if "estimator" in c]
    assert len(sampled) == 32
    seen = [cell for cell in load_cells(tmp_path, table.name) if cell["split"] == "seen"]
    assert table.complete(sampled, variant=True) == sampled
    assert table.complete(sampled, variant=False) == []
    assert table.complete(seen, variant=True) == []
