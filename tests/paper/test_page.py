"""The page of results says what the files say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hedged.paper.measurements import Cell
from hedged.paper.page import is_met, rows, write_page
from hedged.paper.shelf import Shelf


def cell(measured: float, **more: object) -> Cell:
    told = {"digits": 2, "dim": 2, "model": "mog-1", "metric": "verification_ap", "gallery": "clean", "probe": "clean"}
    return {**told, "split": "seen", "paper": 0.9, "measured": measured, "std": 0.001, "seeds": 3, **more}


@pytest.mark.parametrize(
    ("measured", "metric", "met"),
    [
        (0.895, "verification_ap", True),
        (0.8949, "verification_ap", False),
        (0.8, "knn_correlation", True),
        (0.79, "ap_correlation", False),
    ],
)
def test_a_cell_is_met_up_to_what_is_allowed(measured: float, metric: str, met: bool) -> None:
    assert is_met(cell(measured, metric=metric)) == met


def test_the_page_counts_bolds_and_lists_what_is_below(tmp_path: Path) -> None:
    cells = [cell(0.95), cell(0.5, gallery="corrupt", probe="corrupt"), cell(0.2, split="unseen")]
    (tmp_path / "main-task.json").write_text(json.dumps(cells))
    claims = [
        {"text": "It works", "holds": True, "evidence": "1 > 0"},
        {"text": "It flies", "holds": False, "evidence": ""},
    ]
    (tmp_path / "claims.json").write_text(json.dumps(claims))
    (tmp_path / "architecture.png").write_bytes(b"")
    page = write_page(Shelf(tmp_path / "models"), tmp_path).read_text()
    assert "1 of 2 accuracies are at or above the paper’s less 0.005" in page
    assert "**0.950** ± 0.001 (0.900)" in page
    assert "| 0.500 ± 0.001 (0.900) |" in page
    assert "Below it:\n\n| table |" in page.replace("\n\n\n", "\n\n")
    assert "| It works | yes | 1 > 0 |" in page
    assert "| It flies | **no** |" in page
    assert "(architecture.png)" in page
    assert "never trained on" in page


def test_rows_show_what_varies_and_the_numbers() -> None:
    header, lines = rows([cell(0.5), cell(0.25, gallery="corrupt")])
    assert header == ("gallery", "paper", "measured", "std", "seeds")
    assert lines == [("clean", "0.900", "0.500", "0.001", "3"), ("corrupt", "0.900", "0.250", "0.001", "3")]


@pytest.mark.parametrize(
    ("digits", "split", "noted"), [(3, "instance", True), (2, "instance", False), (3, "seen", False)]
)
def test_three_digits_by_instance_are_said_not_to_be_the_papers_protocol(
    tmp_path: Path, digits: int, split: str, noted: bool
) -> None:
    (tmp_path / "main-task.json").write_text(json.dumps([cell(0.95, digits=digits, split=split)]))
    assert ("not the paper’s protocol" in write_page(None, tmp_path).read_text()) == noted


def test_what_was_written_by_hand_below_the_figures_is_kept(tmp_path: Path) -> None:
    (tmp_path / "main-task.json").write_text(json.dumps([cell(0.95)]))
    page = write_page(Shelf(tmp_path / "models"), tmp_path)
    ending = "## What was tried for the numbers that fall short\n\n* Something.\n\n## Pets: read six times\n\nWords.\n"
    page.write_text(page.read_text() + ending)
    assert write_page(None, tmp_path).read_text().endswith(ending)
    assert write_page(Shelf(tmp_path / "models"), tmp_path).read_text().count(ending) == 1
