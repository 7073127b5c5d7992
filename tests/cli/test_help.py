"""Help, versions and mistyped commands."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from cli.commands import Hedged, Result

import hedged as package
from hedged.cli._verbs import NAMES

GROUPS = {
    "data": ("ndigit",), "index": ("build", "add", "remove", "list", "info", "repair", "audit"),
    "paper": ("list", "run", "show"),
}  # fmt: skip
PAGES = ["", *NAMES, *(f"{group} {verb}" for group, verbs in GROUPS.items() for verb in verbs)]
HELP_WITHOUT_TORCH = """
import sys
from hedged.cli import main
sys.argv = ["hedged", *sys.argv[1:]]
try:
    main()
finally:
    heavy = {"torch", "numpy", "rich", "matplotlib"} & set(sys.modules)
    assert not heavy, heavy
"""


def test_installed_program_answers(installed: Hedged) -> None:
    assert installed("--version") == Result(0, f"hedged {package.__version__}\n", "")


def test_the_package_is_a_program_too() -> None:
    done = subprocess.run([sys.executable, "-m", "hedged", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"hedged {package.__version__}\n"


def test_help_names_every_verb(hedged: Hedged) -> None:
    result = hedged("--help")
    assert result.code == 0
    for verb in NAMES:
        assert f"\n  {verb} " in result.out


@pytest.mark.parametrize("page", PAGES)
def test_every_page_fits_80_columns_and_has_examples(
    hedged: Hedged, page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = hedged(*page.split(), "--help")
    assert result.code == 0
    assert page in ("", *GROUPS) or f"Examples:\n    hedged {page}" in result.out
    assert [line for line in result.out.splitlines() if len(line) > 80] == []
    assert [line for line in result.out.splitlines()[1:] if line.endswith("...")] == []  # a summary cut short


@pytest.mark.parametrize(
    "arguments", [["--help"], ["train", "--help"], ["data", "ndigit", "--help"], ["paper", "run", "--help"]]
)
def test_help_is_quick_because_it_imports_nothing_heavy(arguments: list[str]) -> None:
    command = [sys.executable, "-c", HELP_WITHOUT_TORCH, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["trian"], "Did you mean 'train'?"),
        (["--nope"], "No such option: --nope"),
        (["train"], "Missing argument 'CONFIG'"),
        (["train", "x.toml"], "Missing option '--out'"),
        (["match", "run", "a.png"], "Missing argument 'B'"),
        (["data", "ndigit", "--digits", "two"], "Invalid value for '--digits'"),
        (["data", "ndigit", "--split", "foo"], "Invalid value for '--split'"),
    ],
)
def test_mistyped_commands(hedged: Hedged, arguments: list[str], words: str) -> None:
    result = hedged(*arguments)
    assert result.code == 2
    assert words in result.err
    assert "Traceback" not in result.err


def test_debug_shows_the_traceback(hedged: Hedged, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Traceback" in hedged("--debug", "evaluate", "nowhere").err
    monkeypatch.setenv("HEDGED_DEBUG", "1")
    result = hedged("evaluate", "nowhere")
    assert "Traceback" in result.err
    assert result.code == 2


def test_output_that_cannot_be_written() -> None:
    for target, words in (("/dev/full", "No space left on device"), (None, "")):
        read, write = os.pipe() if target is None else (-1, os.open(target, os.O_WRONLY))
        if target is None:
            os.close(read)  # nobody listens
        command = [sys.executable, "-c", "from hedged.cli import main; main()", "--help"]
        done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
        os.close(write)
        assert words in done.stderr
        assert "Traceback" not in done.stderr
        assert "Exception" not in done.stderr
