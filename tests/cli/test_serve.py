"""`hedged key`, and what `hedged serve` refuses before it serves; tests/serve has the service itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.commands import Hedged, check_refused

from hedged.serve.keys import Caller, Keys, Role


def test_the_command_line_makes_keys(hedged: Hedged, tmp_path: Path) -> None:
    file = str(tmp_path / "keys.json")
    made = hedged("key", file, "front-end", "--role", "write")
    assert (made.code, made.err) == (0, "")
    assert Keys.read(Path(file)).caller(made.out.strip()) == Caller("front-end", Role.WRITE)
    assert "front-end" in hedged("key", file).out
    assert hedged("key", file, "front-end").code == 2
    assert hedged("key", file, "--remove").code == 2
    assert hedged("key", file, "front-end", "--remove").code == 0
    assert json.loads(Path(file).read_text())["keys"] == []


def test_a_service_beyond_this_machine_needs_keys(hedged: Hedged, tmp_path: Path) -> None:
    said = hedged("serve", "hedged:ndigit-2d", tmp_path / "none.db", "--host", "0.0.0.0")
    check_refused(said, "needs keys", "hedged key FILE NAME")


def test_what_cannot_be_served_is_told(hedged: Hedged, tmp_path: Path) -> None:
    check_refused(hedged("serve", "hedged:ndigit-2d", tmp_path / "none.db"), "there is no store")
    check_refused(hedged("serve", tmp_path / "none", tmp_path / "none.db"), "none")
    keys = ("--keys", tmp_path / "none.json")
    check_refused(hedged("serve", "hedged:ndigit-2d", tmp_path / "none.db", *keys), "there is no file of keys")


def test_a_missing_package_is_named(hedged: Hedged, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "uvicorn", None)
    monkeypatch.delitem(__import__("sys").modules, "hedged.serve.process", raising=False)
    check_refused(hedged("serve", "hedged:ndigit-2d", tmp_path / "none.db"), "pip install 'hedged[serve]'")
