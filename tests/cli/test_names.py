"""Names with control characters, and addresses with passwords, as the command line shows them."""

from __future__ import annotations

import ast
import json
import shutil
from pathlib import Path

import pytest
from cli.commands import Hedged, check_refused

from hedged import cli
from hedged.cli import _output

ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b31m"


def test_verbs_print_through_what_writes_control_characters_out(capsys: pytest.CaptureFixture[str]) -> None:
    """`_output` alone prints; `hedged serve` prints an address that it made."""
    for path in sorted(Path(cli.__file__).parent.glob("*.py")):
        if path.name not in ("_output.py", "serve.py"):
            calls = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
            assert not [call.lineno for call in calls if ast.unparse(call.func) == "print"], path.name
    _output.say(f"a\n{ESCAPE}b")
    assert capsys.readouterr().out == "a\n\\x1b]0;owned\\x07\\x1b[2J\\x9b31mb\n"


@pytest.fixture
def store(hedged: Hedged, finished_run: Path, images: list[Path], tmp_path: Path) -> Path:
    """A store whose ids and labels would tell a terminal what to do."""
    folder = tmp_path / f"b{ESCAPE}ob"
    folder.mkdir()
    for image in images:
        shutil.copy(image, folder / f"{image.stem}{ESCAPE}.png")
    path = tmp_path / "a.db"
    built = hedged("index", "build", finished_run, path, folder, "--folder-labels")
    assert built.code == 0, built.err
    return path


def test_names_are_not_sent_to_the_terminal(
    hedged: Hedged, store: Path, finished_run: Path, images: list[Path]
) -> None:
    first = next(path for path in store.parent.rglob("0*.png") if ESCAPE in path.name)
    for verb in (
        ["search", finished_run, store, first],
        ["search", finished_run, store, first, "--where", "label=nobody"],
        ["search", finished_run, store, first, "--json"],
        ["identify", finished_run, store, first],
        ["match", finished_run, first, images[0]],
        ["index", "add", finished_run, store, first],
        ["index", "add", finished_run, store.parent / f"{ESCAPE}.db", first],
        ["index", "info", store],
        ["index", "remove", store, first],
    ):
        result = hedged(*verb)
        for text in (result.out, result.err):
            assert not {"\x1b", "\x07", "\x9b"} & set(text), verb
    (found,) = json.loads(hedged("search", finished_run, store, images[0], "-k", 1, "--json").out)
    assert ESCAPE in found["hits"][0]["id"]  # a program gets what is there


@pytest.mark.parametrize("password", ["secret", "se#cret", "se/cret", "se@cret"])
def test_no_password_in_any_output(
    hedged: Hedged, finished_run: Path, images: list[Path], password: str, tmp_path: Path
) -> None:
    address = f"postgresql://me:{password}@127.0.0.1:1/dogs#gallery"
    for verb in (
        ["index", "info", address],
        ["index", "build", finished_run, address, *images],
        ["index", "repair", address, tmp_path / "new.db"],
        ["search", finished_run, address, images[0]],
    ):
        for debug in ([], ["--debug"]):
            result = hedged(*debug, *verb)
            assert result.code == 2
            assert "cret" not in result.out + result.err
    check_refused(
        hedged("index", "info", "postgresql:/me:secret@host/dogs"), "neither the path of a file nor an address"
    )
    for location in (
        "postgresql://host/db?password=sE#cret",
        "lance://s3://key:secret@bucket/x",
        "host=x PASSWORD = secret",
    ):
        for debug in ([], ["--debug"]):
            result = hedged(*debug, "index", "info", location)
            assert result.code == 2
            assert "cret" not in (result.out + result.err).replace("AWS_SECRET", "")
