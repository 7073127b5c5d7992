"""The fuzzer finds what it looks for, and finds nothing in hedged: a short run of `python -m fuzz`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import final

import pytest
from fuzz import harness
from fuzz.formats import damaged
from fuzz.harness import Report, Target, fuzz

from hedged.errors import DataError

TESTS = Path(__file__).parents[1]


@final
class Faulty(Target):
    """A reader with one fault, which input number 3 meets."""

    name = "faulty"

    def __init__(self, fault: str) -> None:
        self._fault, self._kept = fault, list[bytes]()

    def prepare(self) -> None:
        pass

    def damage(self, random: Random, folder: Path) -> None:
        self._is_met = random.random() == Random("0 faulty 3").random()
        (folder / "input").write_text("x", encoding="utf-8")

    def use(self, folder: Path) -> None:
        assert (folder / "input").exists()
        if self._fault == "leaks":
            self._kept.append(os.urandom(2**20))
        elif self._is_met:
            self._meet()
        raise DataError("refused")

    def _meet(self) -> None:
        if self._fault == "raises":
            raise KeyError("a bug")
        if self._fault == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if self._fault == "takes memory":
            bytearray(2**31)
        while self._fault == "hangs":
            pass


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("raises", "KeyError: 'a bug'"),
        ("dies", "ended with code -9"),
        ("takes memory", "MemoryError"),
        ("hangs", "it takes over"),
    ],
)
def test_each_fault_is_found_and_the_others_go_on(fault: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "SECONDS", 0.2)
    report = fuzz(Faulty(fault), seed=0, inputs=7, budget=60)
    assert list(report.findings) == [3]
    assert words in report.findings[3]
    assert (report.inputs, report.refused) == (7, 6)


def test_growth_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "WARM_UP", 5)
    report = fuzz(Faulty("leaks"), seed=0, inputs=80, budget=60)
    assert "grew by 7" in report.findings[79]  # 75 MB
    assert report.grown > harness.GROWTH


def test_the_same_seed_makes_the_same_inputs_and_most_differ() -> None:
    content = b'{"a": [1, 2, {"b": "c"}], "d": null}'
    made = [damaged(Random(number), "a.json", content) for number in range(200)]
    assert made == [damaged(Random(number), "a.json", content) for number in range(200)]
    assert len(set(made)) > 150
    assert made.count(content) < 20


def run(*words: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(TESTS), *sys.path])
    return subprocess.run(
        [sys.executable, "-m", "fuzz", "--seed", "0", *words],
        cwd=TESTS,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_few_inputs_of_the_quickest_targets() -> None:
    done = run("--inputs", "250", "--target", "calibrations", "--target", "checkpoints")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].split()[:2] == ["all", "500"]


@pytest.mark.heavy
def test_a_hundred_inputs_of_every_target() -> None:
    done = run("--inputs", "100")
    assert done.returncode == 0, done.stdout + done.stderr


def test_reports_are_added_up() -> None:
    first, second = Report("a", 3, 2, 1.0, 0.5, 10, {1: "x"}), Report("a", 4, 1, 2.0, 0.25, 20, {5: "y"})
    assert harness._added(first, second) == Report("a", 7, 3, 3.0, 0.5, 20, {1: "x", 5: "y"})
