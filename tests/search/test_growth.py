"""What `tools/measure_growth.py` writes of a build."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
ITEMS = 3_000


def test_a_build_is_measured_with_its_memory_and_once_its_log_is_taken_in(tmp_path: Path) -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "measure_growth.py"))
    tool["build"].__globals__["MB"] = 1
    built = tool["build"](ITEMS, tmp_path)
    assert built["store_mb"] == (tmp_path / f"{ITEMS}.db").stat().st_size > 100 * ITEMS
    assert built["index_file_mb"] == (tmp_path / f"{ITEMS}.db.index").stat().st_size
    assert 0 < built["build_memory_mb"] <= built["index_memory_mb"]


def test_parts_are_the_same_whenever_they_are_made_and_end_with_the_store() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "measure_growth.py"))
    first, last = tool["part"](150_000, 0), tool["part"](150_000, 100_000)
    assert (len(first), len(last)) == (100_000, 50_000)
    assert (tool["part"](150_000, 100_000).mean == last.mean).all()
