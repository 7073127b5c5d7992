"""Compiled loops are kept on disk: never longer than the code they were made of, and not where nothing can be kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from numba import njit
from numba.core import event

from hedged import _compiled


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


def test_what_was_compiled_is_left_behind_when_any_of_the_files_changes(package: Path) -> None:
    first = folder()
    assert first == folder()
    assert Path(first).parent == package / "__pycache__"
    (package / "two.py").write_text("b = 2")
    assert folder() != first


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
