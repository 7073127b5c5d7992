"""Compiled loops are kept on disk: never longer than the code they were made of, and not where nothing can be kept."""

from __future__ import annotations

import errno
import importlib.util
import os
import pwd
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from numba import njit
from numba.core import event
from numba.core.caching import _CacheLocator

from hedged import _compiled, _loop_cache
from hedged._home import expanded
from hedged.data.cache import cache_folder
from hedged.errors import ConfigError, DataError


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of two files with loops, and a home that can be written."""
    monkeypatch.setattr(_compiled, "PACKAGE", tmp_path / "package")
    monkeypatch.setattr(_compiled, "LOOPS", ("*.py",))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "one.py").write_text("a = 1")
    (tmp_path / "package" / "two.py").write_text("b = 1")
    return tmp_path / "package"


def folder() -> str:
    _compiled._cache_folder.cache_clear()
    return _compiled._cache_folder()


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    _compiled._cache_folder.cache_clear()


def test_what_was_compiled_is_left_behind_when_a_file_or_numba_changes(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = folder()
    assert first == folder()
    assert Path(first).parent == package / "__pycache__"
    (package / "two.py").write_text("b = 2")
    second = folder()
    assert second != first
    monkeypatch.setattr(_compiled, "NUMBA_VERSION", "0.1")
    assert folder() not in (first, second)


def test_a_package_that_cannot_be_written_keeps_its_loops_in_the_users_cache(package: Path, tmp_path: Path) -> None:
    (package / "__pycache__").write_text("a file, not a folder")
    assert Path(folder()).parent == tmp_path / "home" / "hedged"


def test_where_nothing_can_be_kept_loops_are_compiled_each_time(package: Path, tmp_path: Path) -> None:
    (package / "__pycache__").write_text("a file, not a folder")
    (tmp_path / "home").write_text("another")
    assert folder() == ""

    @_compiled.compiled()
    def twice(x: float) -> float:
        return 2 * x

    assert twice(2.0) == 4.0


def test_the_first_use_says_what_is_being_waited_for(
    package: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def thrice(x: float) -> float:
        return 3 * x

    notice = _compiled._Notice()
    monkeypatch.setattr(thrice, "__module__", "hedged.somewhere")
    folder()
    with event.install_listener("numba:compile", notice):
        loop: Any = njit(thrice)
        assert (loop(2.0), loop(3.0), loop(2)) == (6.0, 9.0, 6)
    assert caplog.messages[-1] == "compiling inner loops on first use; this takes seconds, once"
    assert notice.said


def test_compiling_what_others_wrote_is_not_mentioned(caplog: pytest.LogCaptureFixture) -> None:
    notice = _compiled._Notice()
    with event.install_listener("numba:compile", notice):
        loop: Any = njit(lambda x: 4 * x)
        assert loop(2.0) == 8.0
    assert not notice.said


LOOP = """
from hedged._compiled import compiled

@compiled()
def twice(x):
    return 2 * x
"""


def loop_of(source: Path) -> Any:
    """The loop in a file, as a process that starts anew would have it."""
    spec = importlib.util.spec_from_file_location("hedged_loop", source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.twice


@pytest.fixture
def loop_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with a loop, which is kept below `kept`."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setattr(_loop_cache.CheckedCacheFile, "has_warned", False)
    _compiled._cache_folder.cache_clear()
    (tmp_path / "loop.py").write_text(LOOP)
    return tmp_path / "loop.py"


def kept_files(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / "kept").rglob("*") if path.is_file())


def test_what_is_damaged_on_disk_is_compiled_again(loop_file: Path, tmp_path: Path) -> None:
    assert loop_of(loop_file)(2.0) == 4.0
    files = kept_files(tmp_path)
    assert {path.suffix for path in files} == {".nbi", ".nbc"}
    again = loop_of(loop_file)
    assert again(2.0) == 4.0
    assert sum(again.stats.cache_hits.values()) == 1
    for path in files:
        whole = path.read_bytes()
        for damaged in (b"", whole[:20], whole[: len(whole) // 2], flipped(whole), b"\x80\x04K\x01."):
            path.write_bytes(damaged)
            loop = loop_of(loop_file)
            assert loop(2.0) == 4.0
            assert not sum(loop.stats.cache_hits.values())
            assert path.read_bytes()[:32] == whole[:32] or path.suffix == ".nbc"  # mended


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def test_a_full_disk_only_costs_time(
    loop_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(self: object, path: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    monkeypatch.setattr(_loop_cache.CheckedCacheFile, "_open_for_write", full)
    loop = loop_of(loop_file)
    assert (loop(2.0), loop(2)) == (4.0, 4)
    assert [message for message in caplog.messages if "cannot be kept" in message] == [
        f"compiled loops cannot be kept in {loop._cache.cache_path} (No space left on device): set NUMBA_CACHE_DIR to "
        "a folder with room, or they are compiled again each time, which takes seconds"
    ]
    assert not kept_files(tmp_path)


def test_where_numba_finds_no_place_loops_are_compiled_in_memory(
    loop_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere(self: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(_CacheLocator, "ensure_cache_path", nowhere)
    assert loop_of(loop_file)(2.0) == 4.0


def test_a_user_without_a_home(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (package / "__pycache__").write_text("a file, not a folder")
    for name in ("HOME", "XDG_CACHE_HOME", "HEDGED_CACHE"):
        monkeypatch.delenv(name, raising=False)

    def nobody(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "temporary").mkdir()
    assert folder() == ""
    with pytest.raises(ConfigError, match="write the path in full"):
        expanded("~/photos")
    assert cache_folder("mnist") == tmp_path / "temporary" / f"hedged-{os.getuid()}" / "mnist"
    (tmp_path / "temporary" / f"hedged-{os.getuid()}").chmod(0o777)
    with pytest.raises(DataError, match="can be written by others: set HEDGED_CACHE"):
        cache_folder("mnist")
    assert not (tmp_path / "~").exists()
