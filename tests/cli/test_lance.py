"""A store in Lance tables, by the verbs as a user types them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from cli.commands import Hedged, check_refused

from hedged.search import open_store


def test_a_lance_store_by_all_verbs(hedged: Hedged, finished_run: Path, images: list[Path], tmp_path: Path) -> None:
    place, file = f"lance://{tmp_path}/dogs", tmp_path / "dogs.db"
    for store in (place, file):
        built = hedged("index", "build", finished_run, store, *images[:2], "--folder-labels", "--json")
        assert (built.code, json.loads(built.out)["rows"]) == (0, 2)
        assert "added 1 embeddings" in hedged("index", "add", finished_run, store, *images, "--skip-existing").out
    asked = ("search", finished_run, place, images[0], "-k", 3, "--where", "label=images", "--json")
    assert json.loads(hedged(*asked).out) == json.loads(hedged("search", finished_run, file, *asked[3:]).out)
    assert hedged("identify", finished_run, place, images[1]).code == 0
    told = json.loads(hedged("index", "info", place, "--check", "--json").out)
    assert (told["store"], told["rows"], told["labels"]) == (place, 3, 1)
    assert "removed 1 rows" in hedged("index", "remove", place, images[0]).out
    assert json.loads(hedged("index", "list", place, "--json").out)["rows"] == 2
    assert "kept 2 rows" in hedged("index", "repair", place, tmp_path / "new.db").out
    with open_store(tmp_path / "new.db") as repaired:
        assert repaired.count() == 2


def test_what_is_refused_leaves_nothing(
    hedged: Hedged, finished_run: Path, images: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = f"lance://{tmp_path}/dogs"
    build = ("index", "build", finished_run, place)
    check_refused(hedged(*build, tmp_path / "none.png"), "there is no image")
    check_refused(hedged(*build, *images, "--first-stage", "hnsw"), "has no first stage hnsw: choose exact or ivf")
    check_refused(hedged("search", finished_run, place, images[0]), f"there is no store {place}")
    monkeypatch.setitem(sys.modules, "lancedb", None)
    check_refused(hedged(*build, *images), "pip install 'hedged[lance]'")
    assert [path.name for path in tmp_path.iterdir()] == ["images"]
