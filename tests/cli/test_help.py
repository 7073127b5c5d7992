"""Help, versions and mistyped commands."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from cli.commands import Hedged, Result

import hedged as package

VERBS = (
    "demo", "train", "retrofit", "evaluate", "embed", "match", "data", "paper", "index", "search", "identify",
    "cluster", "export",
)  # fmt: skip
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


def test_help_names_every_verb(hedged: Hedged) -> None:
    result = hedged("--help")
    assert result.code == 0
    for verb in VERBS:
        assert f"\n  {verb} " in result.out


@pytest.mark.parametrize(
    "verb",
    [
        *VERBS,
        "data ndigit",
        "paper list",
        "paper run",
        "paper show",
        "index build",
        "index add",
        "index remove",
        "index info",
    ],
)
def test_every_verb_explains_itself_with_examples(hedged: Hedged, verb: str) -> None:
    result = hedged(*verb.split(), "--help")
    assert result.code == 0
    assert verb in ("data", "paper", "index") or f"Examples:\n    hedged {verb}" in result.out


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
