"""Two trainings into one folder: one is refused, and the other ends as if it had been alone."""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path

import pytest
from races import forkserver, race
from tiny import in_a_child, tiny_config, tiny_data

from hedged.errors import RunError
from hedged.training import Run, load_config, train

STEPS = 4


def train_tiny(folder: Path, seed: int) -> str:
    config = tiny_config(train={"steps": STEPS, "warmup": 1, "seed": seed})
    return train(config, tiny_data(config), folder).fingerprint()


@pytest.mark.parametrize("races", [2, pytest.param(int(os.environ.get("HEDGED_RACES", "20")), marks=pytest.mark.heavy)])
def test_of_two_trainings_into_one_folder_one_is_refused(tmp_path: Path, races: int) -> None:
    context, alone = forkserver(), {seed: train_tiny(tmp_path / f"alone {seed}", seed) for seed in (0, 1)}
    for number in range(races):
        folder = tmp_path / str(number)
        outcomes = race(context, train_tiny, (folder, 0), (folder, 1))
        ((done,), (refused,)) = ([o for o in outcomes if o.done], [o for o in outcomes if o.refusal])
        taken = f"is being trained into by process {done.process} on host {socket.gethostname()}: wait"
        assert taken in refused.refusal or "already holds a run" in refused.refusal
        run, seed = Run(folder), outcomes.index(done)
        assert run.embedder.fingerprint() == done.done == alone[seed]
        assert load_config(run.config_file).train.seed == seed
        assert len(run.log_file.read_text().splitlines()) == 1  # of one training
        assert not list(folder.glob(".*"))


def test_a_training_that_is_killed_leaves_no_lock_and_no_half_written_file(tmp_path: Path) -> None:
    run, lock = Run(tmp_path / "run"), tmp_path / "run" / ".lock"
    process = in_a_child(100_000, run.folder)
    try:
        while not run.checkpoint_file.exists():
            time.sleep(0.01)
        config = tiny_config(train={"steps": 100_000}, loss={"estimator": "monte-carlo"})
        for resume in (True, False):
            with pytest.raises(RunError, match=f"is being trained into by process {process} on host"):
                train(config, tiny_data(config), run.folder, resume)
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    assert lock.exists()
    (run.folder / f".checkpoint.safetensors.{'0' * 32}.part").write_text("half")
    with run.training(config, resume=True) as checkpoint:
        assert checkpoint is not None
        assert [path.name for path in run.folder.glob(".*")] == [".lock"]
    assert not lock.exists()
