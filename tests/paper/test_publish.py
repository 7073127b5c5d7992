"""Publishing: whole tables only, nothing of an earlier time beside them, and all or nothing if a model is missing."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from paper.pretended import write_table

from hedged.models import Embedder
from hedged.models.saved import MODELS
from hedged.paper.page import load_cells
from hedged.paper.shelf import Shelf
from hedged.paper.tables import FOUR_D, KL

TOOL = Path(__file__).parents[2] / "tools" / "publish_paper.py"


def load_tool() -> Any:
    spec = importlib.util.spec_from_file_location("publish_paper", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A folder as `hedged paper run` leaves it, with the models that ship, one whole table and a picture."""
    folder = tmp_path / "made"
    for name, config in load_tool().SHIPPED.items():
        shutil.copytree(MODELS / name, Shelf(folder / "models").place(config))
    write_table(KL, folder)
    (folder / "architecture.png").write_bytes(b"a picture")
    return folder


def test_whole_tables_pictures_a_page_and_models_are_published(made: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    load_tool().publish(made, root)
    results = root / "results" / "paper"
    assert {path.name for path in results.iterdir()} == {"kl.json", "architecture.png", "README.md"}
    for name in ("kl.json", "architecture.png"):
        assert (results / name).read_bytes() == (made / name).read_bytes()
    page = (results / "README.md").read_text()
    assert "## kl" in page
    assert "(architecture.png)" in page
    assert page.count("## What was tried for the numbers that fall short") == 1
    for model in MODELS.iterdir():
        published, ours = (
            Embedder.load(folder / model.name) for folder in (root / "src/hedged/models/shipped", MODELS)
        )
        assert published.fingerprint() == ours.fingerprint()  # of the description and all weights, in whichever format
        assert published.notes == ours.notes


def test_what_is_not_whole_or_of_another_recipe_is_left_out_and_what_was_there_before_is_removed(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = load_cells(made, "kl")
    first_unseen = next(cell for cell in cells if cell["split"] == "unseen")
    cells.remove(first_unseen)
    next(cell for cell in cells if cell["split"] == "all")["steps"] = 7
    (made / "kl.json").write_text(json.dumps(cells[::-1]))
    write_table(FOUR_D, made)
    (made / "four-d.json").write_text(json.dumps(load_cells(made, "four-d")[1:2]))
    results = tmp_path / "root" / "results" / "paper"
    results.mkdir(parents=True)
    for name in ("four-d.json", "teaser.png", "renamed.json"):
        (results / name).write_text("[]")
    load_tool().publish(made, tmp_path / "root")
    assert load_cells(results, "kl") == [cell for cell in cells if cell["split"] == "seen"]
    assert {path.name for path in results.iterdir()} == {"kl.json", "architecture.png", "README.md"}
    told = capsys.readouterr()
    assert "kl.json lacks 2 cells" in told.err
    assert "four-d.json lacks 59 cells" in told.err
    assert f"removed {results / 'teaser.png'}" in told.out


def test_without_one_of_the_models_that_ship_nothing_is_written(made: Path, tmp_path: Path) -> None:
    shutil.rmtree(Shelf(made / "models").place(load_tool().SHIPPED["ndigit-3d"]))
    command = [sys.executable, str(TOOL), str(made), str(tmp_path / "root")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "there is no trained model in" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "root").exists()


def test_a_folder_with_nothing_in_it_is_refused_and_removes_nothing(made: Path, tmp_path: Path) -> None:
    tool = load_tool()
    tool.publish(made, tmp_path)
    for name in ("kl.json", "architecture.png"):
        (made / name).unlink()
    with pytest.raises(tool.RunError, match="neither a whole table nor a figure: `hedged paper run all"):
        tool.publish(made, tmp_path)
    assert (tmp_path / "results" / "paper" / "kl.json").exists()


def test_what_is_named_is_published_and_all_else_stays(made: Path, tmp_path: Path) -> None:
    tool, root = load_tool(), tmp_path / "root"
    tool.publish(made, root)
    results = root / "results" / "paper"
    before = (results / "README.md").read_text()
    others = tmp_path / "others"
    others.mkdir()
    (others / "pets.png").write_bytes(b"dogs")
    tool.main(str(others), str(root), "pets")
    assert {path.name for path in results.iterdir()} == {"kl.json", "architecture.png", "pets.png", "README.md"}
    page = (results / "README.md").read_text()
    assert "(pets.png)" in page
    old = [line for line in before.splitlines() if line]
    assert [line for line in page.splitlines() if line in old] == old
    with pytest.raises(tool.RunError, match="no whole teaser"):
        tool.main(str(others), str(root), "teaser")
    tool.publish(made, root)  # which knows of no photos
    assert (results / "pets.png").exists()
