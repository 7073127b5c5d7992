"""`hedged paper` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.commands import Hedged, check_refused, snapshot

from hedged.cli.paper import _wanted
from hedged.paper.catalogue import FIGURES, NAMES, TABLES


@pytest.fixture(autouse=True)
def _elsewhere(tiny_recipe: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def test_list_names_everything(hedged: Hedged) -> None:
    listed = json.loads(hedged("paper", "list", "--json").out)
    assert [row["name"] for row in listed] == list(NAMES)
    models = {row["name"]: row["models"] for row in listed}
    assert models["main-task"] == 36 + 6 + 2 + 3
    assert models["dataset"] == models["architecture"] == 0
    plain = hedged("paper", "list").out
    assert all(name in plain for name in (*TABLES, *FIGURES))


def test_a_part_of_a_table_is_made_shown_and_not_made_again(hedged: Hedged) -> None:
    only = ("--only", "digits=2,dim=2,model=mog-1,metric=verification_ap", "--jobs", "2")
    result = hedged("paper", "run", "main-task", *only)
    assert result.code == 0, result.err
    assert "6 models" in result.err
    cells = json.loads(Path("runs/paper/main-task.json").read_text())
    assert {(cell["split"], cell["seeds"]) for cell in cells} == {
        ("seen", 3), ("unseen", 3), ("all", 3), ("instance", 1)
    }  # fmt: skip
    variants = json.loads(Path("runs/paper/main-task-variants.json").read_text())
    assert {(cell.get("objective"), cell["backbone"]) for cell in variants} == {
        ("expected-log", "shallow-hidden"), ("means-as-points", "shallow-hidden"), (None, "shallow")
    }  # fmt: skip
    before = snapshot(Path("runs/paper/models"))
    again = hedged("paper", "run", "main-task", *only)
    assert "models" not in again.err
    assert snapshot(Path("runs/paper/models")) == before
    assert json.loads(hedged("paper", "show", "main-task", "--json").out) == cells
    assert "0.989" in hedged("paper", "show", "main-task").out


def test_the_data_set_is_counted(hedged: Hedged) -> None:
    assert hedged("paper", "run", "dataset").code == 0
    cells = json.loads(Path("runs/paper/dataset.json").read_text())
    counted = {(cell["digits"], cell["metric"]): cell["measured"] for cell in cells}
    assert counted[2, "training_classes"] == 70
    assert counted[2, "unseen_test_classes"] == 20  # of the tiny set; the paper's 30 need its 10,000 images
    assert {cell["paper"] for cell in cells if cell["metric"] == "training_images"} == {100_000}


def test_what_cannot_be_made_is_refused(hedged: Hedged) -> None:
    check_refused(hedged("paper", "run", "table-9"), "there is no table or figure 'table-9'", "main-task")
    check_refused(hedged("paper", "run", "main-task", "--only", "digits"), "key=value", "digits=2,dim=2")
    check_refused(hedged("paper", "run", "main-task", "--only", "digits=2,digits=3"), "each key once")
    check_refused(hedged("paper", "run", "main-task", "--only", ","), "each key once")
    check_refused(hedged("paper", "run", "main-task", "--only", "digits=9"), "no cell of main-task has digits=9")
    check_refused(hedged("paper", "run", "all", "--only", "digits=2"), "name the table instead of all")
    check_refused(hedged("paper", "run", "architecture", "--only", "digits=2"), "architecture is made as a whole")
    check_refused(hedged("paper", "run", "dataset", "--only", "digits=2"), "leave it out")
    check_refused(hedged("paper", "run", "claims", "--only", "digits=2"), "leave it out")
    check_refused(hedged("paper", "show", "kl"), "neither in runs/paper nor in results/paper", "hedged paper run kl")
    Path("file").write_text("in the way")
    check_refused(hedged("paper", "run", "kl", "--out", "file"), "cannot write in the folder file")
    assert Path("file").read_text() == "in the way"


def test_pets_are_made_of_photos_that_are_named(hedged: Hedged) -> None:
    check_refused(hedged("paper", "run", "pets"), "pets needs photos", "--data DIR")
    check_refused(hedged("paper", "run", "pets", "--data", "nowhere"), "there is no nowhere")
    check_refused(
        hedged("paper", "run", "kl", "--data", "."), "--data is the folder of photos of pets", "kl is made of"
    )
    check_refused(hedged("paper", "run", "pets", "--data", ".", "--only", "model=point"), "pets is made as a whole")


def test_all_but_the_pets_is_made_without_photos(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    names = [each.name for each in _wanted("all", None)]
    assert "pets is left out: it needs photos, as in `hedged paper run pets --data DIR`" in capsys.readouterr().out
    assert [each.name for each in _wanted("all", tmp_path) if each.name not in names] == ["pets"]
