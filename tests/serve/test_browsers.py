"""A browser that is missing is a reason to skip, but where one is required."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import browsers
import pytest


@pytest.mark.parametrize(("required", "outcome"), [("0", pytest.skip.Exception), ("1", pytest.fail.Exception)])
@pytest.mark.parametrize("what", ["chromium", "selenium"])
def test_what_is_missing_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, required: str, outcome: Any, what: str
) -> None:
    monkeypatch.setenv("HEDGED_REQUIRE_BROWSER", required)
    monkeypatch.setattr(shutil, "which", lambda name: None if name == what else name)
    if what == "selenium":
        monkeypatch.setitem(sys.modules, "selenium", None)
    either = pytest.raises((pytest.skip.Exception, pytest.fail.Exception), match=f"needs {what}")
    with either as told, browsers.chromium(tmp_path):
        raise AssertionError("there is no browser")
    assert told.type is outcome
