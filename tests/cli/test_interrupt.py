"""Ctrl-C: a real one while training, and one at any other time; and memory that ends."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from cli.commands import Hedged, Result, check_refused, snapshot, start

from hedged import Embedder
from hedged.training import Run, load_config


def test_ctrl_c_while_training_saves_and_tells_how_to_go_on(tiny: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = start(
        "train", tiny, "--out", run, "--set", "train.steps=1000000", "--set", "train.checkpoint_every=1000000"
    )
    log = run / "log.jsonl"
    while not (log.exists() and log.stat().st_size):
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    command = f"`hedged train {run / 'config.toml'} --out {run} --resume`"
    check_refused(Result(process.returncode, out, err), "interrupted after step", command)
    step = Run(run).checkpoint(load_config(run / "config.toml")).step
    assert f"after step {step} of 1000000" in err
    assert not list(run.glob(".*"))


def test_ctrl_c_elsewhere(hedged: Hedged, run: Path, images: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Embedder, "_embed_batch", interrupted)
    before = snapshot(run)
    check_refused(hedged("match", run, *images[:2]), "interrupted")
    check_refused(hedged("embed", run, *images, "--out", run / "out.npz"), "interrupted")
    assert snapshot(run) == before


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
        RuntimeError("can't start new thread"),  # which needs a stack
    ],
)
def test_too_little_memory(
    hedged: Hedged, run: Path, images: list[Path], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*arguments: object) -> None:
        raise error

    monkeypatch.setattr(Embedder, "_embed_batch", fail)
    check_refused(hedged("match", run, *images[:2]), "not enough memory", "fewer inputs at a time")
