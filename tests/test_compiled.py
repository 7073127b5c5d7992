"""Compiled loops are kept on disk: never longer than the code they were made of, and not where nothing can be kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hedged import compiled


def test_what_was_compiled_is_forgotten_when_any_of_the_files_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "HERE", tmp_path)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "one.py").write_text("a = 1")
    kept = tmp_path / "__pycache__" / "two.loop-1.py311.nbi"
    compiled._forget_if_changed()
    kept.write_text("machine code")
    compiled._forget_if_changed()
    assert kept.exists()
    (tmp_path / "one.py").write_text("a = 2")
    compiled._forget_if_changed()
    assert not kept.exists()


def test_where_nothing_can_be_kept_loops_are_compiled_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    real = compiled.njit  # type: ignore[attr-defined]

    def no_place(**options: Any) -> Any:
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return real(**options)

    monkeypatch.setattr(compiled, "njit", no_place)

    @compiled.compiled()
    def twice(x: float) -> float:
        return 2 * x

    assert twice(2.0) == 4.0
