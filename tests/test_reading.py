"""Files that others wrote are read within limits: size, depth, lengths of lines, and nothing but files."""

from __future__ import annotations

import json
import os
import time
import tracemalloc
from pathlib import Path

import pytest

from hedged import _reading
from hedged._reading import open_file, parse_json, parse_toml, read_bytes, read_json, read_lines, read_toml

DEEP = 100_000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * DEEP, "nested more than 64 deep"),
        ("[" * DEEP + "]" * DEEP, "nested more than 64 deep"),
        ('{"a":' * 70 + "1" + "}" * 70, "nested more than 64 deep"),
        ("9" * 5000, "integer of 5,000 digits is too large"),
        (f"[1, -{2**63}]", "integer of 19 digits is too large"),
        ('{"a": 1', "delimiter"),
        ("", "Expecting value"),
    ],
)
def test_json_that_cannot_be_handled(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_json(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = " + "[" * 3000 + "]" * 3000, "nested more than 64 deep"),
        (".".join("a" * 5000) + " = 1", "nested more than 64 deep"),
        ("a = " + "9" * 5000, "digits"),
        (f"a = {2**64}", "larger than 64 bits"),
        ("a = 1\n" * 2, "overwrite"),
        ("# " * 2**16, "over the limit"),
    ],
)
def test_toml_that_cannot_be_handled(text: str, words: str) -> None:
    begun = time.process_time()
    with pytest.raises(ValueError, match=words):
        parse_toml(text)
    assert time.process_time() - begun < 5


def test_what_is_within_the_limits_is_read(tmp_path: Path) -> None:
    content = {"a": [1, -2.5, None, "é"], "b": {"c": 2**63 - 1}, "d": {}}
    (tmp_path / "a.json").write_text(json.dumps(content))
    assert read_json(tmp_path / "a.json") == content
    assert parse_json(str(10**200), 10**300) == 10**200
    (tmp_path / "a.toml").write_text('a.b = [1, "x"]')
    assert read_toml(tmp_path / "a.toml") == {"a": {"b": [1, "x"]}}
    (tmp_path / "a.txt").write_bytes(b"one\r\ntwo\n\nlast")
    assert list(read_lines(tmp_path / "a.txt")) == ["one\r\n", "two\n", "\n", "last"]


def test_sizes_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(2**40)  # which takes no room on the disk
    with pytest.raises(ValueError, match="over the limit of 33,554,432"):
        read_json(tmp_path / "large")
    with pytest.raises(ValueError, match="over the limit"):
        next(read_lines(tmp_path / "large"))
    (tmp_path / "line").write_text("x" * 100)
    monkeypatch.setattr(_reading, "MAX_LINE", 50)
    with pytest.raises(ValueError, match="a line has 50 characters or more"):
        list(read_lines(tmp_path / "line"))
    assert len(read_bytes(Path("/proc/self/maps"), 2**25)) > 0  # which states no size


def test_what_is_no_file_is_refused_by_what_it_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, words in ((tmp_path / "pipe", "a pipe"), (Path("/dev/zero"), "a device")):
        with pytest.raises(OSError, match=f"it is {words}, not a file"):
            open_file(path)
    with pytest.raises(IsADirectoryError):
        open_file(tmp_path)
    with pytest.raises(FileNotFoundError):
        open_file(tmp_path / "nothing")


def test_a_small_file_takes_little_memory_whatever_the_limit(tmp_path: Path) -> None:
    (tmp_path / "small").write_bytes(b"small")
    tracemalloc.start()
    try:
        assert read_bytes(tmp_path / "small", 2**31) == b"small"
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
    if Path("/proc/version").exists():  # which states no size
        assert read_bytes(Path("/proc/version"), 2**20)
