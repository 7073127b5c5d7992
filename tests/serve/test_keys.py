"""Keys: shown once, kept as hashes, with roles."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from hedged.errors import ConfigError, RunError
from hedged.serve.keys import Caller, Keys, Role, add_key, list_keys, remove_key


def test_keys_are_made_listed_and_removed(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    reader, writer = add_key(file, "front-end", Role.READ), add_key(file, "enrolment", Role.WRITE)
    assert reader not in file.read_text()
    assert writer not in file.read_text()
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    keys = Keys.read(file)
    assert keys.caller(reader) == Caller("front-end", Role.READ)
    assert keys.caller(writer) == Caller("enrolment", Role.WRITE)
    assert keys.caller(reader + " ") is None
    assert keys.caller("") is None
    assert keys.caller("\ud800") is None
    with pytest.raises(ConfigError, match="has a key named 'front-end'"):
        add_key(file, "front-end", Role.READ)
    remove_key(file, "front-end")
    assert list_keys(file) == [Caller("enrolment", Role.WRITE)]
    assert Keys.read(file).caller(reader) is None
    with pytest.raises(ConfigError, match="it has 'enrolment'"):
        remove_key(file, "front-end")
    remove_key(file, "enrolment")
    with pytest.raises(ConfigError, match="nobody could use the service"):
        Keys.read(file)


@pytest.mark.parametrize("name", ["", "a" * 101, "a\x1b[31m", "a\nb"])
def test_names_are_printable(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="printable"):
        add_key(tmp_path / "keys.json", name, Role.READ)
    assert not (tmp_path / "keys.json").exists()


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"format": 2, "keys": []}', '{"format": 1, "keys": [{"name": "a", "role": "all"}]}']
)
def test_a_damaged_file_is_told(tmp_path: Path, content: str) -> None:
    file = tmp_path / "keys.json"
    file.write_text(content)
    for ask in (lambda: Keys.read(file), lambda: add_key(file, "a", Role.READ)):
        with pytest.raises(RunError, match="no file of keys"):
            ask()
    assert file.read_text() == content
    with pytest.raises(RunError, match="there is no file of keys"):
        Keys.read(tmp_path / "other.json")
