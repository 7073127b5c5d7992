"""Models on a shelf: trained once, measured once, whatever is interrupted."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import tiny_config

from hedged.errors import RunError
from hedged.evaluation.reference import Measure
from hedged.paper import workers
from hedged.paper.shelf import Need, Shelf
from hedged.paper.workers import fill, together
from hedged.training import Config, Run, train

NUMBER: dict[str, Any] = {"split": "number", "test_images": 400, "per_class": 20}


FILL = """
import sys
from pathlib import Path
from hedged.paper.shelf import Need, Shelf
from hedged.paper.workers import fill
from hedged.training import Config

config = Config.model_validate_json(Path(sys.argv[1], "config.json").read_text())
fill(Shelf(Path(sys.argv[1], "models")), [Need(config)], jobs=1)
"""


def small(seed: int = 0, **train: Any) -> Config:
    return tiny_config(data=NUMBER, train={"seed": seed, "steps": 20, "warmup": 2, "checkpoint_every": 5} | train)


def test_a_model_is_trained_and_measured_once(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    need = Need(small(), ("seen", "unseen", "all"))
    assert not shelf.has(need)
    fill(shelf, [need, need], jobs=2)
    assert shelf.has(need)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*")}
    fill(shelf, [need], jobs=2)
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*")}
    assert shelf.made(need.config)["seconds"] > 0
    cells = shelf.measured(need.config, "seen")["cells"]
    assert {cell["metric"] for cell in cells} == {
        "verification_ap", "knn_accuracy", "ap_correlation", "knn_correlation"
    }  # fmt: skip
    assert shelf.value(need.config, "seen", Measure("knn_accuracy", "clean", "clean", "majority")) == next(
        cell["measured"]
        for cell in cells
        if (cell["metric"], cell["gallery"], cell["probe"], cell.get("vote"))
        == ("knn_accuracy", "clean", "clean", "majority")
    )


def test_a_kill_after_the_training_leaves_what_is_known_of_it_and_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf, need = Shelf(tmp_path), Need(small(steps=3), ("seen",))
    place = shelf.place(need.config)
    with monkeypatch.context() as patch:
        patch.setattr("hedged.paper.shelf.train", _train_and_interrupt)
        with pytest.raises(KeyboardInterrupt):
            shelf.fill(need)
    assert Run(place).state == "finished"
    assert (place / "made.json").exists()
    assert shelf.made(need.config)["seconds"] is None
    (place / f".made.json.{'0' * 32}.part").write_text("{")
    shelf.fill(need)
    assert shelf.has(need)
    assert not list(place.glob(".*"))


def _train_and_interrupt(*arguments: Any) -> None:
    train(*arguments)
    raise KeyboardInterrupt


def test_what_is_asked_for_twice_is_done_once_with_all_its_test_sets() -> None:
    a, b = small(0), small(1)
    assert together([Need(a, ("seen",)), Need(b), Need(a, ("unseen", "seen"))]) == [
        Need(a, ("seen", "unseen")),
        Need(b),
    ]


def test_a_kill_in_the_middle_loses_nothing_and_leaves_no_orphan(tmp_path: Path) -> None:
    config = small(steps=4_000, warmup=5, checkpoint_every=10)
    (tmp_path / "config.json").write_text(config.model_dump_json())
    process = subprocess.Popen([sys.executable, "-c", FILL, str(tmp_path)], stderr=subprocess.DEVNULL)
    place = Shelf(tmp_path / "models").place(config)
    _wait_for(Run(place).checkpoint_file)
    process.send_signal(signal.SIGKILL)
    process.wait()
    step = _settled(place)
    assert 0 < step < 4_000
    shelf = Shelf(tmp_path / "models")
    assert not shelf.has(Need(config))
    assert Run(place).checkpoint(config).step == step


def _wait_for(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.05)


def _settled(place: Path) -> int:
    """The step of the checkpoint once nobody writes any more."""
    content = json.loads((place / "need.json").read_text())["config"]
    config = Config.model_validate_json(json.dumps(content))
    step, since = -1, time.monotonic()
    while time.monotonic() - since < 3:
        now = Run(place).checkpoint(config).step
        if now != step:
            step, since = now, time.monotonic()
        time.sleep(0.1)
    return step


def test_a_worker_whose_parent_is_killed_as_it_starts_leaves_too(tmp_path: Path) -> None:
    config = small(steps=4_000, warmup=5, checkpoint_every=10)
    (tmp_path / "config.json").write_text(config.model_dump_json())
    process = subprocess.Popen([sys.executable, "-c", FILL, str(tmp_path)], stderr=subprocess.DEVNULL)
    need = Shelf(tmp_path / "models").place(config) / "need.json"
    _wait_for(need)
    process.send_signal(signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + 60
    while any(str(need) in line for line in _command_lines()):
        assert time.monotonic() < deadline, "the worker lives on"
        time.sleep(0.2)


def _command_lines() -> list[str]:
    """What runs on this machine (Linux)."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            lines.append(path.read_text(errors="replace"))
    return lines


def test_an_interrupted_model_ends_the_same(tmp_path: Path) -> None:
    whole, halves = Shelf(tmp_path / "whole"), Shelf(tmp_path / "halves")
    config = small()
    whole.fill(Need(config, ("seen",)))
    fill(halves, [Need(config)], jobs=1)
    place = halves.place(config)
    for name in ("model.json", "model.safetensors"):  # as if it had been stopped before the last file
        (place / name).unlink()
    halves.fill(Need(config, ("seen",)))
    # Another process may place memory otherwise, and a matrix product then differ in its last digit.
    for mine, other in zip(halves.embedder(config).parameters(), whole.embedder(config).parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-3, atol=1e-4)
    assert [*halves.measured(config, "seen")] == [*whole.measured(config, "seen")]
    assert halves.made(config)["seconds"] is None


def test_failing_models_are_told_with_their_words_once_the_others_are_done(tmp_path: Path) -> None:
    bad, worse, good = small(5, learning_rate=1e9), small(6, learning_rate=1e30), small(0)
    shelf = Shelf(tmp_path)
    with pytest.raises(RunError) as failure:
        fill(shelf, [Need(bad), Need(good, ("seen",)), Need(worse)], jobs=1)
    head, one, other, advice = str(failure.value).splitlines()
    assert head == "2 of 3 models failed, the others are done:"
    for line, config in ((one, bad), (other, worse)):
        name = f"2 digits, gaussian in 2 dimensions, seed {config.train.seed}"
        assert re.match(rf"  {name}: step \d+: .*learning_rate", line)
        assert str(shelf.place(config) / "worker.log") in line
        assert not shelf.has(Need(config))
    assert "give the same command again" in advice
    assert shelf.has(Need(good, ("seen",)))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("Traceback (most recent call last):\nKeyError: 'x'\n", "its process ended with code 1, after: KeyError: 'x'"),
        ("", "its process ended with code 1, after: nothing"),
        ("training 1/20\nthe reason: step 3: no\n", "seed 0: step 3: no (its log"),
    ],
)
def test_the_last_words_of_a_model_are_told(words: str, told: str, tmp_path: Path) -> None:
    shelf, need = Shelf(tmp_path), Need(small())
    shelf.place(need.config).mkdir()
    (shelf.place(need.config) / workers.WORDS).write_text(words)
    assert told in workers._failure(shelf, need, code=1)
